// SPDX-License-Identifier: MIT
// What a recording says at its end.
#pragma once

#include "profile/profile.h"

void cs_print_summary(const struct cs_profile_set *set, FILE *out);
