// SPDX-License-Identifier: MIT
// The runtime's own native frames without symbols, and the class of each (metadata/
// runtime_class.h): its own, or that of its nearest caller that has one. A managed caller has none
// and ends the search, unless it is a part of the runtime itself. One thread.
#pragma once

#include "metadata/runtime_class.h"
#include "naming/inlined.h"
#include "profile/profile.h"
#include "recording/recording.h"

// A frame of the recording by itself.
struct cs_runtime_frame {
  bool runtime;  // of the runtime, and without a name
  bool native;
  enum cs_runtime_class class;  // its own
};
struct cs_runtime_frame cs_runtime_frame_of(const struct cs_recording *rec, uint64_t key);

// By node of the tree.
struct cs_runtime_part {
  struct cs_runtime_node {
    bool runtime;   // a frame of the runtime without a name
    uint8_t class;  // enum cs_runtime_class of this frame and of what it calls
  } * nodes;
};

void cs_runtime_part_make(struct cs_runtime_part *part, const struct cs_inlined *raw);
void cs_runtime_part_free(struct cs_runtime_part *part);

// The runtime's frames in a profile. Those of one class are one; those without a class that lead
// from other code to one with a class are left out.
struct cs_runtime_place {
  const struct cs_runtime_part *part;  // NULL: the frames stay as they are
  const struct cs_inlined *raw;
  struct cs_profile *profile;
  const char *file;  // the runtime's own image, which all classes belong to; "": it is not known
  // By node: for a frame without a class, the profile's node of what has called into the runtime;
  // for any other, 0.
  uint32_t *leads;
  uint32_t *shown;  // by node: the profile's frame
};
void cs_runtime_place_begin(struct cs_runtime_place *p, const struct cs_runtime_part *part,
                            const struct cs_inlined *raw, struct cs_profile *profile);
// Returns whether the node of `raw`, which comes after its caller, is shown as its class: in *node.
// If not, it is a child of *parent, as it may be changed.
bool cs_runtime_place(struct cs_runtime_place *p, uint32_t i, uint32_t shown, uint32_t *parent,
                      uint32_t *node);
// `node`: by node of `raw`, the profile's, or `left_out`. Adds up the profile's facts.
void cs_runtime_place_end(struct cs_runtime_place *p, const uint32_t *node, uint32_t left_out);
