// SPDX-License-Identifier: MIT
// sleeper: what the kernel tells of a thread that is blocked in it, without waking it: where it
// stands, and how often it has run. Not for handlers.
#ifndef CS_THREADS_SLEEPER_H
#define CS_THREADS_SLEEPER_H

#include "signal/thread.h"

// A thread's two files in /proc. They name the thread itself, not its number: after its end they
// answer nothing, whoever has the number then.
struct cs_sleeper {
  int where, runs;  // descriptors; -1: not open
  // Where it was seen asleep last, and its run count then: as long as that has not changed, it has
  // not run, and is there still. `busy`: somebody is at these.
  uint32_t busy;
  uint64_t seen_runs, seen_sp, seen_ip;
  uint32_t restless;            // looks in a row that have found it running
  uint32_t calm;                // and walks for a request that have found it asleep
  uint64_t stack_lo, stack_hi;  // found in /proc/self/maps; 0: not needed so far
};

enum cs_sleep {
  CS_SLEEP_BLOCKED,  // in a system call, off the processor
  CS_SLEEP_RUNNING,  // or about to
  CS_SLEEP_UNKNOWN,  // cannot be told, or not used: stopped elsewhere, in vfork, gone
};

// Tries which of the kernel's counts can be relied on; once, at start. False: none, and then no
// thread is ever walked asleep.
bool cs_sleeper_init(void);
// How runs are counted, for tests: the kind that is chosen at start, or the slower one.
enum cs_run_count { CS_RUNS_NONE, CS_RUNS_SCHEDSTAT, CS_RUNS_SWITCHES };
enum cs_run_count cs_sleeper_count_by(enum cs_run_count kind);  // answers the one before
enum cs_run_count cs_sleeper_counts_by(void);

// The thread's files, kept open in a table of some thousand; those that have no place there are
// opened into `own`, and closed by cs_sleeper_close. NULL: they cannot be opened. `thread` is
// pinned.
struct cs_sleeper *cs_sleeper_open(struct cs_thread *thread, struct cs_sleeper *own);
void cs_sleeper_close(struct cs_sleeper *sleeper, const struct cs_sleeper *own);
// The thread has ended: nobody has it pinned any more.
void cs_sleeper_forget(struct cs_thread *thread);

// How often the thread has been given a processor. False: it is gone. The count taken before
// cs_sleeper_where and one taken after something was read are equal: the thread has not run in
// between, and is blocked where cs_sleeper_where has said.
bool cs_sleeper_runs(const struct cs_sleeper *sleeper, uint64_t *runs);
enum cs_sleep cs_sleeper_where(const struct cs_sleeper *sleeper, uint64_t *sp, uint64_t *ip);
long cs_sleeper_call(const struct cs_sleeper *sleeper);  // the system call; -1: in none
// With context switches the count alone does not say that the thread does not run right now.
bool cs_sleeper_is_still(const struct cs_sleeper *sleeper, uint64_t runs, uint64_t sp, uint64_t ip);

// Its place in the table, less than cs_sleeper_places(); -1: it has none. For callers that
// keep more of it than is in here.
int cs_sleeper_place(const struct cs_sleeper *sleeper);
uint32_t cs_sleeper_places(void);
// For the few instructions that what is kept is copied in. False: somebody else is at it.
bool cs_sleeper_try_lock(struct cs_sleeper *sleeper);
void cs_sleeper_unlock(struct cs_sleeper *sleeper);

// Has it not run since it was last seen asleep? Then where. And the way to say so.
bool cs_sleeper_recall(struct cs_sleeper *sleeper, uint64_t runs, uint64_t *sp, uint64_t *ip);
void cs_sleeper_note(struct cs_sleeper *sleeper, uint64_t runs, uint64_t sp, uint64_t ip);

#endif
