// SPDX-License-Identifier: MIT
// sleeper: what /proc says about a thread that is blocked in the kernel: where it is blocked, and
// its run count. The thread is not woken. Not for handlers.
#pragma once

#include "base/own_file.h"
#include "signal/thread.h"

// A thread's two open files in /proc. They belong to the thread, not to its tid: after its end they
// are empty, even if the tid is reused. A file that the program has closed is reopened when it is
// read, so it is read only while the thread is pinned.
struct cs_sleeper {
  struct cs_own_file where, runs;
  uint32_t tid, opening;  // `opening` is the lock of that; a reader that finds it taken fails
  // Where the thread last slept, and its run count then: while that is the same, it has not run,
  // and is still there. `busy` is the lock of these.
  uint32_t busy;
  uint64_t slept_runs, slept_sp, slept_ip;
  uint32_t restless;            // consecutive checks that found it running
  uint32_t calm;                // consecutive walks for requests that found it asleep
  uint64_t stack_lo, stack_hi;  // from /proc/self/maps; 0: not needed so far
};

enum cs_sleep {
  CS_SLEEP_BLOCKED,  // in a system call, off the processor
  CS_SLEEP_RUNNING,  // or runnable
  CS_SLEEP_UNKNOWN,  // not known, or not usable: stopped by a debugger, in vfork, gone
};

// Finds out which run count this kernel has; once, at start. Returns false if there is none, and
// then no thread is ever walked while asleep.
bool cs_sleeper_init(void);
// How runs are counted. Chosen at start; tests set the slower one.
enum cs_run_count { CS_RUNS_NONE, CS_RUNS_SCHEDSTAT, CS_RUNS_SWITCHES };
enum cs_run_count cs_sleeper_count_by(enum cs_run_count kind);  // returns the previous kind
enum cs_run_count cs_sleeper_counts_by(void);

// Opens the file of this name of a thread in /proc, for reading. Returns a descriptor, or -1.
int cs_thread_file_open(uint32_t tid, const char *name);

// Opens the files of a pinned thread. They stay open in a table of up to 4,096 threads; if that is
// full, they are opened into `spare`, and closed by cs_sleeper_close. Returns NULL if they cannot
// be opened.
struct cs_sleeper *cs_sleeper_open(struct cs_thread *thread, struct cs_sleeper *spare);
void cs_sleeper_close(struct cs_sleeper *sleeper, const struct cs_sleeper *spare);
// Closes the files of a thread that has ended and is no longer pinned.
void cs_sleeper_forget(struct cs_thread *thread);

// Reads how often the thread has been given a processor. Returns false if it is gone. If the count
// before cs_sleeper_where equals the count after something was read, the thread has not run in
// between, and was blocked where cs_sleeper_where says.
bool cs_sleeper_runs(struct cs_sleeper *sleeper, uint64_t *runs);
// The same for a thread without a place in the table.
bool cs_sleeper_runs_once(uint32_t tid, uint64_t *runs);
enum cs_sleep cs_sleeper_where(struct cs_sleeper *sleeper, uint64_t *sp, uint64_t *ip);
long cs_sleeper_call(struct cs_sleeper *sleeper);  // returns the system call's number; -1: none
// Returns whether the thread has not run since it was blocked at `sp` and `ip` with this run count.
// A count of context switches alone does not exclude that it is running, so then this also checks
// where it is blocked.
bool cs_sleeper_is_still(struct cs_sleeper *sleeper, uint64_t runs, uint64_t sp, uint64_t ip);

// Returns its place in the table, less than cs_sleeper_places(), or -1 if it has none. For callers
// that keep more about a thread.
int cs_sleeper_place(const struct cs_sleeper *sleeper);
uint32_t cs_sleeper_places(void);
// Locks what is kept of the sleeper, only for as long as a copy takes. Returns false if it is
// locked.
bool cs_sleeper_try_lock(struct cs_sleeper *sleeper);
void cs_sleeper_unlock(struct cs_sleeper *sleeper);

// Returns whether the thread has not run since cs_sleeper_note; then *sp and *ip are where it is
// blocked.
bool cs_sleeper_recall(struct cs_sleeper *sleeper, uint64_t runs, uint64_t *sp, uint64_t *ip);
void cs_sleeper_note(struct cs_sleeper *sleeper, uint64_t runs, uint64_t sp, uint64_t ip);
