// SPDX-License-Identifier: MIT
// What /proc says about a blocked thread. Any thread; not for handlers.
//
// Why an unchanged count proves that the thread has not run: /proc/.../syscall has registers only
// of a thread that is blocked and off every processor. To run, it must be switched in, and that is
// counted (schedstat's third field) before its first instruction. Kernels without that count have
// one of context switches (status), which rises when a thread stops running: there the thread must
// be found blocked a second time before the counts are compared (docs/signal-safety.md).
//
// Costs (Linux 6.18, descriptors open): syscall 1.8 us, schedstat 1.1 us, status 5.8 us; opening
// and closing one, 3.8 us more.
#include "threads/sleeper.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "threads/calls.h"

enum {
  SLEEPERS = 4096,     // threads whose files stay open, two descriptors each
  SHARE_OF_LIMIT = 8,  // but no more than this part of RLIMIT_NOFILE
  STATUS_BYTES = 4096,
};

static struct cs_sleeper sleepers[SLEEPERS];
static uint32_t taken[SLEEPERS];
static uint32_t places, next_place, in_use;
static uint32_t count_by = CS_RUNS_NONE;

enum cs_run_count cs_sleeper_counts_by(void) {
  return (enum cs_run_count)cs_load_relaxed(&count_by);
}
enum cs_run_count cs_sleeper_count_by(enum cs_run_count kind) {
  return (enum cs_run_count)__atomic_exchange_n(&count_by, (uint32_t)kind, __ATOMIC_SEQ_CST);
}

// ---- The files ----

static void close_files(struct cs_sleeper *sleeper) {
  cs_own_file_close(&sleeper->where);
  cs_own_file_close(&sleeper->runs);
}

int cs_thread_file_open(uint32_t tid, const char *name) {
  char path[64];
  (void)snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, name);
  return open(path, O_RDONLY | O_CLOEXEC);
}
static int open_where(uint32_t tid) {
  return cs_thread_file_open(tid, "syscall");
}
static int open_runs(uint32_t tid) {
  return cs_thread_file_open(tid,
                             cs_sleeper_counts_by() == CS_RUNS_SWITCHES ? "status" : "schedstat");
}

// `take`: cs_own_file_keep, or cs_own_file_take for a moment.
static bool open_files(struct cs_sleeper *sleeper, uint32_t tid,
                       bool (*take)(struct cs_own_file *, int)) {
  *sleeper = (struct cs_sleeper){.tid = tid};
  if (take(&sleeper->where, open_where(tid)) && take(&sleeper->runs, open_runs(tid))) return true;
  close_files(sleeper);
  return false;
}

// Takes a place in the table. Returns NULL if there is none.
static struct cs_sleeper *take_place(void) {
  if (cs_load_relaxed(&in_use) >= places) return NULL;  // no search in a full table
  uint32_t from = cs_add_relaxed(&next_place, 1);
  for (uint32_t i = 0; i < places; i++) {
    uint32_t at = (from + i) % places, no = 0;
    if (cs_load_relaxed(&taken[at]) != 0 || !cs_cas(&taken[at], &no, 1)) continue;
    cs_add_relaxed(&in_use, 1);
    return &sleepers[at];
  }
  return NULL;
}

static void give_place(struct cs_sleeper *sleeper) {
  close_files(sleeper);
  cs_store_release(&taken[sleeper - sleepers], 0);
  cs_add_relaxed(&in_use, (uint32_t)-1);
}

struct cs_sleeper *cs_sleeper_open(struct cs_thread *thread, struct cs_sleeper *spare) {
  struct cs_sleeper *sleeper = cs_load_acquire(&thread->sleeper);
  uint32_t tid = cs_load_acquire(&thread->tid);
  if (sleeper != NULL) return sleeper;
  if (tid == 0 || cs_sleeper_counts_by() == CS_RUNS_NONE) return NULL;
  sleeper = take_place();
  if (sleeper == NULL) return open_files(spare, tid, cs_own_file_take) ? spare : NULL;
  struct cs_sleeper *before = NULL;
  if (open_files(sleeper, tid, cs_own_file_keep) && cs_cas(&thread->sleeper, &before, sleeper))
    return sleeper;
  give_place(sleeper);
  return before;  // that of another thread, which was faster; or NULL: no descriptors
}

void cs_sleeper_close(struct cs_sleeper *sleeper, const struct cs_sleeper *spare) {
  if (sleeper != NULL && sleeper == spare) close_files(sleeper);
}

void cs_sleeper_forget(struct cs_thread *thread) {
  struct cs_sleeper *sleeper =
      __atomic_exchange_n(&thread->sleeper, (struct cs_sleeper *)NULL, __ATOMIC_ACQ_REL);
  if (sleeper != NULL) give_place(sleeper);
}

int cs_sleeper_place(const struct cs_sleeper *sleeper) {
  return sleeper >= sleepers && sleeper < sleepers + SLEEPERS ? (int)(sleeper - sleepers) : -1;
}

uint32_t cs_sleeper_places(void) {
  return places;
}

// ---- Their contents ----

// Returns the descriptor of one of its files, reopened if the program has closed it; or -1 if that
// fails.
static int fd_of(struct cs_sleeper *sleeper, struct cs_own_file *file) {
  uint32_t no = 0;
  int fd = cs_own_file_fd(file);
  if (fd >= 0 || !cs_cas(&sleeper->opening, &no, 1)) return fd;
  bool is_where = file == &sleeper->where;
  if (cs_own_file_keep(file, is_where ? open_where(sleeper->tid) : open_runs(sleeper->tid)))
    fd = cs_own_file_fd(file);
  cs_store_release(&sleeper->opening, 0);
  return fd;
}

// Reads the file as a string. Returns its length, or 0 if the thread is gone.
static size_t read_text(struct cs_sleeper *sleeper, struct cs_own_file *file, char *text,
                        size_t cap) {
  int fd = fd_of(sleeper, file);
  ssize_t got = fd >= 0 ? pread(fd, text, cap - 1, 0) : 0;
  if (got <= 0) return 0;
  text[got] = '\0';
  return (size_t)got;
}

static bool number_after(const char *text, const char *label, uint64_t *out) {
  const char *at = strstr(text, label);
  if (at == NULL) return false;
  *out = strtoull(at + strlen(label), NULL, 10);
  return true;
}

bool cs_sleeper_runs(struct cs_sleeper *sleeper, uint64_t *runs) {
  char text[STATUS_BYTES];
  size_t length = read_text(sleeper, &sleeper->runs, text, sizeof text);
  if (length == 0) return false;
  if (cs_sleeper_counts_by() == CS_RUNS_SWITCHES) {
    uint64_t forced;
    if (!number_after(text, "\nvoluntary_ctxt_switches:", runs) ||
        !number_after(text, "\nnonvoluntary_ctxt_switches:", &forced))
      return false;
    *runs += forced;
    return true;
  }
  char *at = memrchr(text, ' ', length);  // "time on processors, time waiting for one, runs"
  if (at == NULL) return false;
  *runs = strtoull(at, NULL, 10);
  return true;
}

bool cs_sleeper_runs_once(uint32_t tid, uint64_t *runs) {
  struct cs_sleeper once = {.tid = tid};
  bool read = cs_own_file_take(&once.runs, open_runs(tid)) && cs_sleeper_runs(&once, runs);
  close_files(&once);
  return read;
}

// "202 0x7f.. (six arguments) SP IP"; "-1 SP IP" outside of a system call; "running".
enum cs_sleep cs_sleeper_where(struct cs_sleeper *sleeper, uint64_t *sp, uint64_t *ip) {
  char text[256], *end;
  size_t length = read_text(sleeper, &sleeper->where, text, sizeof text);
  if (length == 0) return CS_SLEEP_UNKNOWN;
  if (text[0] == 'r') return CS_SLEEP_RUNNING;
  long number = strtol(text, &end, 10);
  if (end == text || *end != ' ' || number < 0) return CS_SLEEP_UNKNOWN;
  // In these calls a child may be running on the same stack.
  if (cs_call_lends_stack(number)) return CS_SLEEP_UNKNOWN;
  char *ip_text = memrchr(text, ' ', length);
  char *sp_text = ip_text > end ? memrchr(text, ' ', (size_t)(ip_text - text)) : NULL;
  if (sp_text == NULL || sp_text <= end) return CS_SLEEP_UNKNOWN;
  *ip = strtoull(ip_text, NULL, 16);
  *sp = strtoull(sp_text, NULL, 16);
  return *sp != 0 && *ip != 0 ? CS_SLEEP_BLOCKED : CS_SLEEP_UNKNOWN;
}

long cs_sleeper_call(struct cs_sleeper *sleeper) {
  char text[256], *end;
  if (read_text(sleeper, &sleeper->where, text, sizeof text) == 0) return -1;
  long number = strtol(text, &end, 10);
  return end != text && *end == ' ' ? number : -1;
}

bool cs_sleeper_is_still(struct cs_sleeper *sleeper, uint64_t runs, uint64_t sp, uint64_t ip) {
  uint64_t now, now_sp, now_ip;
  if (cs_sleeper_counts_by() == CS_RUNS_SWITCHES &&
      (cs_sleeper_where(sleeper, &now_sp, &now_ip) != CS_SLEEP_BLOCKED || now_sp != sp ||
       now_ip != ip))
    return false;
  return cs_sleeper_runs(sleeper, &now) && now == runs;
}

// ---- Where it last slept ----

// A caller that finds the lock taken makes a system call instead.
bool cs_sleeper_try_lock(struct cs_sleeper *sleeper) {
  uint32_t no = 0;
  return cs_cas(&sleeper->busy, &no, 1);
}

void cs_sleeper_unlock(struct cs_sleeper *sleeper) {
  cs_store_release(&sleeper->busy, 0);
}

bool cs_sleeper_recall(struct cs_sleeper *sleeper, uint64_t runs, uint64_t *sp, uint64_t *ip) {
  // A count of switches is the same while the thread runs.
  if (cs_sleeper_counts_by() != CS_RUNS_SCHEDSTAT || !cs_sleeper_try_lock(sleeper)) return false;
  bool same = sleeper->slept_runs == runs && sleeper->slept_sp != 0;
  *sp = sleeper->slept_sp;
  *ip = sleeper->slept_ip;
  cs_sleeper_unlock(sleeper);
  return same;
}

void cs_sleeper_note(struct cs_sleeper *sleeper, uint64_t runs, uint64_t sp, uint64_t ip) {
  if (!cs_sleeper_try_lock(sleeper)) return;
  sleeper->slept_runs = runs;
  sleeper->slept_sp = sp;
  sleeper->slept_ip = ip;
  cs_sleeper_unlock(sleeper);
}

// ---- Start ----

// Returns whether this thread's count rises when it sleeps.
static bool count_rises(void) {
  struct cs_sleeper self;
  struct timespec nap = {.tv_nsec = 100000};
  uint64_t before = 0, after = 0, sp, ip;
  if (!open_files(&self, (uint32_t)syscall(SYS_gettid), cs_own_file_take)) return false;
  bool ok = cs_sleeper_runs(&self, &before);
  (void)nanosleep(&nap, NULL);
  ok = ok && cs_sleeper_runs(&self, &after) && after > before;
  // If `syscall` can be read for the calling thread, the kernel has the file, and permits it.
  ok = ok && cs_sleeper_where(&self, &sp, &ip) == CS_SLEEP_BLOCKED;
  close_files(&self);
  return ok;
}

static uint32_t places_for_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  rlim_t most = limit.rlim_cur / SHARE_OF_LIMIT / 2;
  return most < SLEEPERS ? (uint32_t)most : SLEEPERS;
}

bool cs_sleeper_init(void) {
  static const char *const names[] = {"none", "schedstat", "status"};
  if (cs_sleeper_counts_by() != CS_RUNS_NONE) return true;  // tried before, in an earlier start
  places = places_for_limit();
  for (uint32_t kind = CS_RUNS_SCHEDSTAT; kind <= CS_RUNS_SWITCHES; kind++) {
    (void)cs_sleeper_count_by((enum cs_run_count)kind);
    if (count_rises()) {
      cs_log("blocked threads are walked without a signal; runs are counted by %s", names[kind]);
      return true;
    }
  }
  (void)cs_sleeper_count_by(CS_RUNS_NONE);
  cs_log(
      "blocked threads are walked by signal: /proc/self/task/TID/syscall, or a count of runs, "
      "is not to be had");
  return false;
}
