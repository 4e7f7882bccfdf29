// SPDX-License-Identifier: MIT
// capture: a walk of one thread, as it is kept for a requester. Signal-safe: yes.
#pragma once

#include "walk/again.h"

// An exception that is being dispatched, or a handler of which runs: its ExInfo's place on the
// stack, older than what the dispatch calls and younger than what threw.
struct cs_exception {
  uint64_t at;
  bool first_pass;  // nothing is unwound yet: what the dispatch calls are filters
};
enum { CS_EXCEPTIONS = 32 };  // nested ones that are noted

// A hardware fault that the runtime has taken up: the first record at or below it, and the
// ContextFlags that the runtime has kept for it.
struct cs_fault {
  uint32_t from, flags;
};
enum { CS_FAULTS = 32 };

struct cs_capture {
  struct cs_record *records;  // of the walk, in memory of the request's slot
  struct cs_record *memory;   // the same, except for a walk that was joined to the last one;
  uint32_t capacity, count;   // it has room for `capacity`
  enum cs_stop stop;
  uint64_t stop_ip;
  uint32_t generation;  // of the code map at the time of the walk
  uint64_t limit_ns;    // of the walk's CPU time: in a handler only, else 0 (none)

  // Set by the requester before the walk:
  uint32_t module_deaths;  // cs_module_deaths()
  bool plain;              // CS_REQUEST_PLAIN
  bool self;               // of the calling thread: its frames live while it waits here
  bool at_call;            // it begins at a return address, in a function that has made a call
  bool again;              // the walk may be joined to `last`, and replaces it
  bool held;               // of a thread that the requester holds: its frames live as well
  bool asleep;             // by another thread while it was blocked in the kernel: threads/asleep.h
  bool kept;               // with `asleep`: from an earlier walk (snapshot/sleeping.h)
  uint64_t asleep_runs;    // with `asleep`: the target's run count then

  // Set by cs_capture_complete: every managed record is resolved.
  bool resolved;

  // The last walk of a thread's own stack, as long as the slot has it.
  struct cs_again last;

  // Set by the walk:
  bool seeded;                      // it began at the request's seed
  uint32_t fresh;                   // records that are new; the others are those of `last`
  uint64_t unwound_lo, unwound_hi;  // frames whose caller's sp is in (lo, hi] have been unwound by
                                    // the exception under way, though they are still on the stack
  uint32_t exception_count;
  struct cs_exception exceptions[CS_EXCEPTIONS];  // the newest first
  bool in_unwind;                                 // its second pass is between two handlers
  bool no_explicit_frames;  // for CoreCLR, the thread neither calls nor is called by managed code
  uint32_t fault_count;
  struct cs_fault faults[CS_FAULTS];  // the newest first
  struct cs_regs leaf;                // all registers of the interrupted instruction
};

// Returns whether a hardware fault that the runtime has taken up interrupted record `i`.
CS_ISLAND static inline bool cs_capture_is_fault(const struct cs_capture *capture, uint32_t i) {
  for (uint32_t k = 0; k < capture->fault_count; k++)
    if (capture->faults[k].from == i) return true;
  return false;
}

// Walks into `capture`. The caller is inside the epoch. The walk is a fast one: look-ups that only
// name a frame (method_start is 0) are left to cs_capture_complete.
CS_ISLAND void cs_capture_walk(struct cs_capture *capture, const struct cs_world *world,
                               const struct cs_regs *regs, const struct cs_stack *stack,
                               uint64_t clr_thread, uint32_t max_depth);
