// SPDX-License-Identifier: MIT
// The frames of samples as the wire has them. The agent's thread only. Not for handlers.
#pragma once

#include "images/images.h"

struct cs_frame_origin {  // of a sample's frames
  uint32_t code_generation;
  const struct cs_images *images;  // the process's images at that time, or NULL
  bool all;  // the table is complete; else it holds only for frames that the walk found native
};
// Translates a frame. Returns false if there is no room for a record that the frame needs.
bool cs_frame_to_wire(uint64_t frame, const struct cs_frame_origin *origin, uint64_t *out);
void cs_frames_forget(void);  // when the recording is over; the next one has its own ids
