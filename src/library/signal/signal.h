// SPDX-License-Identifier: MIT
// signal: what runs in the handler, and the memory that it shares with those who ask.
// Signal-safe: everything marked CS_ISLAND; the rest of this header is plain data.
//
// One real-time signal serves two purposes, told apart by what travels with it:
//   a request   rt_tgsigqueueinfo, value = CS_SIGVAL_REQUEST | slot | sequence: a snapshot is
//   wanted
//   a sample    timer_create's signal or rt_tgsigqueueinfo, value = struct cs_thread *
#ifndef CS_SIGNAL_SIGNAL_H
#define CS_SIGNAL_SIGNAL_H

#include <signal.h>

#include "walk/walk.h"

// The larger alternate signal stack of a thread (docs/signal-safety.md, "Alternate stacks").
struct cs_altstack {
  uint64_t sp, size;          // ours; 0: none was made for this thread
  uint64_t old_sp, old_size;  // what the thread had before, to be put back
  uint32_t old_flags;
  uint32_t swapped;  // 1: old_* are set. Written by the thread itself only
  uint32_t ready;    // 1: it is in place and stays. Until then a signal could kill the process
  uint32_t tid;      // whose it is
};

// No thread spends more than a tenth of its time on samples: after one that took n, none is taken
// until nine times n have passed (signal/rest.c). Written by the thread itself, in the handler or
// where an event has it walk.
struct cs_rest {
  uint64_t until;         // of the time-stamp counter: no sample before
  uint64_t until_cpu;     // of the thread's CPU clock, after a sample that took long; else 0
  uint64_t events_until;  // the same of events, which have an account of their own
  uint32_t put_off;       // signals that came before their time since the last sample, and of them
  uint32_t expirations;   // the timer's expirations, which its next sample stands for, too
  uint32_t ever;          // signals that were put off; never reset
};

// The perf event of a thread that the engine perf samples (signal/perf.c): its task clock, or what
// is counted in its stead. All but `fd` and `ring` is its handler's.
struct cs_perf_event {
  int32_t fd;        // 0: none
  uint64_t due_ns;   // of its CPU clock, the next sample
  uint64_t counted;  // of an event that is no clock: what the next sample stands for; else 0
  uint64_t random;   // never 0
  uint8_t *ring;  // what the kernel writes of overflows: CS_PERF_RING_BYTES; NULL: none is wanted
};
enum {
  CS_PERF_MAX_FD = 1 << 20,  // descriptors of events are below it
  // The kernel's page about the ring, and one for its records. With one overflow at a time, of
  // CS_KERNEL_MOST frames at most, there is no need for more.
  CS_PERF_PAGE = 4096,
  CS_PERF_RING_BYTES = 2 * CS_PERF_PAGE,
  CS_KERNEL_MOST = 127,
};

// A thread that may be walked. Entries come from an arena, are never freed and are reused with a
// new generation, so that a late signal that names one never touches unmapped memory.
// Has a thread's own stack room for a signal (docs/signal-safety.md, "Little stack")?
enum cs_room {
  CS_ROOM_UNKNOWN,
  CS_ROOM_ENOUGH,  // for a native thread; a managed one's is seen from its `stack`
  CS_ROOM_SMALL,
};
enum { CS_LEAST_STACK = 64 << 10 };  // bytes, of a thread that is sent signals

struct cs_thread {
  uint32_t tid;         // 0: not in use. Written with release after everything else is set
  uint32_t generation;  // bumped each time the entry is given away or taken back
  uint64_t clr_thread;  // ThreadID; 0 for a native thread
  struct cs_stack stack;
  uint64_t cpu_ns;  // its CPU clock, up to which its samples stand for its time: its handler's
  struct cs_perf_event perf;
  // What it has been asked for and not done yet: CS_ASKED_ bits. As long as there are any, a signal
  // is on its way, and no other one is sent. The agent's thread sets them, the handler takes them.
  uint32_t asked;
  uint64_t asked_weight;  // CS_ASKED_LOOK: what that sample stands for; set before the bit is
  uint32_t sampling;      // 0: signals that ask for a sample are ignored (the thread is going away)
  uint32_t index;         // its place in the registry
  uint64_t thread_pointer;  // what %fs:0 is on it; 0: not known yet
  uint32_t walkers;         // who has it pinned: ThreadDestroyed waits for 0 (contract: C18)
  uint32_t room;            // enum cs_room, of a native thread: native_threads.c
  uint32_t ending;          // 1: ThreadDestroyed has been told, the runtime's Thread goes with it
  struct cs_altstack altstack;
  void *agent;                  // the agent's own data for this thread
  struct cs_sleeper *sleeper;   // threads/sleeper.h; NULL until it is looked at
  struct cs_label_slot *label;  // signal/label.h; NULL: it has had none so far
  struct cs_rest rest;
};

// Epoch: how many handlers are walking right now. Whoever is about to free what a walk may read
// calls cs_epoch_wait (snapshot room) after making it unreachable.
struct cs_epoch {
  uint32_t active[2];  // handlers inside, by parity of `turn`
  uint32_t turn;
};
CS_ISLAND uint32_t cs_epoch_enter(struct cs_epoch *epoch);  // answers the parity to leave with
CS_ISLAND void cs_epoch_leave(struct cs_epoch *epoch, uint32_t parity);

// The calling thread's thread pointer: on x86-64 its own address is its first word (psABI, TLS
// variant II).
CS_ISLAND static inline uint64_t cs_thread_pointer(void) {
  uint64_t pointer;
  __asm__("mov %%fs:0, %0" : "=r"(pointer));
  return pointer;
}
// Is the calling thread the one of this entry? A signal that was on its way when its thread went
// may arrive on the tid's next owner. The kernel is asked for the tid once a thread; then its
// thread pointer is known (the call takes 0.7 us of a handler that takes 2 in all).
CS_ISLAND bool cs_thread_is_own(struct cs_thread *thread);

struct cs_sample_ring;  // signal/sample.h
struct cs_awaits;       // signal/awaits.h

struct cs_signal_state {
  struct cs_world *world;       // NULL until everything that a walk needs is ready
  struct cs_sample_ring *ring;  // NULL: samples are not being taken
  struct cs_awaits *awaits;     // NULL: who awaits is not looked for
  struct cs_epoch epoch;
  uint64_t threads_lo, threads_hi;   // the registry's arena: a sample's value must point into it
  uint32_t threads_used;             // entries of it that have ever been given away
  uint64_t ticks_of_ns, ns_of_tick;  // ticks of the time-stamp counter in a nanosecond, and the
                                     // other way round; 32.32. 0: not known yet
  uint64_t request_limit_ns;         // what a walk for a request may use; 0: no limit
  uint32_t small_stacks;   // 1: threads may stand on stacks that have no room for a signal; none is
                           // sent any more, and those on their way are ignored
  uint32_t *perf_threads;  // by an event's descriptor: its entry's index + 1, or 0; or NULL
  uint64_t period;         // between two samples of an event: ns of CPU time, or as it counts
  uint32_t counts;         // 1: events are no clocks
  uint32_t labels;         // the number of the recording that wants labels; 0: none does
  int pid;                 // this process; a forked child's differs, and nothing is served there
};
// Hidden even where it is only declared, so that the island reaches it without a relocation table.
extern struct cs_signal_state cs_signal __attribute__((visibility("hidden")));

// The handler itself (signal/handler.c): SA_SIGINFO | SA_RESTART, never SA_ONSTACK.
CS_ISLAND void cs_signal_handler(int signo, siginfo_t *info, void *ucontext);

// SIGURG's, with the same flags: of threads that are asked for samples, and of perf events.
CS_ISLAND void cs_urg_handler(int signo, siginfo_t *info, void *ucontext);
// signal/perf.c: whose event has signalled; NULL: none of ours has. Is the calling thread's task
// clock due? Arms its event again; `now_ns` is its CPU clock. How long a task clock is to wait.
CS_ISLAND struct cs_thread *cs_perf_thread_of(const siginfo_t *info);
CS_ISLAND bool cs_perf_is_due(const struct cs_thread *thread);
CS_ISLAND void cs_perf_rearm(struct cs_thread *thread, uint64_t now_ns);
CS_ISLAND uint64_t cs_perf_wait(struct cs_perf_event *event, uint64_t now_ns, uint64_t period_ns,
                                uint64_t least_ns);
// signal/kernel.c: the kernel's part of the stack that the calling thread's event has found it on,
// if that is the stack of `regs`. Up to `most` addresses, the innermost first. Returns how many; 0:
// it was not in the kernel; CS_KERNEL_UNKNOWN: it is not known whether it was.
#define CS_KERNEL_UNKNOWN UINT32_MAX
CS_ISLAND uint32_t cs_kernel_stack(const struct cs_thread *thread, const struct cs_regs *regs,
                                   uint64_t *out, uint32_t most);
// Forgets what has been written up to now.
CS_ISLAND void cs_kernel_forget(const struct cs_perf_event *event);

// The alternate stack that the interrupted thread has at this moment, 0 and 0 if none; and the way
// to give it a larger one when it returns from the handler (docs/signal-safety.md). Equip does so
// for all handlers that the thread is in, by the walk that was just taken, and sets `ready` then.
CS_ISLAND void cs_altstack_of(const void *ucontext, uint64_t *lo, uint64_t *hi);
CS_ISLAND void cs_altstack_install(struct cs_altstack *ours, void *ucontext);
struct cs_capture;  // signal/request.h
CS_ISLAND void cs_altstack_equip(struct cs_altstack *ours, const struct cs_capture *capture,
                                 const struct cs_stack *stack, void *ucontext);

// Reads the interrupted registers of a ucontext_t. All are known.
CS_ISLAND void cs_regs_from_ucontext(struct cs_regs *regs, const void *ucontext);

#define CS_SIGVAL_REQUEST 1u  // lowest bit of the signal's value; a struct cs_thread * has it clear

enum cs_asked {
  CS_ASKED_WALL = 1,  // a sample of CS_CAUSE_WALL
  CS_ASKED_LOOK = 2,  // one of CS_CAUSE_LOOK
};

// What has made a thread take a sample.
enum cs_cause {
  CS_CAUSE_NONE,     // it has not: another one has while it slept, or it is an event's
  CS_CAUSE_WALL,     // a look at all threads
  CS_CAUSE_TIMER,    // a timer of its CPU clock, which the kernel looks at in its tick
  CS_CAUSE_CLOCKED,  // an engine whose samples stand for the CPU time since the thread's last one
  CS_CAUSE_LOOK,     // a look at the threads that have a processor
};
struct cs_signal_cause {
  uint64_t entry_tsc;  // the time-stamp when the handler was entered
  enum cs_cause cause;
  uint32_t overrun;  // CS_CAUSE_TIMER: expirations that the kernel merged into this signal
  uint64_t weight;   // CS_CAUSE_LOOK: what the sample stands for
};
// Takes one sample of the calling thread into the ring (signal/sample.c).
CS_ISLAND void cs_sample_take(struct cs_thread *thread, const struct cs_regs *regs,
                              const struct cs_signal_cause *cause);

#endif
