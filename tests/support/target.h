// SPDX-License-Identifier: MIT
// Plain threads as targets of requests and holds. A ThreadID here is the address of a small zeroed
// object. Targets live in static memory: a failed test is left by a jump, and the memory that its
// threads use must still be there when targets_end stops them.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "clrsnap/clrsnap.h"

struct target_opts {
  bool block_signal;  // from the start, until `unblock`
  bool attached;      // does not announce itself: known from before, as after an attach
  bool silent_end;    // does not say that it ends
};

struct target {
  uint64_t fake_thread[64];  // what stands for the runtime's Thread: no frames, preemptive mode
  struct target_opts opts;
  pthread_t pthread;
  bool running;
  _Atomic uint32_t tid;
  atomic_bool quit, unblock, errno_changed;
  _Atomic uint64_t beats;  // goes up while the thread runs
  stack_t alternate_before, alternate_inside, alternate_after;
};

// Starts a target and waits until it runs. Ends the program if that fails.
struct target *target_start(struct target_opts opts);
// Ends the target's thread; the target's fields keep their values.
void target_end(struct target *target);
// Ends all threads that a failed test has left, and clears the table. Called after each test.
void targets_end(void);
void target_wait_for_beats(struct target *target, uint64_t beats);
ThreadID target_id(struct target *target);
// Whether `ip` is in the code that targets run.
bool target_owns_ip(UINT_PTR ip);

// TSan delivers a signal late, at the thread's next atomic operation or the like (so not while the
// thread waits in a futex, a call that is restarted after a handler), and with a copy of the
// registers as they were when the signal arrived. A walk from these registers reads a stack that
// has been reused since. So requests and holds can be tested under TSan, but not the result of a
// walk of another thread.
#ifdef __SANITIZE_THREAD__
enum { SIGNALS_AT_ONCE = 0 };
#else
enum { SIGNALS_AT_ONCE = 1 };
#endif
