// SPDX-License-Identifier: MIT
// A profile's stacks as pprof and OTLP have them: of locations, each of which is a place in machine
// code: a frame, together with those that were inlined there. One thread.
#ifndef CS_PROFILE_LOCATIONS_H
#define CS_PROFILE_LOCATIONS_H

#include "profile/profile.h"

struct cs_locations {
  struct cs_location {
    uint32_t frame;  // the innermost one
    uint32_t outer;  // the location that it would be without that one; CS_NO_LOCATION: none
    uint32_t depth;  // of frames
  } * items;         // those of a single frame come first: their index is the frame's
  size_t count, capacity, lines;  // lines: all locations' frames
  uint32_t *of;                   // per node of the tree: the location of a stack that ends there
};
#define CS_NO_LOCATION UINT32_MAX

void cs_locations_make(struct cs_locations *l, const struct cs_profile *p);
void cs_locations_free(struct cs_locations *l);
// The node below all that is in one location with this one: its parent's location is the next.
uint32_t cs_locations_base(const struct cs_locations *l, const struct cs_tree *tree, uint32_t node);

#endif
