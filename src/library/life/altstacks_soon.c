// SPDX-License-Identifier: MIT
// Larger alternate stacks (threads/install_altstacks.h) for profilers that have started the library
// by attach; an agent installs its own. Any thread; not for handlers.
//
// Invariant: a stop of the runtime, if one is needed, is made by a thread of the library's own,
// which holds no lock: a caller could hold one that a thread on its way to a safe point waits for.
// Callers wait for a bounded time, and a managed thread does not wait at all, since the stop waits
// for that thread.
#include "life/altstacks_soon.h"
#include "life/small_stacks.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own_thread.h"
#include "life/start.h"
#include "signal/request.h"
#include "threads/altstack.h"
#include "threads/install_altstacks.h"
#include "threads/own_tid.h"
#include "threads/registry.h"
#include "threads/threads.h"

#define MS 1000000ull

enum {
  READY_US = 2000,  // between two tries whether walks may be taken
  READY_TRIES = 5000,
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t over;
  bool running;  // the thread
  uint64_t next_ns, gap_ns;
} soon = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};

// Returns true if no further try is needed.
static bool try_to_install(void) {
  struct cs_error err;
  struct cs_altstacks_result result;
  if (!cs_library_enter()) return true;
  HRESULT hr = cs_library_ready(&err);
  if (hr == S_OK) hr = cs_install_altstacks(cs_library.info, &result);
  bool again = hr == CORPROF_E_STACKSNAPSHOT_UNSAFE;
  if (FAILED(hr) && !again)
    cs_log_important("threads that were there before cannot be walked while they run: 0x%08x",
                     (unsigned)hr);
  cs_library_leave();
  return !again;
}

static void *install(void *unused) {
  (void)unused;
  for (int i = 0; i < READY_TRIES && !try_to_install(); i++) (void)usleep(READY_US);
  pthread_mutex_lock(&soon.lock);
  soon.running = false;
  soon.next_ns = cs_clock_now_ns() + soon.gap_ns;
  soon.gap_ns = cs_altstacks_gap_after(soon.gap_ns);
  pthread_cond_broadcast(&soon.over);
  pthread_mutex_unlock(&soon.lock);
  return NULL;
}

static bool start_thread(void) {
  int failed = cs_own_thread_start(install);
  if (failed != 0) cs_log_important("no thread to stop the runtime from: %s", strerror(failed));
  return failed == 0;
}

static bool is_wanted(void) {
  for (uint32_t i = 0; i < cs_registry_count(); i++) {
    const struct cs_thread *thread = cs_registry_at(i);
    if (cs_load_acquire(&thread->tid) != 0 && !cs_thread_may_be_signalled(thread) &&
        cs_thread_room(thread) != CS_ROOM_SMALL)
      return true;
  }
  return false;
}

void cs_library_altstacks_soon(bool at_once) {
  if (!is_wanted()) return;
  pthread_mutex_lock(&soon.lock);
  if (at_once) soon.next_ns = soon.gap_ns = 0;
  if (soon.gap_ns == 0) soon.gap_ns = CS_ALTSTACKS_FIRST_GAP_NS;
  if (!soon.running && cs_clock_now_ns() >= soon.next_ns) soon.running = start_thread();
  pthread_mutex_unlock(&soon.lock);
}

static void wait_for_it(const struct cs_thread *thread) {
  struct timespec until =
      cs_timespec_of(cs_clock_read_ns(CLOCK_REALTIME) + cs_threads.answer_timeout_ms * MS);
  int rc = 0;
  pthread_mutex_lock(&soon.lock);
  while (soon.running && !cs_thread_may_be_signalled(thread) && rc != ETIMEDOUT)
    rc = pthread_cond_timedwait(&soon.over, &soon.lock, &until);
  pthread_mutex_unlock(&soon.lock);
}

static uint32_t stopped_by;  // set by the thread itself, through the drop-in

void cs_runtime_stopped_by(uint32_t tid) {
  cs_store_release(&stopped_by, tid);
}

bool cs_runtime_is_stopped_by_caller(void) {
  uint32_t tid = cs_load_acquire(&stopped_by);
  return tid != 0 && tid == cs_own_tid();
}

bool cs_library_may_ask_now(const struct cs_thread *thread) {
  return cs_load_acquire(&cs_signal.small_stacks) == 0 && cs_thread_room(thread) != CS_ROOM_SMALL &&
         (cs_library.info == NULL || cs_thread_may_be_signalled(thread));
}

bool cs_library_may_ask(struct cs_thread *thread, uint32_t *flags, struct cs_error *err) {
  if (cs_library_may_ask_now(thread)) return true;
  if (cs_load_acquire(&cs_signal.small_stacks) != 0)
    return cs_error_set(err, "%s", cs_small_stacks_reason());
  if (cs_thread_room(thread) == CS_ROOM_SMALL)
    return cs_error_set(err,
                        "thread %u has a stack below %d KiB, which may have no room for a signal: "
                        "it can be walked while it sleeps",
                        thread->tid, CS_LEAST_STACK >> 10);
  if (cs_runtime_is_stopped_by_caller()) {
    *flags |= CS_REQUEST_ALTSTACK;  // the runtime is suspended for as long as the caller wants
    return true;
  }
  cs_library_altstacks_soon(false);
  if (!cs_caller_is_managed()) wait_for_it(thread);
  return cs_thread_may_be_signalled(thread) ||
         cs_error_set(err,
                      "thread %u was there before clrsnap and has no larger signal stack yet: "
                      "try again",
                      thread->tid);
}
