// SPDX-License-Identifier: MIT
// The functions that a profile's frames belong to: with lines, several frames are lines of one
// function. `apart` makes a method where it was inlined a function of its own, for formats that
// cannot mark a frame as inlined.
#pragma once

#include "profile/profile.h"

struct cs_functions {
  uint32_t *of;     // each frame's function
  uint32_t *frame;  // one frame of each function
  uint32_t count;
};

void cs_functions_make(struct cs_functions *f, const struct cs_profile *p, bool apart);
void cs_functions_free(struct cs_functions *f);
