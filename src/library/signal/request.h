// SPDX-License-Identifier: MIT
// request: "walk yourself", from a requester to a target, by a signal. Signal-safe: yes.
//
// Slots are static and never freed. The state in a slot's word says which side may write the slot;
// the sequence number beside it changes with every request, so an answer that comes too late finds
// another one there and touches nothing.
//
//   state      may write the slot              next state
//   FREE       nobody                          CLAIMED    by a requester
//   CLAIMED    the requester                   PENDING    when all is filled in
//                                              FREE       when it is done
//   PENDING    nobody: the signal is on its    WALKING    by the target
//              way                             FREE *     when the requester gives up
//   WALKING    the target                      DONE       by the target
//                                              HELD       by the target, if it is to be held
//                                              PARKED     when the requester gives up
//   PARKED     the target                      FREE *     by the target
//   DONE       the requester                   as CLAIMED
//   HELD       the requester; the target       RELEASED   by the requester
//              waits                           EXPIRED    by the target, when the time is up
//   RELEASED   the target, to leave            FREE *     by the target
//   EXPIRED    the requester                   as CLAIMED
//
//   * with the next sequence number
#pragma once

#include "signal/capture.h"
#include "signal/thread.h"

enum {
  CS_REQUEST_SLOTS = 64,  // requests at a time; a further requester waits for a slot
  // Further slots, for threads that are asked before somebody wants their walk (snapshot/round.h).
  CS_REQUEST_AHEAD = 256,
  CS_REQUEST_ALL = CS_REQUEST_SLOTS + CS_REQUEST_AHEAD,
};

enum cs_request_state {
  CS_REQUEST_FREE,
  CS_REQUEST_CLAIMED,
  CS_REQUEST_PENDING,
  CS_REQUEST_WALKING,
  CS_REQUEST_PARKED,
  CS_REQUEST_DONE,
  CS_REQUEST_HELD,
  CS_REQUEST_RELEASED,
  CS_REQUEST_EXPIRED,
};

enum cs_request_flag {
  CS_REQUEST_HOLD = 1,       // wait after the walk until released
  CS_REQUEST_INTRODUCE = 2,  // no walk: only the registers and the thread pointer
  CS_REQUEST_SEED = 4,       // walk from `seed`, if the target is in cooperative mode
  CS_REQUEST_PLAIN = 8,      // the frames' rbx and r12 to r15 are not needed
  CS_REQUEST_ALTSTACK = 16,  // also take the larger alternate stack: only while the runtime is
                             // suspended
  CS_REQUEST_LOGICAL = 32,   // frames as DoStackSnapshot reports them are enough (request.reported)
  CS_REQUEST_ROUND = 64,     // for a while, an unchanged CPU clock proves that a thread has slept
  CS_REQUEST_UNPINNED = 128,  // asked ahead: not the requester pins the thread, but its handler
};

enum cs_request_answer {
  CS_ANSWER_WALKED,
  CS_ANSWER_NOT_READY,     // there is no world to walk in
  CS_ANSWER_WRONG_THREAD,  // the tid belongs to another thread by now
  CS_ANSWER_SEED_SP,       // the seed's sp is not on the target's stack
  CS_ANSWER_SEED_IP,       // the seed's ip is not in managed code
};

// A frame as it is reported to DoStackSnapshot's callback, without a CONTEXT.
struct cs_reported {
  uint64_t function, ip;
};
enum { CS_MOST_REPORTED = 64 };

struct cs_request {
  uint64_t word;  // sequence << 16 | state. A futex waits on its low half
  // Filled in by the requester while CLAIMED:
  uint32_t sleeps;     // the requester waits in the kernel; written by it at any time
  uint32_t requester;  // its thread id
  uint32_t holder;     // the same while it holds the target for its caller (clrsnap_hold), else 0
  uint32_t flags;
  uint32_t tid;
  uint32_t max_depth;
  uint64_t clr_thread;
  struct cs_thread *thread;  // may be NULL
  struct cs_stack stack;     // the alternate stack is taken from the signal's own ucontext
  int64_t hold_until[2];     // CLOCK_MONOTONIC, seconds and nanoseconds
  struct cs_regs seed;
  // Filled in by the target while WALKING:
  uint32_t answer;  // enum cs_request_answer
  uint64_t thread_pointer;
  uint64_t entry_tsc, exit_tsc;  // of the handler, up to DONE or HELD
  struct cs_capture capture;
  // Filled in by the requester, from an earlier walk (snapshot/sleeping.h), in place of the
  // capture's records. A count of 0 means that it was not.
  uint32_t reported_count;
  struct cs_reported reported[CS_MOST_REPORTED];
};

extern struct cs_request cs_requests[CS_REQUEST_ALL] __attribute__((visibility("hidden")));

#define CS_REQUEST_STATE(word) ((enum cs_request_state)((word)&0xFFFFu))
#define CS_REQUEST_WORD(sequence, state) ((uint64_t)(sequence) << 16 | (uint64_t)(state))
#define CS_REQUEST_SEQUENCE(word) ((word) >> 16)
// What travels with the signal: the mark, the slot's index, and the sequence.
#define CS_REQUEST_SIGVAL(index, sequence) \
  ((uint64_t)(sequence) << 16 | (uint64_t)(index) << 1 | CS_SIGVAL_REQUEST)

// Returns when the target's hold ends, in ns of CLOCK_MONOTONIC.
static inline uint64_t cs_request_hold_end(const struct cs_request *request) {
  return (uint64_t)request->hold_until[0] * 1000000000u + (uint64_t)request->hold_until[1];
}

// Serves the request that the signal's value names, on the target.
CS_ISLAND void cs_request_serve(uint64_t value, const struct cs_regs *regs, void *ucontext,
                                uint64_t entry_tsc);
// Checks a seed against the target's stack. Returns CS_ANSWER_WALKED if it can be used.
CS_ISLAND enum cs_request_answer cs_seed_check(const struct cs_world *world,
                                               const struct cs_regs *seed,
                                               const struct cs_stack *stack);
