// SPDX-License-Identifier: MIT
// asleep: a walk of a thread that is blocked in the kernel, by another thread, which does not wake
// it. The walk reads a copy that was taken while the thread did not run, so nothing is torn or goes
// away. Not for handlers.
//
//   enter the epoch
//   cs_asleep_begin       CS_ASLEEP_YES: a copy of its stack, and its sp and ip
//   walk from ->regs in ->world, whose memory includes the copy
//   cs_asleep_end         true: all that was read is consistent
//   leave the epoch
#pragma once

#include "signal/thread.h"
#include "threads/sleeper.h"

enum {
  CS_ASLEEP_OBJECT = 512,        // bytes of the runtime's Thread that a walk may read
  CS_ASLEEP_MOST = 1024 * 1024,  // of a stack: deeper ones are left to the signal
};

enum cs_asleep_answer {
  CS_ASLEEP_YES,
  CS_ASLEEP_RESTLESS,  // it is running, as it was when last checked
  CS_ASLEEP_RUNNING,   // it is running, but was asleep when last checked: worth a nap and another
                       // try
  CS_ASLEEP_MOVED,     // it has run meanwhile: try again
  CS_ASLEEP_NO,        // it cannot be walked this way: in cooperative mode, on another stack, ...
};

// One for each thread that walks at a time. Zeroed before the first use; its memory is kept.
struct cs_asleep {
  struct cs_world world;  // this process, with the copy laid over it. First: of_mem relies on that
  struct cs_regs regs;    // ip and sp, the only ones in /proc
  struct cs_stack stack;
  uint64_t clr_thread;
  uint64_t runs;  // the thread's run count: while it is the same, the copy is valid
  // The rest is private to asleep.c.
  const struct cs_mem *process;  // without the copy
  struct cs_sleeper *sleeper, spare;
  uint64_t from, to;      // the part of the stack that is in `bytes`
  uint8_t *bytes;         // CS_ASLEEP_MOST of them
  uint32_t object_bytes;  // of the runtime's Thread, in `object`
  uint8_t object[CS_ASLEEP_OBJECT];
  bool beyond;  // something outside of the copy was read that is valid only while it sleeps
  bool moved;   // the thread has run: nothing more was copied
};

// A thread that is found running, but was asleep when last checked, may soon sleep again. A signal
// could arrive just then and cause the EINTR that is to be avoided; so the caller waits a moment.
enum { CS_ASLEEP_PATIENCE = 4, CS_ASLEEP_NAP_US = 50 };

// `thread` is pinned. `runs`: its run count, if that has just been read; else 0. After anything but
// CS_ASLEEP_YES there is nothing to end.
enum cs_asleep_answer cs_asleep_begin(struct cs_asleep *asleep, struct cs_thread *thread,
                                      uint64_t runs);
bool cs_asleep_end(struct cs_asleep *asleep);
// Before the end: returns whether the suspended runtime has stopped the thread, as for a
// collection. False for a thread that was not running managed code then.
bool cs_asleep_is_suspended(const struct cs_asleep *asleep);
// Before the end: notes that something outside of the copy was read, which is valid only if the
// thread has slept until the end.
void cs_asleep_read_beyond(struct cs_asleep *asleep);
// Returns whether the pinned thread has slept since the walk with this run count. Reads one file.
// Returns false, too, where the count does not say.
bool cs_asleep_stays(const struct cs_thread *thread, uint64_t runs);
// Marks the thread as restless: it was still running after all naps.
void cs_asleep_give_up(struct cs_thread *thread);
