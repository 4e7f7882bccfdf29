// SPDX-License-Identifier: MIT
// walk: registers and a stack become a list of physical frames, with a reason why it ended. The
// heart. Signal-safe: yes, all of it: nothing but memory reads.
#ifndef CS_WALK_WALK_H
#define CS_WALK_WALK_H

#include "unwind/unwind.h"

enum cs_frame_flag {
  CS_FRAME_EXACT = 1,    // ip is where the code was interrupted, not a return address
  CS_FRAME_SIGNAL = 2,   // the kernel's signal trampoline
  CS_FRAME_BRIDGED = 4,  // reached through an explicit Frame, over native code that was not unwound
  CS_FRAME_HIJACKED =
      8,  // its return address had been replaced by the runtime; the true one is used
};

struct cs_frame {
  struct cs_regs regs;  // as they were in this frame; regs.r[CS_RIP] is its ip
  struct cs_code code;
  uint32_t flags;
};

struct cs_walk {  // one walk under way; private to walk.c
  const struct cs_world *world;
  struct cs_stack stack;
  struct cs_regs regs;  // of the frame that was answered last, or of the first
  struct cs_code code;  // of the frame that was answered last
  struct cs_near near;  // where the last managed code was
  uint64_t site;        // how to step over it (cs_site), if that was known beforehand, else 0
  uint64_t clr_thread;  // Thread*, 0 if the thread has none
  uint64_t next_frame;  // next explicit Frame of its chain that has not been passed
  uint32_t depth, max_depth;
  uint32_t flags;  // of the frame that comes next
  bool fast;  // set after cs_walk_begin by who needs no more of frame.code than its kind: a return
              // address that was seen before is then stepped over without being looked up
  uint32_t faults;       // hardware faults that the runtime has taken up, passed so far
  uint32_t fault_flags;  // ContextFlags that it has kept for the last of them
  // The table of images is that of the process now. Otherwise an image is believed only when its
  // build id stands where the table says, and what is in none may be a library that has just come.
  bool settled;
  uint64_t loaded;               // cs_loader_now at the beginning
  bool sites_hold;               // the kept rules of return addresses are right for these images
  const struct cs_image *there;  // not settled: the last one that was looked at, and is there
  uint64_t limit_ns;             // of CPU time that the walk may use; 0: no limit. cs_walk_limit
  uint64_t tick_rate;            // ticks of the time-stamp counter in a nanosecond, 32.32
  uint64_t cpu_until;            // of the thread's CPU clock; 0: it has not been read yet
  bool late;                     // the limit has been reached
  bool done;
  enum cs_stop stop;  // valid when cs_walk_next has answered false
  uint64_t stop_ip;   // where it ended: the ip that could not be stepped over
};

#define CS_WALK_DEFAULT_DEPTH 65536u
// What the runtime's chain of explicit Frames ends with.
#define CS_END_OF_CHAIN (~0ull)

// Starts at `regs` (all of `regs->known` must be true of the thread; its ip is exact).
CS_ISLAND void cs_walk_begin(struct cs_walk *walk, const struct cs_world *world,
                             const struct cs_regs *regs, const struct cs_stack *stack,
                             uint64_t clr_thread, uint32_t max_depth);
// Ends the walk with CS_STOP_TIME when it has used that much of the calling thread's CPU time, more
// or less an eighth; time in which the thread had no processor does not count. After
// cs_walk_begin.
CS_ISLAND void cs_walk_limit(struct cs_walk *walk, uint64_t limit_ns, uint64_t tick_rate);
// Has it? Asked now and then by what may take long.
CS_ISLAND bool cs_walk_is_late(struct cs_walk *walk);
// Whoever leaves a walk before cs_walk_next has returned false says so.
CS_ISLAND void cs_walk_leave(struct cs_walk *walk);
// The next frame, leaf first. False: the walk is over, and walk->stop says why.
CS_ISLAND bool cs_walk_next(struct cs_walk *walk, struct cs_frame *frame);
// CS_STOP_BASE is the one complete end.
CS_ISLAND static inline bool cs_walk_complete(const struct cs_walk *walk) {
  return walk->stop == CS_STOP_BASE;
}

// Is the thread in cooperative mode (running managed code, or runtime code that touches objects)?
CS_ISLAND bool cs_is_cooperative(const struct cs_world *world, uint64_t clr_thread);

#endif
