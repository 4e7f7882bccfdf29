// SPDX-License-Identifier: MIT
// A recording in windows of time, each of which becomes a profile.
#pragma once

#include "session/view.h"

struct cs_window {
  struct cs_view *view;  // how frames are shown, and where to push
  struct cs_recording *rec;
  uint64_t every_ns;
  uint64_t begin_ns;  // since the recording's start
  struct cs_window_sum {
    uint64_t samples, weight;
  } * before;  // by node of the tree: its sums at the end of the last window
  size_t before_count, before_capacity;
  struct cs_window_sum *before_labelled;  // by entry of `labelled`
  size_t before_labelled_count, before_labelled_capacity;
  size_t named;  // number of frames that are named
};

// Ends the window if it is over at `now_ns` since the recording's start, or is the last one, and
// pushes its samples as one profile of each mode that has some. Samples that no output wants as a
// whole are then forgotten, so that a recording may go on for ever.
void cs_window_advance(struct cs_window *w, uint64_t now_ns, bool last);
void cs_window_free(struct cs_window *w);
