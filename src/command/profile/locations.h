// SPDX-License-Identifier: MIT
// Stacks as pprof and OTLP have them, made of locations. A location is a place in machine code: a
// frame with the frames that were inlined there. One thread.
#pragma once

#include "profile/profile.h"

struct cs_locations {
  struct cs_location {
    uint32_t frame;  // the innermost one
    uint32_t outer;  // the same location without `frame`; CS_NO_LOCATION: no more frames
    uint32_t depth;  // number of frames
  } * items;         // locations of a single frame come first: their index is the frame's
  size_t count, capacity, lines;  // lines: frames of all locations
  uint32_t *of;                   // per node of the tree: the location of a stack that ends there
};
#define CS_NO_LOCATION UINT32_MAX

void cs_locations_make(struct cs_locations *l, const struct cs_profile *p);
void cs_locations_free(struct cs_locations *l);
// Returns the outermost node of the location that `node` ends. Its parent has the caller's
// location.
uint32_t cs_locations_base(const struct cs_locations *l, const struct cs_tree *tree, uint32_t node);
