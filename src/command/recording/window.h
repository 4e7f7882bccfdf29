// SPDX-License-Identifier: MIT
// A recording in windows of time: what has come since the last look, as a profile of its own.
#ifndef CS_RECORDING_WINDOW_H
#define CS_RECORDING_WINDOW_H

#include "recording/view.h"

struct cs_window {
  struct cs_view *view;  // how frames are shown, and where to push
  struct cs_recording *rec;
  uint64_t every_ns;
  uint64_t begin_ns;  // since the recording's start
  struct cs_window_sum {
    uint64_t samples, weight;
  } * before;  // per node of the tree: what earlier windows had of it
  size_t before_count, before_capacity;
  struct cs_window_sum *before_labelled;  // per entry of `labelled`
  size_t before_labelled_count, before_labelled_capacity;
  size_t named;  // frames that have their names
};

// If the window is over at `now_ns` since the recording's start, or it is the last one, its samples
// are pushed as one profile; of one without samples, nothing. What nobody wants as a whole is then
// forgotten, so that a recording may go on for ever.
void cs_window_turn(struct cs_window *w, uint64_t now_ns, bool last);
void cs_window_free(struct cs_window *w);

#endif
