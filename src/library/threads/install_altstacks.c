// SPDX-License-Identifier: MIT
// Gives threads that existed before the library their larger alternate stacks: by the runtime's own
// signal while the runtime runs on; or, where other code has taken that signal or SIGSEGV, by our
// signal in one stop of the runtime. Any native thread, one at a time; not for handlers, nor from a
// callback of the runtime.
//
// Invariant: a thread without the larger stack is sent a signal of ours only while the runtime is
// suspended, when no thread is in the middle of a null reference (docs/signal-safety.md, "After an
// attach"). A signal is taken before the next instruction in user mode, so the answer of a thread
// that was switched out still belongs to the stop, even if it comes after the stop. All waits are
// bounded. Threads that sleep in foreign code are not asked: they could notice (EINTR).
#include "threads/install_altstacks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/prefix.h"
#include "images/images.h"
#include "signal/request.h"
#include "threads/activation.h"
#include "threads/altstack.h"
#include "threads/ask.h"
#include "threads/asleep.h"
#include "threads/calls.h"
#include "threads/registry.h"
#include "threads/stackmap.h"

enum {
  SUSPEND_TRIES = 200,  // the runtime may be suspended already
  SUSPEND_NAP_US = 1000,
  STOP_NS = 50000000,  // after that no further thread is asked
  AT_ONCE = 32,        // threads that are asked at the same time
  CHECKS = 10,         // number of checks of a thread that is awake, before the stop
  CHECK_US = 2000,
  STOPPED_MS = 10,  // the wait for an answer while the runtime is suspended
  LATE_MS = 200,    // the same after that
  NAPS = 50,        // waits, NAP_US each, for threads to take the runtime's signal
  NAP_US = 100,
  SHALLOW = 16,  // frames from the system call to the code that has made it
};

struct wanting {
  struct cs_thread *thread;  // pinned
  bool awake;                // at the last check
  bool restless;  // before the stop it was awake at one check, and then asleep in foreign
                  // code
  uint64_t runs;  // its run count when it was found waiting in the runtime; else 0
};
struct list {
  struct wanting *threads;
  uint32_t count;
  struct cs_stack_maps maps;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// ---- Where a thread sleeps ----

static bool has_prefix(const char *name, const char *const *prefixes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (cs_has_prefix(name, prefixes[i])) return true;
  return false;
}

// Returns whether the image has the C library's part of a system call, or is the vdso.
static bool is_libc(const char *name) {
  static const char *const names[] = {"libc.so", "libc-", "libpthread", "ld-", "[vdso]"};
  return has_prefix(name, names, CS_COUNT(names));
}

// Returns whether the image's code continues to wait after an interruption, for the rest of its
// time.
static bool is_runtime(const char *name) {
  static const char *const names[] = {"libcoreclr.so", "libclrgc"};
  return has_prefix(name, names, CS_COUNT(names));
}

// The same, except that the image's code restarts a wait with its full time-out (Socket.Receive).
// So only waits for events, which have no time-out, may be interrupted (the threads of sockets and
// of signals).
static bool is_events(const char *name) {
  static const char *const names[] = {"libSystem."};
  return has_prefix(name, names, CS_COUNT(names));
}

static bool resumes_wait(const struct cs_world *world, const struct cs_image *image, long call) {
  const char *name = cs_file_of(image->path);
  if (is_runtime(name)) return true;
  if (is_events(name)) return cs_call_is_for_events(call);
  // In a single-file program, one image has both.
  return cs_image_is_runtime(world, image) && (call == SYS_futex || cs_call_is_for_events(call));
}

// Decides by the first frame that is not the C library's.
static bool waits_in_runtime(const struct cs_world *world, const struct cs_capture *capture,
                             long call) {
  for (uint32_t i = 0; i < capture->count; i++) {
    const struct cs_record *record = &capture->records[i];
    if ((record->flags & CS_FRAME_BRIDGED) != 0) return false;
    const struct cs_image *image =
        record->kind == CS_CODE_NATIVE ? cs_images_find(world->images, cs_record_ip(record)) : NULL;
    if (image == NULL) return false;
    if (!is_libc(cs_file_of(image->path))) return resumes_wait(world, image, call);
  }
  return false;
}

enum place { AWAKE, IN_RUNTIME, IN_FOREIGN_CODE };

// Finds out where a thread sleeps, by a walk that does not wake it.
static enum place place_of(struct cs_request *request, struct wanting *w) {
  static struct cs_asleep asleep;
  enum place place = AWAKE;
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  if (cs_asleep_begin(&asleep, w->thread, 0) == CS_ASLEEP_YES) {
    cs_capture_walk(&request->capture, &asleep.world, &asleep.regs, &asleep.stack,
                    asleep.clr_thread, SHALLOW);
    uint64_t runs = asleep.runs;
    long call = cs_sleeper_call(asleep.sleeper);
    if (cs_asleep_end(&asleep))
      place =
          waits_in_runtime(&asleep.world, &request->capture, call) ? IN_RUNTIME : IN_FOREIGN_CODE;
    w->runs = place == IN_RUNTIME ? runs : 0;
  }
  cs_epoch_leave(&cs_signal.epoch, parity);
  return place;
}

// Returns whether it has been waiting in the runtime since the last check.
static bool still_waits(const struct wanting *w, struct cs_sleeper *sleeper) {
  uint64_t runs;
  return w->runs != 0 && cs_sleeper_runs(sleeper, &runs) && runs == w->runs;
}

// Finds the stack of a sleeping thread by its sp in /proc, and that of any other thread by the
// thread pointer that its handler has noted, if it has had a signal.
static void learn_stack(struct cs_thread *thread, struct cs_sleeper *sleeper,
                        const struct cs_stack_maps *maps) {
  struct cs_stack stack;
  uint64_t at, ip;
  if (cs_load_acquire(&thread->stack.hi) != 0) return;
  if (cs_sleeper_where(sleeper, &at, &ip) != CS_SLEEP_BLOCKED)
    at = cs_load_relaxed(&thread->thread_pointer);
  if (!cs_stack_maps_find(maps, at, &stack)) return;
  thread->stack.lo = stack.lo;
  cs_store_release(&thread->stack.hi, stack.hi);
}

// Returns whether it can be sent a signal while the runtime is suspended, without foreign code
// noticing.
static bool may_ask(struct cs_request *request, struct wanting *w,
                    const struct cs_stack_maps *maps) {
  struct cs_sleeper spare, *sleeper = cs_sleeper_open(w->thread, &spare);
  w->awake = true;
  if (sleeper == NULL) return true;
  learn_stack(w->thread, sleeper, maps);
  bool waits = still_waits(w, sleeper);
  cs_sleeper_close(sleeper, &spare);
  enum place place = waits ? IN_RUNTIME : place_of(request, w);
  w->awake = place == AWAKE;
  return place != IN_FOREIGN_CODE;
}

// ---- The list ----

static void release(struct list *list) {
  for (uint32_t i = 0; i < list->count; i++) cs_thread_unpin(list->threads[i].thread);
  free(list->threads);
  cs_stack_maps_free(&list->maps);
}

// Collects and pins the threads that lack the larger stack, and whose own stack has room for the
// signal. Returns false if there is no memory.
static bool collect(struct list *list) {
  uint32_t count = cs_registry_count();
  *list = (struct list){.threads = calloc(count > 0 ? count : 1, sizeof *list->threads)};
  if (list->threads == NULL) return false;
  for (uint32_t i = 0; i < count; i++) {
    struct cs_thread *thread = cs_registry_at(i);
    uint64_t clr_thread = thread->clr_thread;
    if (cs_load_acquire(&thread->tid) != 0 && !cs_thread_may_be_signalled(thread) &&
        cs_thread_room(thread) != CS_ROOM_SMALL && thread->altstack.sp != 0 &&
        cs_thread_pin(thread, clr_thread))
      list->threads[list->count++] = (struct wanting){.thread = thread};
  }
  if (list->count > 0) cs_stack_maps_read(&list->maps);
  return true;
}

// ---- The runtime's own signal ----

// Returns how many were asked.
static uint32_t ask_by_activation(struct list *list, struct cs_request *request, uint32_t *asleep) {
  uint32_t asked = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    struct wanting *w = &list->threads[i];
    if (cs_load_acquire(&w->thread->altstack.asked) != 0) continue;
    if (!may_ask(request, w, &list->maps))
      ++*asleep;
    else if (cs_activation_ask(w->thread))
      asked++;
  }
  return asked;
}

static uint32_t count_given(const struct list *list) {
  uint32_t given = 0;
  for (uint32_t i = 0; i < list->count; i++)
    if (cs_thread_may_be_signalled(list->threads[i].thread)) given++;
  return given;
}

static HRESULT install_by_activation(struct list *list, struct cs_request *request,
                                     struct cs_altstacks_result *result) {
  uint32_t asked = ask_by_activation(list, request, &result->asleep);
  for (int nap = 0; nap < NAPS && count_given(list) < asked; nap++) (void)usleep(NAP_US);
  result->given = count_given(list);
  result->unanswered = asked > result->given ? asked - result->given : 0;
  cs_log("%u threads have larger signal stacks now, %u sleep in foreign code, %u have not answered",
         result->given, result->asleep, result->unanswered);
  return asked > 0 ? S_OK : S_FALSE;
}

bool cs_install_altstacks_pinned(struct cs_thread *const *threads, uint32_t count) {
  struct list list = {.threads = calloc(count, sizeof *list.threads)};
  uint32_t asleep = 0;
  bool stacks_known = true;
  pthread_mutex_lock(&lock);
  bool usable = list.threads != NULL && cs_activation_is_usable();
  struct cs_request *request = usable ? cs_request_claim_now() : NULL;
  if (request != NULL) {
    for (uint32_t i = 0; i < count; i++) {
      list.threads[list.count++] = (struct wanting){.thread = threads[i]};
      if (cs_load_acquire(&threads[i]->stack.hi) == 0) stacks_known = false;
    }
    if (!stacks_known) cs_stack_maps_read(&list.maps);
    (void)ask_by_activation(&list, request, &asleep);
    (void)cs_request_release(request);
    cs_stack_maps_free(&list.maps);
  }
  pthread_mutex_unlock(&lock);
  free(list.threads);
  return usable;
}

// ---- The stop ----

// Removes the threads that sleep in foreign code: no stop is needed for them. A thread that is
// awake may be on its way in or out of foreign code, where it would get EINTR all the same; so it
// is checked again. Returns how many were removed.
static uint32_t remove_sleepers(struct list *list, struct cs_request *request) {
  uint32_t all = list->count, awake = all;
  for (int check = 0; check < CHECKS && awake > 0; check++) {
    uint32_t kept = 0;
    if (check > 0) (void)usleep(CHECK_US);
    awake = 0;
    for (uint32_t i = 0; i < list->count; i++) {
      struct wanting *w = &list->threads[i];
      bool asleep = (check == 0 || w->awake) && !may_ask(request, w, &list->maps);
      if (asleep && check == 0) {
        cs_thread_unpin(w->thread);
        continue;
      }
      if (asleep) w->restless = true;
      if (w->awake) awake++;
      list->threads[kept++] = *w;
    }
    list->count = kept;
  }
  return all - list->count;
}

static HRESULT suspend(ICorProfilerInfo15 *info) {
  HRESULT hr = info->lpVtbl->SuspendRuntime(info);
  for (int i = 0; hr == CORPROF_E_SUSPENSION_IN_PROGRESS && i < SUSPEND_TRIES; i++) {
    (void)usleep(SUSPEND_NAP_US);
    hr = info->lpVtbl->SuspendRuntime(info);
  }
  return hr;
}

struct batch {
  struct cs_request *slots[AT_ONCE];
  uint64_t asked[AT_ONCE];
  bool awake[AT_ONCE];
  uint32_t count, posted;
};

static void claim_slots(struct batch *batch, uint32_t wanted) {
  batch->count = batch->posted = 0;
  while (batch->count < AT_ONCE && batch->count < wanted &&
         (batch->slots[batch->count] = cs_request_claim_now()) != NULL)
    batch->count++;
}

static void post_some(const struct wanting *threads, uint32_t count, struct batch *batch) {
  enum { FLAGS = CS_REQUEST_ALTSTACK | CS_REQUEST_PLAIN };
  struct cs_error err;
  batch->posted = count;
  for (uint32_t i = 0; i < count; i++) {
    enum cs_ask ask = cs_request_introduce(batch->slots[i], threads[i].thread, FLAGS, &err);
    if (ask == CS_ASK_ANSWERED)
      ask = cs_request_post(batch->slots[i], FLAGS, &batch->asked[i], &err);
    if (ask != CS_ASK_ANSWERED) batch->slots[i] = NULL;
    batch->awake[i] = threads[i].awake;
  }
}

// Waits for the threads that are awake, or for all. A late thread frees its slot itself.
static void await_some(struct batch *batch, bool all, uint32_t ms) {
  struct cs_error err;
  for (uint32_t i = 0; i < batch->posted; i++) {
    if (batch->slots[i] == NULL || !(all || batch->awake[i])) continue;
    if (cs_request_await(batch->slots[i], batch->asked[i], ms, &err) == CS_ASK_ANSWERED)
      (void)cs_request_release(batch->slots[i]);
    batch->slots[i] = NULL;
  }
}

// Moves the threads to be asked to the front of the list, and returns their number. Those that are
// awake come first of all: of thousands, not all sleepers can be asked in time. A restless thread
// is asked only where it waits in the runtime: there it is on its way into managed code or out of
// it.
static uint32_t choose(struct list *list, struct cs_request *request) {
  uint32_t kept = 0, awake = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    struct wanting w = list->threads[i];
    bool may = may_ask(request, &w, &list->maps);
    list->threads[i] = w;
    if (!may || (w.restless && w.awake)) continue;
    list->threads[i] = list->threads[kept];
    list->threads[kept] = w;
    if (w.awake) {
      list->threads[kept] = list->threads[awake];
      list->threads[awake++] = w;
    }
    kept++;
  }
  return kept;
}

// When this returns, all threads of all batches but the last have answered or timed out, and of the
// last batch, those that were awake. A sleeping thread takes the signal when it wakes, before
// anything else, and the runtime need not be suspended for that.
static void ask_all(const struct list *list, uint32_t count, struct batch *batch) {
  uint64_t until = cs_clock_now_ns() + STOP_NS;
  for (uint32_t at = 0; at < count && cs_clock_now_ns() < until; at += batch->posted) {
    if (at > 0) {
      await_some(batch, true, STOPPED_MS);
      claim_slots(batch, count - at);
    }
    if (batch->count == 0) break;
    uint32_t left = count - at;
    post_some(&list->threads[at], left < batch->count ? left : batch->count, batch);
    await_some(batch, false, STOPPED_MS);
  }
}

static HRESULT stop_for(struct list *list, struct cs_request *request, ICorProfilerInfo15 *info,
                        struct cs_altstacks_result *result) {
  struct batch batch;
  claim_slots(&batch, list->count);  // with their memory, before the stop
  uint64_t begin = cs_clock_now_ns();
  HRESULT hr = suspend(info);
  uint64_t stopped = cs_clock_now_ns();
  if (hr == S_OK) {
    uint32_t count = choose(list, request);
    result->asleep = list->count - count;
    ask_all(list, count, &batch);
    hr = info->lpVtbl->ResumeRuntime(info);
    result->stopped_ns = cs_clock_now_ns() - stopped;
    result->stopping_ns = stopped - begin;
    if (hr != S_OK) cs_log_important("ResumeRuntime has returned 0x%08x", (unsigned)hr);
    hr = S_OK;
    await_some(&batch, true, LATE_MS);
  }
  for (uint32_t i = 0; i < batch.count; i++)
    if (batch.slots[i] != NULL) (void)cs_request_release(batch.slots[i]);
  for (uint32_t i = 0; i < list->count; i++)
    if (cs_thread_may_be_signalled(list->threads[i].thread)) result->given++;
  result->unanswered = list->count - result->given - result->asleep;
  return hr;
}

static HRESULT install_in_stop(struct list *list, struct cs_request *request,
                               ICorProfilerInfo15 *info, struct cs_altstacks_result *result) {
  HRESULT hr = S_FALSE;
  uint32_t asleep = remove_sleepers(list, request);
  if (list->count > 0) hr = stop_for(list, request, info, result);
  result->asleep += asleep;
  result->stopped = hr == S_OK;
  if (hr == S_OK)
    cs_log(
        "the runtime was stopped within %.3f ms for %.3f ms: %u threads have larger signal "
        "stacks now, %u sleep in foreign code, %u have not answered",
        (double)result->stopping_ns / 1e6, (double)result->stopped_ns / 1e6, result->given,
        result->asleep, result->unanswered);
  return hr;
}

HRESULT cs_install_altstacks(ICorProfilerInfo15 *info, struct cs_altstacks_result *result) {
  struct list list;
  struct cs_error err = {""};
  HRESULT hr = S_FALSE;
  *result = (struct cs_altstacks_result){0};
  if (cs_load_acquire(&cs_signal.small_stacks) != 0) return S_FALSE;
  pthread_mutex_lock(&lock);
  struct cs_request *request = cs_request_claim(&err);
  if (request == NULL || !collect(&list)) {
    hr = E_OUTOFMEMORY;
  } else {
    if (list.count > 0)
      hr = cs_activation_is_usable() ? install_by_activation(&list, request, result)
                                     : install_in_stop(&list, request, info, result);
    release(&list);
  }
  if (request != NULL) (void)cs_request_release(request);
  pthread_mutex_unlock(&lock);
  return hr;
}
