// SPDX-License-Identifier: MIT
// How often each excuse may be needed on x86-64: two to three times what was seen in 13 million
// walks.
#pragma once

#include "oracle.h"

static const struct bound bounds[EXCUSE_COUNT] = {
    [EXCUSE_ELSEWHERE] = {4000, 50}, [EXCUSE_STALE] = {30, 8},     [EXCUSE_STALE_WRONG] = {0, 2},
    [EXCUSE_OPEN] = {0, 2},          [EXCUSE_TRIP] = {5, 10},      [EXCUSE_BUILT] = {0, 0},
    [EXCUSE_MADE] = {5, 5},          [EXCUSE_RESTORED] = {30, 10}, [EXCUSE_UNSTEPPED] = {20, 20},
    [EXCUSE_EXCLUSIVE] = {0, 0},
};
