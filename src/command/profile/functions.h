// SPDX-License-Identifier: MIT
// A profile's frames by function: with lines, several frames are lines of one.
// apart: a method where it was inlined is another function, for formats that cannot tell of a
// place.
#ifndef CS_PROFILE_FUNCTIONS_H
#define CS_PROFILE_FUNCTIONS_H

#include "profile/profile.h"

struct cs_functions {
  uint32_t *of;     // per frame: its function
  uint32_t *frame;  // per function: one of its frames
  uint32_t count;
};

void cs_functions_make(struct cs_functions *f, const struct cs_profile *p, bool apart);
void cs_functions_free(struct cs_functions *f);

#endif
