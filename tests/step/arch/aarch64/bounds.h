// SPDX-License-Identifier: MIT
// How often each excuse may be needed on arm64: two to three times what was seen in 600,000 walks,
// or, where nothing was seen, as on x86-64.
#pragma once

#include "oracle.h"

static const struct bound bounds[EXCUSE_COUNT] = {
    [EXCUSE_ELSEWHERE] = {4000, 50}, [EXCUSE_STALE] = {30, 8},     [EXCUSE_STALE_WRONG] = {100, 8},
    [EXCUSE_OPEN] = {0, 2},          [EXCUSE_TRIP] = {5, 10},      [EXCUSE_BUILT] = {100, 150},
    [EXCUSE_MADE] = {5, 5},          [EXCUSE_RESTORED] = {30, 10}, [EXCUSE_UNSTEPPED] = {0, 0},
    [EXCUSE_EXCLUSIVE] = {600, 20},
};
