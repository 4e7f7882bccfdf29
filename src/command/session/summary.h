// SPDX-License-Identifier: MIT
// What a recording says at its end.
#ifndef CS_SESSION_SUMMARY_H
#define CS_SESSION_SUMMARY_H

#include "profile/profile.h"

void cs_print_summary(const struct cs_profile_set *set, FILE *out);

#endif
