// SPDX-License-Identifier: MIT
// asleep: a thread that is blocked in the kernel, to be walked by somebody else without being
// woken. What the walk reads of it is a copy that was taken while the thread did not run; so
// nothing of it is torn, and nothing of it can go away. Not for handlers.
//
//   enter the epoch
//   cs_asleep_begin       CS_ASLEEP_YES: a copy of its stack, and its sp and ip
//   walk from ->regs in ->world, whose memory has the copy in it
//   cs_asleep_end         true: all that was read belongs together
//   leave the epoch
#ifndef CS_THREADS_ASLEEP_H
#define CS_THREADS_ASLEEP_H

#include "signal/thread.h"
#include "threads/sleeper.h"

enum {
  CS_ASLEEP_OBJECT = 512,        // bytes of the runtime's Thread that a walk may read
  CS_ASLEEP_MOST = 1024 * 1024,  // of a stack: deeper ones are left to the signal
};

enum cs_asleep_answer {
  CS_ASLEEP_YES,
  CS_ASLEEP_RESTLESS,  // it runs, or wants to, and did when it was looked at last
  CS_ASLEEP_RUNNING,   // it runs, but was asleep then: worth a nap and another try
  CS_ASLEEP_MOVED,     // it has run meanwhile: try again
  CS_ASLEEP_NO,        // it cannot be walked so: in cooperative mode, on another stack, ...
};

// One for each who walks at a time; zeroed to begin with, its memory is kept.
struct cs_asleep {
  struct cs_world world;  // this process', and the copy before it. First: the reader finds it so
  struct cs_regs regs;    // rip and rsp, the only ones that the kernel tells
  struct cs_stack stack;
  uint64_t clr_thread;
  uint64_t runs;  // the thread's count, as long as which the copy is true
  // The rest is private to asleep.c.
  const struct cs_mem *process;  // without the copy
  struct cs_sleeper *sleeper, own;
  uint64_t from, to;      // the part of the stack that is in `bytes`
  uint8_t *bytes;         // CS_ASLEEP_MOST of them
  uint32_t object_bytes;  // the Thread's that are in `object`
  uint8_t object[CS_ASLEEP_OBJECT];
  bool beyond;  // something outside of the copy was read that holds only while the thread sleeps
  bool moved;   // it was seen to have run: nothing more was copied
};

// A thread that is found running, but was asleep when it was looked at last, may be so again in a
// moment. A signal would meet it on its way there, and be the EINTR that is to be avoided; so it is
// given some time.
enum { CS_ASLEEP_PATIENCE = 4, CS_ASLEEP_NAP_US = 50 };

// `thread` is pinned. On anything but CS_ASLEEP_YES there is nothing to end.
enum cs_asleep_answer cs_asleep_begin(struct cs_asleep *asleep, struct cs_thread *thread);
bool cs_asleep_end(struct cs_asleep *asleep);
// Before the end: something that is not in the copy was read of the thread, too, and belongs to it
// only if the thread has slept until now.
void cs_asleep_read_beyond(struct cs_asleep *asleep);
// Has the thread, which is pinned, slept ever since the walk that had this run count (`runs`)? One
// file tells. False, too, where it cannot be told.
bool cs_asleep_stays(const struct cs_thread *thread, uint64_t runs);
// It was still running after all that patience: it is restless now.
void cs_asleep_give_up(struct cs_thread *thread);

#endif
