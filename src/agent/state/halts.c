// SPDX-License-Identifier: MIT
// A halt is a gap in which the agent's thread was due to run, but neither ran nor waited for a
// processor: the kernel counts both times (schedstat). So a busy machine, or a CPU quota, is not
// mistaken for a halt. The thread may also have been blocked by a disk or a lock, or the hypervisor
// may have taken its virtual processor away. Then other threads sleep on, or run; in a halt, each
// sleeping thread runs for a moment, to stop, and the process uses almost no CPU time. Where
// schedstat cannot be read, no halts are found.
//
// Reading the process's CPU clock visits all its threads, so it takes a hundredth of the time at
// most.
//
// Invariant: halts are in the order of time, and do not overlap. The agent's thread only.
// Signal-safe: no.
#include "state/halts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own_file.h"
#include "state/state.h"

enum {
  KEPT = 1024,  // halts: no thread's last sample is older than these
  SLIVER = 10,  // 1 / the part of a processor that a process may use in a halt, while its threads
                // stop
  MARK_REST = 100,    // a mark is kept for this many times its cost,
  MARK_NS = 5000000,  // but not less than this
};

struct moment {
  uint64_t ns;
  uint64_t ran_ns;      // this thread, on a processor
  uint64_t waited_ns;   // this thread, for a processor
  uint64_t process_ns;  // CPU time of the process
};

static struct { uint64_t from, to; } halts[KEPT];
static uint64_t count, total_ns, new_ns;
static bool (*sleepers_have_run)(void);
static struct moment begun, mark;  // at the recording's begin; shortly before the last check
static uint64_t next_mark_ns;
static uint64_t checked_ns;  // when a halt was last looked for
static struct cs_own_file file;
static bool counts;  // the kernel does

// Returns the descriptor of the agent's thread's schedstat, which it reopens if the program has
// closed it.
static int own_schedstat(void) {
  char path[64];
  int fd = cs_own_file_fd(&file);
  if (fd >= 0) return fd;
  (void)snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)gettid());
  return cs_own_file_keep(&file, open(path, O_RDONLY | O_CLOEXEC)) ? cs_own_file_fd(&file) : -1;
}

// "time on processors, time waiting for one, runs"; zeros: the kernel does not count. The time is
// read first, so that a wait between the two reads is not taken for a halt.
static bool read_moment(struct moment *m) {
  char text[96], *end;
  int fd = counts ? own_schedstat() : -1;
  m->ns = cs_clock_now_ns();
  ssize_t got = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, 0);
  if (got <= 0) return false;
  text[got] = '\0';
  m->ran_ns = strtoull(text, &end, 10);
  m->waited_ns = strtoull(end, &end, 10);
  m->process_ns = cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
  return strtoull(end, NULL, 10) != 0;
}

// An old mark hides a halt, because what the thread has waited since then counts as busy. So the
// cost is CPU time, which does not grow while others have the processors.
static bool take_mark(uint64_t now_ns) {
  uint64_t began = cs_thread_cpu_ns();
  bool read = read_moment(&mark);
  uint64_t rest = (cs_thread_cpu_ns() - began) * MARK_REST;
  next_mark_ns = now_ns + (rest > MARK_NS ? rest : MARK_NS);
  return read;
}

static void give_up(void) {
  cs_own_file_close(&file);
  counts = false;
}

void cs_halts_begin(bool (*have_run)(void)) {
  count = total_ns = new_ns = 0;
  sleepers_have_run = have_run;
  checked_ns = cs_clock_now_ns();
  counts = true;
  counts = take_mark(checked_ns);
  begun = mark;
  if (counts) return;
  cs_log("no schedstat: a stop of the program is not recognised");
  give_up();
}

// Returns for how long the thread has been halted since `from`. Returns 0 if that is not long
// enough, or if other threads have run meanwhile, or slept on.
static uint64_t halted_since(uint64_t from, const struct moment *now) {
  uint64_t gap = now->ns - from, busy = now->ran_ns - mark.ran_ns + now->waited_ns - mark.waited_ns;
  if (gap < busy + CS_HALT_LEAST_NS) return 0;
  uint64_t halted = gap - busy, used = now->process_ns - mark.process_ns;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  uint64_t ran_most = (now->ns - mark.ns - halted) * (uint64_t)(processors > 0 ? processors : 1);
  return used <= ran_most + halted / SLIVER && sleepers_have_run() ? halted : 0;
}

static void add(uint64_t from, uint64_t halted) {
  halts[count % KEPT].from = from;
  halts[count % KEPT].to = from + halted;
  count++;
  total_ns += halted;
  new_ns += halted;
  cs_log("the process was stopped for %lu ms", (unsigned long)(halted / 1000000));
}

void cs_halts_check(uint64_t due_ns) {
  if (!counts || sleepers_have_run == NULL) return;
  uint64_t now_ns = cs_clock_now_ns(), from = due_ns > checked_ns ? due_ns : checked_ns;
  struct moment now;
  checked_ns = now_ns;
  if (now_ns < from + CS_HALT_LEAST_NS) {
    if (now_ns >= next_mark_ns && !take_mark(now_ns)) give_up();
    return;
  }
  if (!read_moment(&now)) return;
  uint64_t halted = halted_since(from, &now);
  if (halted > 0) add(from, halted);
  mark = now;
  checked_ns = now.ns;
}

uint64_t cs_halts_take_new(void) {
  uint64_t halted = new_ns;
  new_ns = 0;
  return halted;
}

uint64_t cs_halts_within(uint64_t from_ns, uint64_t to_ns) {
  uint64_t sum = 0, first = count > KEPT ? count - KEPT : 0;
  for (uint64_t i = count; i > first && halts[(i - 1) % KEPT].to > from_ns; i--) {
    uint64_t from = halts[(i - 1) % KEPT].from, to = halts[(i - 1) % KEPT].to;
    if (from < from_ns) from = from_ns;
    if (to > to_ns) to = to_ns;
    if (to > from) sum += to - from;
  }
  return sum;
}

bool cs_halts_end(void) {
  struct cs_wire_times times = {.halted_ns = total_ns};
  struct moment now;
  if (read_moment(&now)) {
    uint64_t own = now.ran_ns - begun.ran_ns, all = now.process_ns - begun.process_ns;
    times.process_ns = all > own ? all - own : 0;
    times.lasted_ns = cs_clock_now_ns() - begun.ns;
    times.waited_ns = now.waited_ns - begun.waited_ns;
  }
  give_up();
  return cs_send(CS_WIRE_TIMES, &times, sizeof times);
}
