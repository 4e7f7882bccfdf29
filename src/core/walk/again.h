// SPDX-License-Identifier: MIT
// A thread's own stack, walked again: most of its frames are those of the last walk. The records of
// that walk are kept, and a walk that comes to one of these frames compares the words of the stack
// from there on with them, instead of walking on. Signal-safe: yes.
#pragma once

#include "walk/record.h"

enum {
  CS_AGAIN_MOST = 4096,  // frames of a walk that is kept
  CS_AGAIN_ROOM = 64,    // further ones before them, of the walk that meets them
  CS_AGAIN_CALLS = 64,   // managed frames among them that have called native code
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

// A walk's search among them.
struct cs_again_look {
  const struct cs_again *again;  // NULL: there is nothing to be met
  uint32_t at;                   // those before it have been passed
  uint32_t tries;                // comparisons left
  uint32_t before;               // frames of the walk up to the current run
  bool met;                      // the frame `at` is the walk's, and so are all after it
};

// Begins to look for them in a walk that has just begun.
CS_ISLAND void cs_again_begin(struct cs_again_look *look, const struct cs_again *again,
                              const struct cs_walk *walk);
// The walk has come to a return address; `frames` were passed up to it. Returns the sp from which on
// the next call is of use, and 0 if the rest is met.
CS_ISLAND uint64_t cs_again_meets(struct cs_again_look *look, uint64_t ip, uint64_t sp, uint64_t fp,
                                  uint32_t frames);

// Called after a walk whose `count` records are kept: notes what a later walk must have in common
// with it. Sets last->count to 0 if the records cannot be used. `from`: as in struct cs_again.
CS_ISLAND void cs_again_note(struct cs_again *last, const struct cs_walk *walk, uint32_t count,
                             uint32_t from);
