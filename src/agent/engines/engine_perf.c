// SPDX-License-Identifier: MIT
// The engine "perf": each thread has a perf event, which sends it SIGURG when it overflows
// (signal/perf.c): a task clock, on a high-resolution timer, or another counter (--event). With
// --kernel, the kernel writes its call chain to the event's own ring of one page, because several
// threads cannot share a ring (signal/kernel.c).
//
// Why SIGURG: see sigurg.h. Besides, a real-time signal that cannot be queued (RLIMIT_SIGPENDING)
// becomes a plain SIGIO, which ends the program.
//
// Invariants: a descriptor is in its thread's entry and in the table only while it is open. It is
// disabled before it is closed, because a forked child may hold it, too, and is closed by its own
// thread, or after the epoch. A descriptor that the program has closed is left alone, because it
// may be another file's now. Threads: with the list's lock held; `closing` and polls: the agent's.
// Signal-safe: no.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/own_file.h"
#include "base/perf.h"
#include "base/perf_regs.h"
#include "engines/engine.h"
#include "engines/handler_times.h"
#include "engines/perf_cost.h"
#include "engines/sigurg.h"
#include "life/epoch.h"
#include "life/seccomp.h"

#define MS 1000000ull

enum {
  CHECK_MS = 200,    // between two checks for events that are disarmed
  COUNT_MS = 1000,   // between two counts of the program's descriptors
  SHARE = 8,         // events take at most one in this many descriptors
  LEAST_NS = 10000,  // the shortest time for which an event is armed
  PATIENCE = 4,      // periods without a sample before an event is armed again
};

struct event {
  int fd;
  uint64_t id;  // the kernel's, which is unique
  uint8_t *ring;
};

static struct {
  pthread_mutex_t lock;    // of `closing`
  uint32_t *threads;       // cs_signal.perf_threads, which is never given back
  bool kernel;             // events count in kernel mode, too
  uint16_t chain;          // the most frames of a kernel's call chain
  unsigned ringless;       // threads without a ring, because of
  int ringless_error;      // this error at the last one
  unsigned open, most;     // descriptors that are open, and that may be
  unsigned in_use, limit;  // at the last count
  struct event *closing;   // to be closed when no handler can use them any more
  size_t closing_count, closing_capacity;
  uint64_t check_ns, count_ns;  // when the next ones are due
  uint64_t kernel_unknown;      // samples of which it is not known whether they were in the kernel
} perf = {.lock = PTHREAD_MUTEX_INITIALIZER};

// ---- Descriptors ----

static unsigned count_in(const char *path) {
  unsigned count = 0;
  DIR *directory = opendir(path);
  if (directory == NULL) return 0;
  while (readdir(directory) != NULL) count++;
  (void)closedir(directory);
  return count > 2 ? count - 2 : 0;
}

// Events may take half of what the program leaves, and an eighth of all, because a program may open
// its files faster than they are counted.
static void count_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  perf.limit = limit.rlim_cur < CS_PERF_MAX_FD ? (unsigned)limit.rlim_cur : CS_PERF_MAX_FD;
  perf.in_use = count_in("/proc/self/fd");
  unsigned theirs = perf.in_use > perf.open ? perf.in_use - perf.open : 0;
  perf.most = perf.limit > theirs ? (perf.limit - theirs) / 2 : 0;
  if (perf.most > perf.limit / SHARE) perf.most = perf.limit / SHARE;
}

static bool too_many(struct cs_error *why, unsigned threads) {
  return cs_error_set(
      why,
      "%u of %u file descriptors are in use; perf events take half of the others and an eighth of "
      "all at most, which is too few for %u threads: raise ulimit -n",
      perf.in_use, perf.limit, threads);
}

static bool is_event(int fd, uint64_t id) {
  uint64_t now = 0;
  return ioctl(fd, PERF_EVENT_IOC_ID, &now) == 0 && now == id;
}

// Moves an event to a high descriptor. Called before it is made asynchronous, because signals carry
// the descriptor on which that was done.
static int move_up(int fd) {
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, cs_own_file_first());
  int error = errno;
  (void)close(fd);
  if (moved >= CS_PERF_MAX_FD) {
    (void)close(moved);
    error = EMFILE;
    moved = -1;
  }
  errno = error;
  return moved;
}

// ---- Rings ----

// Requests what signal/kernel.c reads.
static void want_chain(struct perf_event_attr *attr) {
  attr->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER;
  attr->sample_regs_user = CS_PERF_SP_AND_IP;
  attr->exclude_callchain_user = 1;
  attr->sample_max_stack = perf.chain;
}

// Requests what signal/handler_times.c reads.
static void want_time(struct perf_event_attr *attr) {
  attr->sample_type = PERF_SAMPLE_TIME;
  attr->use_clockid = 1;
  attr->clockid = CLOCK_MONOTONIC_RAW;
}

// Returns NULL on failure: the thread's samples then have no kernel frames, which is reported.
static uint8_t *map_ring(int fd) {
  void *at = mmap(NULL, CS_PERF_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) return at;
  perf.ringless_error = errno;
  perf.ringless++;
  return NULL;
}

static void unmap_ring(uint8_t *ring) {
  if (ring != NULL) (void)munmap(ring, CS_PERF_RING_BYTES);
}

// ---- Events ----

static int open_event(uint32_t tid, uint64_t first, uint64_t *id) {
  struct perf_event_attr attr;
  struct f_owner_ex owner = {F_OWNER_TID, (pid_t)tid};
  cs_perf_attr(&attr, cs_options.event, first, perf.kernel);
  if (cs_options.kernel) want_chain(&attr);
  if (cs_handler_times_are_noted()) want_time(&attr);
  int fd = cs_perf_open(&attr, (pid_t)tid);
  if (fd >= 0) fd = move_up(fd);
  if (fd < 0) return -1;
  if (ioctl(fd, PERF_EVENT_IOC_ID, id) == 0 && fcntl(fd, F_SETOWN_EX, &owner) == 0 &&
      fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETFL, O_RDWR | O_ASYNC) == 0)
    return fd;
  int error = errno;
  (void)close(fd);
  errno = error;
  return -1;
}

// If the program has closed the event, the descriptor may be one of the program's now.
static void close_event(struct event event) {
  unmap_ring(event.ring);
  if (is_event(event.fd, event.id)) (void)close(event.fd);
}

static void close_later(struct event event) {
  (void)pthread_mutex_lock(&perf.lock);
  struct event *all =
      cs_grow_or_not(perf.closing, perf.closing_count, &perf.closing_capacity, sizeof *all);
  // If there is no memory, it stays open, but disabled.
  if (all != NULL) {
    all[perf.closing_count++] = event;
    perf.closing = all;
  }
  (void)pthread_mutex_unlock(&perf.lock);
}

// Closes them after waiting for the handlers that may be using them; if those do not end soon, they
// are left for the next time. Returns false if they are. The agent's thread.
static bool close_all(void) {
  (void)pthread_mutex_lock(&perf.lock);
  struct event *events = perf.closing;
  size_t count = perf.closing_count;
  perf.closing = NULL;
  perf.closing_count = perf.closing_capacity = 0;
  (void)pthread_mutex_unlock(&perf.lock);
  bool ended = count == 0 || cs_epoch_wait();
  for (size_t i = 0; i < count; i++) {
    if (ended)
      close_event(events[i]);
    else
      close_later(events[i]);
  }
  free(events);
  return ended;
}

// ---- A recording ----

static uint64_t period(void) {
  return cs_options.event != 0 ? cs_options.event_period : cs_load_acquire(&cs_agent.period_ns);
}

// Maps descriptors to threads. All zero in a forked child, which owns no events.
static bool make_table(struct cs_error *why) {
  size_t bytes = CS_PERF_MAX_FD * sizeof *perf.threads;
  if (perf.threads != NULL) return true;
  void *at =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return cs_error_set(why, "no address space for the table of its events");
  if (madvise(at, bytes, MADV_WIPEONFORK) != 0) {
    (void)munmap(at, bytes);
    return cs_error_set(why, "this kernel has no MADV_WIPEONFORK (Linux 4.14)");
  }
  perf.threads = at;
  return true;
}

static bool begin_with(bool kernel, struct cs_error *why) {
  if (!cs_seccomp_survives(CS_CALL_PERF))
    return cs_error_set(why, "the program's seccomp filter would kill it for perf_event_open");
  if (!cs_perf_probe(cs_options.event, kernel, why)) return false;
  perf.kernel = kernel;
  perf.chain = cs_perf_most_frames(CS_KERNEL_MOST);
  perf.ringless = 0;
  perf.kernel_unknown = 0;
  count_descriptors();
  unsigned threads = count_in("/proc/self/task");
  if (threads > perf.most) return too_many(why, threads);
  if (!make_table(why) || !cs_sigurg_take(why)) return false;
  cs_store_release(&cs_signal.perf_threads, perf.threads);
  cs_store_release(&cs_signal.counts, cs_options.event != 0 ? 1u : 0u);
  cs_store_release(&cs_signal.period, period());
  perf.check_ns = perf.count_ns = 0;
  return true;
}

// Returns whether the user has left the choice to us: only then may this engine be refused or given
// up because of its cost.
static bool is_choice(void) {
  return cs_options.engine == CS_WIRE_ENGINE_AUTO && cs_options.event == 0 && !cs_options.kernel;
}

// Measures the cost of a context switch, if events are available and it matters.
static bool begin(struct cs_error *why) {
  return begin_with(true, why) && (!is_choice() || cs_perf_cost_begin(why));
}
static bool begin_user(struct cs_error *why) {
  return begin_with(false, why);
}

// Appends a sentence.
static void append(char *text, size_t cap, const char *format, ...) {
  size_t used = strlen(text);
  va_list args;
  va_start(args, format);
  if (used > 0 && used + 2 < cap) used += (size_t)snprintf(text + used, cap - used, "; ");
  (void)vsnprintf(text + used, cap - used, format, args);
  va_end(args);
}

static const char *unseen(void) {
  static char text[400];
  uint32_t most_hz = cs_perf_most_hz();
  text[0] = '\0';
  if (cs_options.event == 0 && most_hz != 0 && most_hz < cs_options.hz)
    append(text, sizeof text,
           "kernel.perf_event_max_sample_rate allows no more than %u samples a "
           "second and thread",
           most_hz);
  if (perf.ringless > 0)
    append(text, sizeof text, "%u thread%s without kernel frames: %s", perf.ringless,
           perf.ringless == 1 ? " is" : "s are",
           perf.ringless_error == EPERM
               ? "8 KiB of locked memory for each are more than is allowed (raise ulimit -l or "
                 "kernel.perf_event_mlock_kb)"
               : strerror(perf.ringless_error));
  if (perf.kernel_unknown > 0)
    append(text, sizeof text, "of %lu samples it is not known whether they were in the kernel",
           (unsigned long)perf.kernel_unknown);
  return text;
}

static const char *unseen_user(void) {
  if (cs_options.event != 0) return "it counts in user mode only";
  return "it samples in user mode only: CPU time in the kernel is given to what its thread runs "
         "next";
}

// A handler that gets no processor may hold them up; after this, the program would have them until
// its next recording.
static void end(void) {
  enum { TRIES = 3 };
  for (int i = 0; i < TRIES && !close_all(); i++) continue;
}

// ---- A thread ----

// Draws a wait like the handler's, with a probability proportional to its length, and a random
// moment in it: as if the thread had been sampled for a long time.
static uint64_t first_wait(uint64_t *random, uint64_t between, uint64_t *whole) {
  *random = cs_hash_word(cs_tsc(), 64) | 1;
  for (int i = 0; i < 64; i++) {
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    *whole = between / 2 + (*random >> 20) % between;
    if ((*random >> 33) % (between + between / 2) < *whole) break;
  }
  uint64_t first = *whole > 0 ? cs_hash_word(cs_tsc(), 40) % *whole : 0;
  uint64_t least = cs_options.event != 0 ? 1 : LEAST_NS;
  return first > least ? first : least;
}

// The thread's first sample is due in `first_ns` of its CPU time, a random part of the wait
// `whole_ns`, all of which that sample stands for. So the samples of threads, even of those that
// live for less than that, stand, on average, for the time that the threads have used.
static uint64_t clocked_from_now(struct cs_agent_thread *t, uint64_t first_ns, uint64_t whole_ns) {
  uint64_t now = cs_cpu_ns_of(t->tid);
  cs_store_relaxed(&t->thread->cpu_ns, now + first_ns - whole_ns);
  return now;
}

static bool start(struct cs_agent_thread *t, struct cs_error *why) {
  struct cs_perf_event *event = &t->thread->perf;
  uint64_t whole, first = first_wait(&event->random, period(), &whole);
  if (event->random == 0) event->random = 1;
  if (perf.open >= perf.most) return too_many(why, perf.open + 1);
  int fd = open_event(t->tid, first, &t->event_id);
  if (fd < 0)
    return errno == ESRCH ? false : cs_perf_refused(errno, cs_options.event, perf.kernel, why);
  perf.open++;
  event->counted = cs_options.event != 0 ? whole : 0;
  event->due_ns = clocked_from_now(t, first, whole) + first;
  t->checked_ns = t->enabled_ns = 0;
  bool ring = cs_options.kernel || cs_handler_times_are_noted();
  cs_store_release(&event->ring, ring ? map_ring(fd) : NULL);
  cs_store_release(&perf.threads[fd], t->thread->index + 1);
  cs_store_release(&event->fd, fd);
  (void)ioctl(fd, PERF_EVENT_IOC_REFRESH, 1);
  return true;
}

// Removes the event from the thread's entry and from the table, and returns it.
static struct event detach(struct cs_agent_thread *t) {
  struct event event = {t->thread->perf.fd, t->event_id, t->thread->perf.ring};
  cs_store_release(&t->thread->perf.fd, 0);
  cs_store_release(&t->thread->perf.ring, (uint8_t *)NULL);
  if (event.fd > 0) cs_store_release(&perf.threads[event.fd], 0u);
  if (event.fd > 0) perf.open--;
  return event;
}

static void stop(struct cs_agent_thread *t) {
  struct event event = detach(t);
  if (event.fd <= 0) return;
  if (is_event(event.fd, event.id)) (void)ioctl(event.fd, PERF_EVENT_IOC_DISABLE, 0);
  if ((uint32_t)gettid() == t->tid)
    close_event(event);
  else
    close_later(event);
}

// Handlers read the period from cs_signal.
static void change(struct cs_agent_thread *t) {
  (void)t;
  cs_store_release(&cs_signal.period, period());
}

// The CPU time since its last sample. The handler may take a sample meanwhile; then that stands for
// the time.
static uint64_t overdue(struct cs_agent_thread *t, bool take) {
  uint64_t now = cs_cpu_ns_of(t->tid), since = cs_load_relaxed(&t->thread->cpu_ns);
  if (now == 0) return 0;
  t->clock_to = now;
  if ((int64_t)(now - since) <= 0) return 0;
  return take && !cs_cas(&t->thread->cpu_ns, &since, now) ? 0 : now - since;
}

// ---- The agent's loop ----

// Returns whether the clock has stopped: its thread has used several periods of CPU time without a
// sample.
static bool clock_has_stopped(struct cs_agent_thread *t, uint64_t now) {
  uint64_t sampled = cs_load_relaxed(&t->thread->cpu_ns);
  uint64_t since = t->checked_ns > sampled ? t->checked_ns : sampled;
  if (now < since + PATIENCE * period()) return false;
  t->checked_ns = now;
  return true;
}

// Other events may not overflow for a long time. Such an event has stopped if its thread has run
// while the event was not enabled.
static bool count_has_stopped(struct cs_agent_thread *t, uint64_t now) {
  uint64_t values[2];  // its count, and for how long it has been enabled
  if (read(t->thread->perf.fd, values, sizeof values) != sizeof values) return false;
  bool stopped = t->checked_ns != 0 && now > t->checked_ns + MS && values[1] == t->enabled_ns;
  t->checked_ns = now;
  t->enabled_ns = values[1];
  return stopped;
}

// An event stops if its signal was lost, if its thread blocks the signal, or if the kernel disarms
// it just after its handler has armed it. It is armed again, which does no harm if it was armed; if
// the program has closed it, a new one is opened.
static bool check(struct cs_agent_thread *t, void *data) {
  struct cs_error why = {""};
  uint64_t now = t->engine == data ? cs_cpu_ns_of(t->tid) : 0;
  if (now == 0) return true;
  bool is_there = is_event(t->thread->perf.fd, t->event_id);
  if (cs_options.event != 0 ? is_there && !count_has_stopped(t, now) : !clock_has_stopped(t, now))
    return true;
  if (is_there) {
    (void)ioctl(t->thread->perf.fd, PERF_EVENT_IOC_REFRESH, 1);
    return true;
  }
  close_later(detach(t));
  if (!start(t, &why)) cs_log_important("a thread is not sampled any more: %s", why.text);
  return true;
}

static bool poll(const struct cs_engine *self, uint64_t now, uint64_t *next_ns,
                 struct cs_error *why) {
  (void)next_ns;
  (void)close_all();
  if (cs_sigurg_is_lost())
    return cs_error_set(why,
                        "the program has begun to use SIGURG, which its samples come with, or has "
                        "changed its handler");
  if (now >= perf.check_ns) {
    perf.check_ns = now + CHECK_MS * MS;
    cs_threads_visit(check, (void *)(uintptr_t)self);
  }
  if (now < perf.count_ns) return true;
  perf.count_ns = now + COUNT_MS * MS;
  count_descriptors();
  if (perf.open > perf.most) return too_many(why, perf.open);
  return !is_choice() || cs_perf_cost_check(why);
}

void cs_perf_count_kernel_unknown(void) {
  perf.kernel_unknown++;
}

const struct cs_engine cs_engine_perf = {
    .kind = CS_WIRE_ENGINE_PERF,
    .unseen = unseen,
    .begin = begin,
    .end = end,
    .start = start,
    .stop = stop,
    .change = change,
    .overdue = overdue,
    .poll = poll,
};

const struct cs_engine cs_engine_perf_user = {
    .kind = CS_WIRE_ENGINE_PERF,
    .unseen = unseen_user,
    .begin = begin_user,
    .end = end,
    .start = start,
    .stop = stop,
    .change = change,
    .overdue = overdue,
    .poll = poll,
};
