// SPDX-License-Identifier: MIT
// A request: "walk yourself", from a requester to a target, by a signal. Slots are static and never
// freed; a slot's word says whose turn it is, so that an answer that comes too late finds another
// sequence number there and touches nothing.
//
//   word   who may write the slot                next
//   FREE      nobody                             CLAIMED by a requester
//   CLAIMED   the requester                      PENDING when all is filled in; FREE when it is
//   done PENDING   nobody; the signal is on its way   WALKING by the target; FREE (next sequence)
//   when
//                                                the requester gives up
//   WALKING   the target                         DONE or HELD by the target; PARKED by the
//   requester
//                                                when it gives up
//   PARKED    the target                         FREE (next sequence) by the target
//   DONE      the requester                      FREE, as CLAIMED
//   HELD      the requester; the target waits    RELEASED by the requester; EXPIRED by the target
//                                                when the time is up
//   RELEASED  the target, to leave               FREE (next sequence) by the target
//   EXPIRED   the requester                      FREE, as CLAIMED
#ifndef CS_SIGNAL_REQUEST_H
#define CS_SIGNAL_REQUEST_H

#include "signal/signal.h"
#include "walk/record.h"

enum { CS_REQUEST_SLOTS = 64 };  // requesters at a time; one more waits for a slot

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

// What became of a walk.
struct cs_capture {
  struct cs_record *records;  // capacity of them, the slot's own memory
  uint32_t capacity, count;
  enum cs_stop stop;
  uint64_t stop_ip;
  uint32_t generation;     // of the code map at the time of the walk
  uint32_t module_deaths;  // by the requester, before it asks: cs_module_deaths()
  uint64_t limit_ns;       // of the walk's CPU time: in a handler only, else 0 (none)
  bool plain;              // by the requester: CS_REQUEST_PLAIN
  bool own;                // of the calling thread: its frames live while it waits here
  bool held;               // of a thread that the requester holds: so do its
  bool seeded;             // the walk began at the request's seed
  bool asleep;  // by the requester, while the thread was blocked in the kernel: threads/asleep.h
  bool kept;    // with `asleep`: it was kept from an earlier walk: snapshot/sleeping.c
  uint64_t asleep_runs;             // the target's run count then
  uint64_t unwound_lo, unwound_hi;  // frames whose caller's sp is in (lo, hi] have been unwound by
                                    // the exception under way, though they are still on the stack
  uint32_t exception_count;
  struct cs_exception exceptions[CS_EXCEPTIONS];  // the newest first
  bool in_unwind;           // an exception's second pass is between two handlers
  bool no_explicit_frames;  // the thread has called nothing and was called by nobody, as CoreCLR
                            // sees it
  uint32_t fault_count;
  struct cs_fault faults[CS_FAULTS];  // the newest first
  struct cs_regs leaf;                // all registers of the interrupted instruction
};

enum cs_request_flag {
  CS_REQUEST_HOLD = 1,       // wait after the walk until released
  CS_REQUEST_INTRODUCE = 2,  // no walk: only the registers and the thread pointer
  CS_REQUEST_SEED = 4,       // walk from `seed`, if the target is in cooperative mode
  CS_REQUEST_PLAIN = 8,      // nobody asks for the frames' rbx and r12 to r15
  CS_REQUEST_EQUIP = 16,     // and take the larger alternate stack: while the runtime stands still
};

enum cs_request_answer {
  CS_ANSWER_WALKED,
  CS_ANSWER_NOT_READY,     // there is no world to walk in
  CS_ANSWER_WRONG_THREAD,  // the tid belongs to another thread by now
  CS_ANSWER_SEED_SP,       // the seed's sp is not on the target's stack
  CS_ANSWER_SEED_IP,       // the seed's ip is not in managed code
};

struct cs_request {
  uint64_t word;  // sequence << 16 | state. A futex waits on its low half
  // Filled in by the requester while CLAIMED:
  uint32_t sleeps;  // the requester waits in the kernel; by itself, at any time
  uint32_t asker;   // its thread id
  uint32_t holder;  // the same while it holds the target for its caller (clrsnap_hold), else 0
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
};

extern struct cs_request cs_requests[CS_REQUEST_SLOTS] __attribute__((visibility("hidden")));

#define CS_REQUEST_STATE(word) ((enum cs_request_state)((word)&0xFFFFu))
#define CS_REQUEST_WORD(sequence, state) ((uint64_t)(sequence) << 16 | (uint64_t)(state))
#define CS_REQUEST_SEQUENCE(word) ((word) >> 16)
// What travels with the signal: the mark, the slot's index, and the sequence.
#define CS_REQUEST_SIGVAL(index, sequence) \
  ((uint64_t)(sequence) << 16 | (uint64_t)(index) << 1 | CS_SIGVAL_REQUEST)

// Walks into `capture`. The caller is inside the epoch. Fast: what a look-up costs only to name a
// frame is left open (method_start 0), for cs_capture_complete afterwards.
CS_ISLAND void cs_capture_walk(struct cs_capture *capture, const struct cs_world *world,
                               const struct cs_regs *regs, const struct cs_stack *stack,
                               uint64_t clr_thread, uint32_t max_depth);
// The target's part (signal/request.c).
CS_ISLAND void cs_request_serve(uint64_t value, const struct cs_regs *regs, void *ucontext,
                                uint64_t entry_tsc);
// Checks a seed against the thread; CS_ANSWER_WALKED when it can be used.
CS_ISLAND enum cs_request_answer cs_seed_check(const struct cs_world *world,
                                               const struct cs_regs *seed,
                                               const struct cs_stack *stack);

#endif
