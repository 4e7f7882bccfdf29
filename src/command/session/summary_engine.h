// SPDX-License-Identifier: MIT
// Lines of the summary (summary.h) on the sampling in time of one mode.
#pragma once

#include <stdio.h>

#include "profile/profile.h"

void cs_print_engine(const struct cs_facts *f, FILE *out);
