// SPDX-License-Identifier: MIT
// The runtime's counters. A thread of its own connects and reads, because the process may be slow
// to respond; the command only reads what has arrived. Invariant: of the two threads, the last one
// to stop using the reader frees it, and both threads access the numbers under the lock. Two
// threads. Signal-safe: no.
#include "process/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "process/diag.h"
#include "process/nettrace.h"

struct cs_counter_reader {
  pthread_mutex_t lock;
  pid_t pid;
  int fd;  // -1: not connected
  bool closed;
  unsigned users;
  unsigned seen;  // a bit for each counter that has arrived at least once
  struct cs_counters now;
};

enum { ALLOC, GEN0, GEN1, GEN2, PAUSE, HEAP, QUEUED, THREADS, COMPLETED, COUNTERS };
static const char *const names[COUNTERS] = {"alloc-rate",
                                            "gen-0-gc-count",
                                            "gen-1-gc-count",
                                            "gen-2-gc-count",
                                            "total-pause-time-by-gc",
                                            "gc-heap-size",
                                            "threadpool-queue-length",
                                            "threadpool-thread-count",
                                            "threadpool-completed-items-count"};
#define POOL (1u << QUEUED | 1u << THREADS | 1u << COMPLETED)
#define NEEDED (1u << ALLOC | 1u << GEN0 | 1u << GEN1 | 1u << GEN2 | 1u << HEAP)

// CounterPayload and IncrementingCounterPayload of the runtime's event sources: first the names,
// then either the mean, or the display scale, the increment and the seconds that it covers.
static bool take_value(unsigned which, struct cs_bytes *s, double *value, double *seconds) {
  float interval = 1;
  char scale[32];
  *seconds = 1;
  if (which == HEAP || which == QUEUED || which == THREADS) return cs_take(s, value, sizeof *value);
  if (!cs_nettrace_text(s, scale, sizeof scale) || !cs_take(s, value, sizeof *value) ||
      !cs_take(s, &interval, sizeof interval) || !(interval > 0))
    return false;
  *seconds = (double)interval;
  return true;
}

// Both counters arrive once a second, in either order.
static void put_queue(struct cs_counters *c, uint64_t queued) {
  bool late = queued > 0 && (double)c->pool_queued > c->pool_completed_per_s;
  c->pool_late_s = late ? c->pool_late_s + 1 : 0;
  c->pool_queued = queued;
}

static void put_value(struct cs_counters *c, unsigned which, double value, double seconds) {
  switch (which) {
    case ALLOC:
      c->alloc_bytes_per_s = value / seconds;
      break;
    case PAUSE:  // milliseconds
      c->gc_pause = value / 1000 / seconds;
      break;
    case HEAP:  // MB
      c->heap_bytes = value * 1e6;
      break;
    case QUEUED:
      put_queue(c, (uint64_t)value);
      break;
    case THREADS:
      c->pool_threads = (uint32_t)(value < UINT32_MAX ? value : UINT32_MAX);
      break;
    case COMPLETED:
      c->pool_completed_per_s = value / seconds;
      break;
    default:
      c->gc_counts[which - GEN0] += (uint64_t)value;
      break;
  }
}

static void on_event(void *context, const uint8_t *payload, size_t size) {
  struct cs_counter_reader *r = context;
  struct cs_bytes s = {payload, size};
  char name[64], shown[128];
  double value, seconds;
  unsigned which = 0;
  if (!cs_nettrace_text(&s, name, sizeof name) || !cs_nettrace_text(&s, shown, sizeof shown))
    return;
  while (which < COUNTERS && strcmp(names[which], name) != 0) which++;
  if (which == COUNTERS || !take_value(which, &s, &value, &seconds) ||
      !(value >= 0 && value < 1e18))
    return;
  (void)pthread_mutex_lock(&r->lock);
  put_value(&r->now, which, value, seconds);
  r->seen |= 1u << which;
  r->now.known = (r->seen & NEEDED) == NEEDED;
  r->now.pool_known = (r->seen & POOL) == POOL;
  (void)pthread_mutex_unlock(&r->lock);
}

static void leave(struct cs_counter_reader *r, const char *why) {
  (void)pthread_mutex_lock(&r->lock);
  if (why != NULL) {
    r->now.known = r->now.pool_known = false;
    (void)snprintf(r->now.why, sizeof r->now.why, "%s", why);
  }
  unsigned left = --r->users;
  (void)pthread_mutex_unlock(&r->lock);
  if (left > 0) return;
  if (r->fd >= 0) (void)close(r->fd);
  (void)pthread_mutex_destroy(&r->lock);
  free(r);
}

static int connect_to(pid_t pid, struct cs_error *err) {
  struct cs_diag_payload *p = calloc(1, sizeof *p);
  uint64_t keywords = 0;
  uint8_t rundown = 0;
  HRESULT refusal;
  if (p == NULL) {
    (void)cs_error_set(err, "out of memory");
    return -1;
  }
  cs_diag_put_u32(p, 1);  // MB of buffers
  cs_diag_put_u32(p, 1);  // nettrace
  cs_diag_put(p, &rundown, sizeof rundown);
  cs_diag_put_u32(p, 1);  // providers
  cs_diag_put(p, &keywords, sizeof keywords);
  cs_diag_put_u32(p, 4);  // informational
  cs_diag_put_text(p, "System.Runtime");
  cs_diag_put_text(p, "EventCounterIntervalSec=1");
  int fd = cs_diag_stream(pid, CS_DIAG_EVENT_PIPE, CS_DIAG_COLLECT, p, p, &refusal, err);
  free(p);
  return fd;
}

// Returns false if the reader has been closed.
static bool set_fd(struct cs_counter_reader *r, int fd) {
  (void)pthread_mutex_lock(&r->lock);
  r->fd = fd;
  bool wanted = !r->closed;
  (void)pthread_mutex_unlock(&r->lock);
  return wanted;
}

static void *read_counters(void *context) {
  struct cs_counter_reader *r = context;
  struct cs_nettrace reader = {
      .provider = "System.Runtime", .event = "EventCounters", .found = on_event, .context = r};
  struct cs_error err = {""};
  char chunk[8192];
  int fd = connect_to(r->pid, &err);
  if (fd < 0 || !set_fd(r, fd)) {
    leave(r, err.text);
    return NULL;
  }
  int flags = fcntl(fd, F_GETFL);
  if (flags >= 0) (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  ssize_t got;
  while ((got = recv(fd, chunk, sizeof chunk, 0)) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0 && !cs_nettrace_feed(&reader, chunk, (size_t)got, &err)) break;
  }
  cs_nettrace_free(&reader);
  leave(r, err.text[0] != '\0' ? err.text : "the runtime has ended the session");
  return NULL;
}

struct cs_counter_reader *cs_counters_open(pid_t pid) {
  struct cs_counter_reader *r = calloc(1, sizeof *r);
  pthread_t thread;
  if (r == NULL) return NULL;
  r->pid = pid;
  r->fd = -1;
  r->users = 2;
  r->now.gc_pause = -1;
  (void)pthread_mutex_init(&r->lock, NULL);
  // The session handles signals; they are blocked here, and threads inherit that.
  int error = pthread_create(&thread, NULL, read_counters, r);
  if (error != 0) {
    leave(r, strerror(error));
    return r;
  }
  (void)pthread_detach(thread);
  return r;
}

void cs_counters_get(struct cs_counter_reader *reader, struct cs_counters *out) {
  (void)pthread_mutex_lock(&reader->lock);
  *out = reader->now;
  (void)pthread_mutex_unlock(&reader->lock);
}

void cs_counters_close(struct cs_counter_reader *reader) {
  (void)pthread_mutex_lock(&reader->lock);
  reader->closed = true;
  if (reader->fd >= 0) (void)shutdown(reader->fd, SHUT_RDWR);
  (void)pthread_mutex_unlock(&reader->lock);
  leave(reader, NULL);
}
