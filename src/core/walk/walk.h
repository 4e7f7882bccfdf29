// SPDX-License-Identifier: MIT
// walk: turns registers and a stack into a list of physical frames, with the reason for its end.
// Signal-safe: yes, all of it: it only reads memory.
#pragma once

#include "unwind/unwind.h"

enum cs_frame_flag {
  CS_FRAME_EXACT = 1,     // ip is where the code was interrupted, not a return address
  CS_FRAME_SIGNAL = 2,    // the kernel's signal trampoline
  CS_FRAME_BRIDGED = 4,   // reached through an explicit Frame, across native code
  CS_FRAME_HIJACKED = 8,  // the runtime had replaced its return address; the true one is used
};

struct cs_frame {
  struct cs_regs regs;  // of this frame; regs.r[CS_IP] is its ip
  struct cs_code code;
  uint32_t flags;
};

struct cs_again_search;  // walk/again.h

struct cs_walk {  // a walk in progress; private to the component
  const struct cs_world *world;
  struct cs_stack stack;
  struct cs_regs regs;  // of the frame that was returned last, or of the leaf before that
  struct cs_code code;  // of the frame that was returned last
  struct cs_near near;  // what is kept from one look-up to the next
  uint64_t site;        // cs_site: how to step over the frame, if that was cached; else 0
  uint64_t clr_thread;  // Thread*, 0 if the thread has none
  uint64_t next_frame;  // the first explicit Frame of the chain that has not been passed
  uint32_t depth, max_depth;
  uint32_t flags;  // of the frame that comes next
  // Set after cs_walk_begin if only the kind of frame.code is needed: a frame with a cached call
  // site is then stepped over without looking up its code.
  bool fast;
  // The table of images matches the process. If not, an image is used only if its build id is where
  // the table says, and unknown code may belong to a library that has just been loaded.
  bool settled;
  bool sites_valid;  // the call-site cache is valid for these images
  bool late;         // the limit has been reached
  uint8_t gaps;      // time that the limit does not count, because it passed between two checks
  bool done;
  enum cs_stop stop;              // valid after cs_walk_next has returned false
  uint32_t faults;                // hardware faults passed so far, as the runtime noted them
  uint32_t fault_flags;           // the ContextFlags that it has recorded for the last of them
  struct cs_again_search *again;  // for frames of the last walk; NULL: there is no search
  uint64_t loaded;                // cs_loader_now at the beginning
  const struct cs_image *verified_image;  // if not settled: the last whose build id matched
  uint64_t limit_ns;   // CPU time that the walk may use; 0: no limit (cs_walk_limit)
  uint64_t tick_rate;  // ticks of the counter per nanosecond, with 32 fractional bits
  uint64_t cpu_until;  // of the thread's CPU clock; 0: not read yet
  uint64_t stop_ip;    // the ip that could not be stepped over
};

#define CS_WALK_DEFAULT_DEPTH 65536u
// The end of the runtime's chain of explicit Frames.
#define CS_END_OF_CHAIN (~0ull)

// Starts a walk at `regs`: those in regs->known are the thread's own, and the ip is exact.
CS_ISLAND void cs_walk_begin(struct cs_walk *walk, const struct cs_world *world,
                             const struct cs_regs *regs, const struct cs_stack *stack,
                             uint64_t clr_thread, uint32_t max_depth);
// Makes the walk end with CS_STOP_TIME after about limit_ns (within an eighth) of the calling
// thread's CPU time; time without a processor does not count. Called after cs_walk_begin. Up to two
// gaps between checks that are longer than an eighth of the limit do not count either.
CS_ISLAND void cs_walk_limit(struct cs_walk *walk, uint64_t limit_ns, uint64_t tick_rate);
// Returns whether the limit has been reached. Called from time to time by everything that may take
// long.
CS_ISLAND bool cs_walk_is_late(struct cs_walk *walk);
// Must be called to abandon a walk before cs_walk_next has returned false.
CS_ISLAND void cs_walk_leave(struct cs_walk *walk);
// Finds the next frame, leaf first. Returns false at the end; walk->stop is then the reason.
CS_ISLAND bool cs_walk_next(struct cs_walk *walk, struct cs_frame *frame);
// CS_STOP_BASE is the only complete end.
CS_ISLAND static inline bool cs_walk_complete(const struct cs_walk *walk) {
  return walk->stop == CS_STOP_BASE;
}

// Returns whether the thread is in cooperative mode (it runs managed code, or runtime code that
// touches objects).
CS_ISLAND bool cs_is_cooperative(const struct cs_world *world, uint64_t clr_thread);
