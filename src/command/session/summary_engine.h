// SPDX-License-Identifier: MIT
// Lines of the summary (summary.h) on the sampling in time of one mode.
#pragma once

#include <stdio.h>

#include "profile/profile.h"

void cs_print_engine(const struct cs_profile *p, FILE *out);
// The time of threads that ran with their signals blocked.
void cs_print_blocked(const struct cs_facts *f, FILE *out);
// Samples that are missing because threads did not take their signals.
void cs_print_asks(const struct cs_facts *f, FILE *out);
