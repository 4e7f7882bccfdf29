// SPDX-License-Identifier: MIT
// thread: an entry of the registry of threads, which names the thread in a signal. Signal-safe:
// yes.
#pragma once

#include "base/regs.h"
#include "signal/signal.h"

// The larger alternate signal stack of a thread (docs/signal-safety.md, "Alternate stacks").
struct cs_altstack {
  uint64_t sp, size;          // ours; 0: none was made for this thread
  uint64_t old_sp, old_size;  // what the thread had before, to be put back
  uint32_t old_flags;
  uint32_t swapped;  // 1: old_* are set. Written by the thread itself only
  uint32_t ready;    // 1: it is in place and stays. Until then a signal could kill the process
  uint32_t tid;      // of the thread that it was made for
  // 1: a signal that has the thread take it is on its way. Set by the sender, cleared by the
  // handler.
  uint32_t asked;
};

// No thread spends more than a tenth of its time on samples: after one that took n, none is taken
// until nine times n have passed (signal/cooldown.h). Written by the thread itself, in the handler
// or where an event has it walk.
struct cs_cooldown {
  uint64_t until;         // of the time-stamp counter: no sample before
  uint64_t until_cpu;     // of the thread's CPU clock, after a sample that took long; else 0
  uint64_t events_until;  // the same for events, which have an account of their own
  uint64_t owed;          // CS_CAUSE_SCAN: the weight of samples not taken, which the next one adds
  uint64_t cost_ns;       // what the last sample has cost
  uint32_t put_off;       // signals that came during the cooldown since the last sample
  uint32_t ever;          // signals that were put off; never reset
};

// The perf event of a thread that the perf engine samples (signal/perf.h): its task clock, or a
// count of something else. The thread's handler writes all but `fd` and `ring`.
struct cs_perf_event {
  int32_t fd;        // 0: none
  uint64_t due_ns;   // when its next sample is due, by its CPU clock
  uint64_t counted;  // of an event that is not a clock: what the next sample stands for; else 0
  uint64_t random;   // never 0
  uint8_t *ring;     // the kernel's records of overflows, CS_PERF_RING_BYTES; NULL: none are wanted
};
enum {
  CS_PERF_MAX_FD = 1 << 20,  // descriptors of events are below it
  // The kernel's page about the ring, and one for its records. With one overflow at a time, of
  // CS_KERNEL_MOST frames at most, there is no need for more.
  CS_PERF_PAGE = 4096,
  CS_PERF_RING_BYTES = 2 * CS_PERF_PAGE,
  CS_KERNEL_MOST = 127,
};

// Whether a thread's own stack has room for a signal (docs/signal-safety.md, "Small stacks").
enum cs_stack_room {
  CS_ROOM_UNKNOWN,
  CS_ROOM_ENOUGH,  // for a native thread; a managed one's follows from its `stack`
  CS_ROOM_SMALL,
};
enum { CS_LEAST_STACK = 64 << 10 };  // bytes, of a thread that is sent signals

// What the agent asks a thread for.
enum cs_asked {
  CS_ASKED_WALL = 1,       // a sample of CS_CAUSE_WALL
  CS_ASKED_SCAN = 2,       // one of CS_CAUSE_SCAN
  CS_ASKED_STRAGGLER = 4,  // one of CS_CAUSE_STRAGGLER
  CS_ASKED_HOLD = 8,       // one of CS_CAUSE_HOLDS
  CS_ASKED_REGS = 16,  // to report its registers (struct cs_reported_regs), which is not a sample
};

// The registers that a handler has reported, for walks of the thread while it sleeps where it did
// then. The handler writes it, and `times` last; others read it while the thread sleeps.
struct cs_reported_regs {
  uint32_t times;  // 0: never
  struct cs_regs regs;
};

// A lock that the thread held when the agent looked, and what a sample of the thread stands for if
// it holds that still. Set before CS_ASKED_HOLD is, and not changed until it is taken.
struct cs_hold {
  uint64_t owner_at;  // where the runtime has the id of the lock's owner
  uint64_t weight;    // the time that others have waited, ns
  uint64_t class;     // struct cs_sample.class, of an object of that generation of code
  uint32_t mode, generation;
};

// A thread that may be walked. Entries come from an arena, are never freed and are reused with a
// new generation, so that a late signal that names one never touches unmapped memory.
struct cs_thread {
  uint32_t tid;         // 0: not in use. Written with release after everything else is set
  uint32_t generation;  // counted up when the entry is given to a thread, and when it is free again
  uint64_t clr_thread;  // ThreadID; 0 for a native thread
  struct cs_stack stack;
  uint64_t cpu_ns;  // its samples stand for its CPU time up to here; its handler's
  struct cs_perf_event perf;
  // CS_ASKED_ bits that are not done yet. As long as there are any, a signal is on its way, and no
  // other one is sent. The agent's thread sets them, the handler takes them.
  uint32_t asked;
  uint64_t asked_weight;  // CS_ASKED_SCAN: what that sample stands for; set before the bit is
  uint64_t asked_cpu_ns;  // its CPU clock when the signal was sent; 0: not known. Atomic
  uint32_t asked_type;    // CS_ASKED_STRAGGLER: that sample's `type`. Atomic
  struct cs_hold hold;    // CS_ASKED_HOLD
  struct cs_reported_regs reported;  // CS_ASKED_REGS
  uint32_t sampling;  // 0: signals that ask for a sample are ignored (the thread is going away)
  uint32_t index;     // its place in the registry
  uint64_t thread_pointer;  // cs_thread_pointer on it; 0: not known yet
  uint32_t walkers;         // how many walks pin it: ThreadDestroyed waits for 0 (contract: C18)
  uint32_t ahead;           // snapshot/round.c: 1 + its place there; 0: not met yet
  uint32_t blocks;          // threads/ask.c: 1: it was found to block the signal. Atomic
  uint32_t room;            // enum cs_stack_room, of a native thread: threads/native_stack.c
  uint32_t ending;          // 1: ThreadDestroyed has begun, and the runtime's Thread goes with it
  struct cs_altstack altstack;
  void *agent;                  // the agent's own data for this thread
  struct cs_sleeper *sleeper;   // threads/sleeper.h; NULL until it is looked at
  struct cs_label_slot *label;  // signal/label.h; NULL: it has had none so far
  struct cs_cooldown cooldown;
};

// In `walkers`: the last unpin wakes ThreadDestroyed.
#define CS_THREAD_AWAITED 0x80000000u

// cs_thread_pin and cs_thread_unpin (threads/registry.h) for a thread's own handler. Those are not
// these, because TSan would not see what a pin orders: it does not instrument the island.
CS_ISLAND bool cs_thread_pin_self(struct cs_thread *thread, uint64_t clr_thread);
CS_ISLAND void cs_thread_unpin_self(struct cs_thread *thread);

// Returns whether this is the entry of the calling thread. A signal that was on its way when its
// thread ended may arrive on the next owner of the tid. The kernel is asked for the tid once per
// thread, since the call takes 0.7 us of a handler that takes 2 in all; after that the thread
// pointer is known.
CS_ISLAND bool cs_thread_is_caller(struct cs_thread *thread);
