// SPDX-License-Identifier: MIT
// The walk that handlers make, over a stopped thread of another process: the thread's stack is
// copied into this process, to the very addresses that it has there, so that the loop over known
// return addresses (walk/run.c) loads its words as in a handler; everything else is read through
// the component remote. The functions under test are those that handlers call: cs_sample_draft
// (write_sample, as cs_sample_take does) and cs_capture_walk.
//
// Each comparison makes three such walks: a sample with an empty cache of call sites, a sample with
// the cache that all walks before it have filled, and in turn a capture with all registers, a plain
// capture, or a sample as of a sleeper, whose stack is elsewhere. Each must have the frames of the
// exact walk (cs_walk_next, no cache), which the caller compares with an independent result.
#pragma once

#include "remote/remote.h"

struct handlers_walk;

struct exact_walk {
  const struct cs_frame *frames;
  unsigned count;
  bool cut_off;  // the caller wanted no more frames; else `stop` and `stop_ip` are valid
  enum cs_stop stop;
  uint64_t stop_ip;
};

// Restarts this program with its mappings far from where other programs have theirs, because the
// addresses of another process's stacks must be free. Must be called first in main.
void handlers_walk_make_room(char **argv);
// For a child that is about to execute another program, which must not inherit that layout.
void handlers_walk_leave_room(void);

// Returns NULL if there is no memory.
struct handlers_walk *handlers_walk_new(struct cs_remote *remote);
void handlers_walk_free(struct handlers_walk *hw);
// Copies the thread's own stack: all of it from its sp up if it is not the stack that was copied
// last, else [begin, end). Returns false if its addresses are in use in this process, or if the
// stack is gone.
bool handlers_walk_copy(struct handlers_walk *hw, const struct cs_remote_thread *thread,
                        uint64_t begin, uint64_t end, struct cs_error *err);
// The next copy is of the whole stack, and code may have died.
void handlers_walk_forget_copy(struct handlers_walk *hw);
// Walks, and compares. Returns false if `err` says what differs. `count`: the number of walks made.
bool handlers_walk_agrees(struct handlers_walk *hw, const struct cs_remote_thread *thread,
                          const struct exact_walk *exact, struct cs_error *err);

struct handlers_walk_counts {
  uint64_t cold, warm, full, plain, asleep;  // walks that were compared
  uint64_t frames;                           // of these
};
const struct handlers_walk_counts *handlers_walk_counts(const struct handlers_walk *hw);
