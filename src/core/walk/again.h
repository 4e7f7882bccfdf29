// SPDX-License-Identifier: MIT
// A thread's own stack, walked again: most of its frames are those of the last walk. The records of
// that walk are kept. A walk that reaches a frame that matches one of them compares the rest of the
// stack with the other records, instead of walking it. Signal-safe: yes.
#pragma once

#include "walk/record.h"

enum {
  CS_AGAIN_MAX = 4096,  // frames of a walk that is kept
  CS_AGAIN_ROOM = 64,   // room before them for the new frames of the next walk
  CS_AGAIN_CALLS = 64,  // managed frames among them that have called native code
};

// A walk that is kept. All of it belongs to the owner of the memory that it is in.
struct cs_again {
  struct cs_record *records;  // room for ROOM + MAX records; NULL: none
  uint32_t start, count;      // the kept records, from the leaf to the base; count 0: none
  uint32_t from;              // index among them; each frame after it was reached by a site
  uint32_t calls;
  uint16_t call[CS_AGAIN_CALLS];  // distances of calls of native code from the end, largest first
  uint64_t clr_thread, stack_hi;  // of the walked thread
  uint64_t loaded;                // cs_loader_now during the walk
};

// A walk's search for a frame that matches a kept record.
struct cs_again_search {
  const struct cs_again *again;  // NULL: there is nothing to match
  uint32_t at;                   // the first kept record that has not been passed
  uint32_t tries;                // comparisons left
  uint32_t before;               // frames of the walk before the current run
  bool matched;                  // the rest of the stack is as in the records from `at` on
};

// Starts the search of a walk that has just begun.
CS_ISLAND void cs_again_begin(struct cs_again_search *search, const struct cs_again *again,
                              const struct cs_walk *walk);
// Called when the walk reaches a return address, after `frames` frames. Returns 0 if the rest of
// the stack matches, or else the lowest sp at which the next call can find a match.
CS_ISLAND uint64_t cs_again_match(struct cs_again_search *search, uint64_t ip, uint64_t sp,
                                  uint64_t fp, uint32_t frames);

// Called after a walk whose `count` records are kept: notes what a later walk must have in common
// with it. Sets last->count to 0 if the records cannot be used. `from`: as in struct cs_again.
CS_ISLAND void cs_again_note(struct cs_again *last, const struct cs_walk *walk, uint32_t count,
                             uint32_t from);
