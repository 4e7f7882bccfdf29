// SPDX-License-Identifier: MIT
// The engine "perf": a task clock for each thread, which is a perf event of the kernel's on a
// high-resolution timer, and sends SIGURG to its thread when it overflows (signal/perf.c).
//
// Why SIGURG: see urg.c; and a real-time signal that cannot be queued (RLIMIT_SIGPENDING) becomes a
// plain SIGIO, which ends the program.
//
// Invariants: a descriptor is in its thread's entry and in the table only while it is open; it is
// disabled before it is closed, because a forked child may hold it, too; and closed by its own
// thread, or after the epoch. A number that is not that event's any more (the program has closed
// it) is left alone. Threads: under the lock of the list of threads; `closing` and the turn: the
// agent's. Signal-safe: no.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/engine.h"
#include "agent/perf_cost.h"
#include "base/log.h"
#include "base/perf.h"

#define MS 1000000ull

enum {
  LOOK_MS = 200,    // between two looks for events that are disarmed
  COUNT_MS = 1000,  // between two counts of the program's descriptors
  // Descriptors that are easily reached are the program's: some use select(), which ends at 1,024.
  FIRST_FD = 4096,
  LEAST_NS = 10000,  // that the kernel waits
  PATIENCE = 4,      // periods
};

struct event {
  int fd;
  uint64_t id;  // the kernel's, of which there are never two
};

static struct {
  pthread_mutex_t lock;  // of `closing`
  uint32_t *threads;     // cs_signal.perf_threads, which is never given back
  bool kernel;
  unsigned open, most;     // descriptors that are open, and that may be
  unsigned in_use, limit;  // at the last count
  struct event *closing;   // taken out, to be closed when no handler can use them any more
  size_t closing_count, closing_capacity;
  uint64_t look_ns, count_ns;
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

// Events take half of what the program has left at most.
static void count_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  perf.limit = limit.rlim_cur < CS_PERF_MAX_FD ? (unsigned)limit.rlim_cur : CS_PERF_MAX_FD;
  perf.in_use = count_in("/proc/self/fd");
  unsigned theirs = perf.in_use > perf.open ? perf.in_use - perf.open : 0;
  perf.most = perf.limit > theirs ? (perf.limit - theirs) / 2 : 0;
}

static bool too_many(struct cs_error *why, unsigned threads) {
  return cs_error_set(why,
                      "%u file descriptors of %u are in use, and half of the others would not do "
                      "for the events of %u threads: raise ulimit -n",
                      perf.in_use, perf.limit, threads);
}

static bool is_event(int fd, uint64_t id) {
  uint64_t now = 0;
  return ioctl(fd, PERF_EVENT_IOC_ID, &now) == 0 && now == id;
}

// To a place where it is in nobody's way. The flags are the file's, but the number that is sent is
// that of the descriptor with which it was made asynchronous.
static int move_up(int fd) {
  unsigned first = perf.limit / 2 < FIRST_FD ? perf.limit / 2 : FIRST_FD;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, (int)first);
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

static int open_event(uint32_t tid, uint64_t first_ns, uint64_t *id) {
  struct perf_event_attr attr;
  struct f_owner_ex owner = {F_OWNER_TID, (pid_t)tid};
  cs_perf_task_clock(&attr, first_ns, perf.kernel);
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

// Its number may be the program's by now, which has then closed the event itself.
static void close_event(struct event event) {
  if (is_event(event.fd, event.id)) (void)close(event.fd);
}

static void close_later(struct event event) {
  (void)pthread_mutex_lock(&perf.lock);
  if (perf.closing_count == perf.closing_capacity) {
    size_t capacity = perf.closing_capacity != 0 ? perf.closing_capacity * 2 : 64;
    struct event *larger = realloc(perf.closing, capacity * sizeof *larger);
    if (larger != NULL) perf.closing = larger;
    if (larger != NULL) perf.closing_capacity = capacity;
  }
  // Without memory it stays open; it is disabled.
  if (perf.closing_count < perf.closing_capacity) perf.closing[perf.closing_count++] = event;
  (void)pthread_mutex_unlock(&perf.lock);
}

// Those whose handlers may have been in the middle of using them. The agent's thread.
static void close_all(void) {
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
}

// ---- A recording ----

static bool begin_with(bool kernel, struct cs_error *why) {
  if (!cs_perf_probe(kernel, why)) return false;
  perf.kernel = kernel;
  count_descriptors();
  unsigned threads = count_in("/proc/self/task");
  if (threads > perf.most) return too_many(why, threads);
  if (perf.threads == NULL) {
    void *at = mmap(NULL, CS_PERF_MAX_FD * sizeof *perf.threads, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return cs_error_set(why, "no address space for the table of its events");
    perf.threads = at;
  }
  if (!cs_urg_take(why)) return false;
  cs_store_release(&cs_signal.perf_threads, perf.threads);
  cs_store_release(&cs_signal.period_ns, cs_load_acquire(&cs_agent.period_ns));
  perf.look_ns = perf.count_ns = 0;
  return true;
}

// Only where there is a choice is it left for what it costs.
static bool is_choice(void) {
  return cs_agent.engine == CS_WIRE_ENGINE_AUTO;
}

static bool begin(struct cs_error *why) {
  if (is_choice() && cs_perf_probe(true, why) &&
      !cs_perf_cost_begin(cs_load_acquire(&cs_agent.period_ns), why))
    return false;
  return begin_with(true, why);
}
static bool begin_user(struct cs_error *why) {
  return begin_with(false, why);
}

static const char *unseen_user(void) {
  return "it samples in user mode only: CPU time in the kernel is given to what its thread runs "
         "next";
}

static void end(void) {
  close_all();
}

// ---- A thread ----

// A wait as the handler has them, chosen as likely as it is long, and a moment in it: what a thread
// would find that was sampled since long ago.
static uint64_t first_wait(uint64_t *random, uint64_t period, uint64_t *whole) {
  *random = cs_tsc() * 0x9E3779B97F4A7C15ull | 1;
  for (int i = 0; i < 64; i++) {
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    *whole = period / 2 + (*random >> 20) % period;
    if ((*random >> 33) % (period + period / 2) < *whole) break;
  }
  uint64_t first = (cs_tsc() * 0x9E3779B97F4A7C15ull >> 24) % *whole;
  return first > LEAST_NS ? first : LEAST_NS;
}

static bool start(struct cs_agent_thread *t, struct cs_error *why) {
  struct cs_perf_event *event = &t->thread->perf;
  uint64_t whole, first = first_wait(&event->random, cs_load_acquire(&cs_agent.period_ns), &whole);
  if (event->random == 0) event->random = 1;
  if (perf.open >= perf.most) return too_many(why, perf.open + 1);
  int fd = open_event(t->tid, first, &t->event_id);
  if (fd < 0) return errno == ESRCH ? false : cs_perf_refused(errno, perf.kernel, why);
  perf.open++;
  event->due_ns = cs_clocked_from_now(t, first, whole) + first;
  t->looked_ns = 0;
  cs_store_release(&perf.threads[fd], t->thread->index + 1);
  cs_store_release(&event->fd, fd);
  (void)ioctl(fd, PERF_EVENT_IOC_REFRESH, 1);
  return true;
}

// Takes the descriptor out; returns it.
static struct event take_out(struct cs_agent_thread *t) {
  struct event event = {t->thread->perf.fd, t->event_id};
  cs_store_release(&t->thread->perf.fd, 0);
  if (event.fd > 0) cs_store_release(&perf.threads[event.fd], 0u);
  if (event.fd > 0) perf.open--;
  return event;
}

static void stop(struct cs_agent_thread *t) {
  struct event event = take_out(t);
  if (event.fd <= 0) return;
  if (is_event(event.fd, event.id)) (void)ioctl(event.fd, PERF_EVENT_IOC_DISABLE, 0);
  if ((uint32_t)gettid() == t->tid)
    close_event(event);
  else
    close_later(event);
}

// Handlers take it from there.
static void change(struct cs_agent_thread *t) {
  (void)t;
  cs_store_release(&cs_signal.period_ns, cs_load_acquire(&cs_agent.period_ns));
}

// ---- The agent's loop ----

// A thread that has used several periods' time without a sample: its signal was lost, it blocks it,
// or the kernel has disarmed the event just after its handler has armed it. One more overflow then,
// which does no harm to one that is armed; and a new event where the program has closed this one.
static bool look_at(struct cs_agent_thread *t, void *data) {
  struct cs_error why = {""};
  if (t->engine != data) return true;
  uint64_t sampled = cs_load_relaxed(&t->thread->cpu_ns), now = cs_cpu_ns_of(t->tid);
  uint64_t since = t->looked_ns > sampled ? t->looked_ns : sampled;
  if (now == 0 || now < since + PATIENCE * cs_load_relaxed(&cs_signal.period_ns)) return true;
  t->looked_ns = now;
  if (is_event(t->thread->perf.fd, t->event_id)) {
    (void)ioctl(t->thread->perf.fd, PERF_EVENT_IOC_REFRESH, 1);
    return true;
  }
  (void)take_out(t);
  if (!start(t, &why)) cs_log_important("a thread is not sampled any more: %s", why.text);
  return true;
}

static uint64_t turn_of(const struct cs_engine *self, uint64_t now) {
  struct cs_error why;
  close_all();
  if (cs_urg_is_lost()) {
    (void)cs_error_set(&why, "the program has begun to use SIGURG, which its samples come with");
    cs_engine_abandon(self, &why);
    return UINT64_MAX;
  }
  if (now >= perf.look_ns) {
    perf.look_ns = now + LOOK_MS * MS;
    cs_threads_visit(look_at, (void *)(uintptr_t)self);
  }
  if (now >= perf.count_ns) {
    perf.count_ns = now + COUNT_MS * MS;
    count_descriptors();
    bool enough = perf.open <= perf.most;
    if (!enough) (void)too_many(&why, perf.open);
    if (!enough || (is_choice() && !cs_perf_cost_turn(&why))) cs_engine_abandon(self, &why);
  }
  return UINT64_MAX;
}

static uint64_t turn(uint64_t now) {
  return turn_of(&cs_engine_perf, now);
}
static uint64_t turn_user(uint64_t now) {
  return turn_of(&cs_engine_perf_user, now);
}

const struct cs_engine cs_engine_perf = {
    .kind = CS_WIRE_ENGINE_PERF,
    .begin = begin,
    .end = end,
    .start = start,
    .stop = stop,
    .change = change,
    .turn = turn,
};

const struct cs_engine cs_engine_perf_user = {
    .kind = CS_WIRE_ENGINE_PERF,
    .unseen = unseen_user,
    .begin = begin_user,
    .end = end,
    .start = start,
    .stop = stop,
    .change = change,
    .turn = turn_user,
};
