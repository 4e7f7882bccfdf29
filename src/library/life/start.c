// SPDX-License-Identifier: MIT
// The library's life in a process: options, the runtime's layout, native images, the signal; and
// the checks that have to pass before anything is walked. Not for handlers.
//
// Invariant: cs_signal.world, without which no handler walks, is published only after the layout
// has been checked against a thread and against code that the profiling API names; and it is
// cleared before anything that it points to is freed.
#include "life/start.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "contract/contract.h"
#include "life/clients.h"
#include "life/eh.h"
#include "life/epoch.h"
#include "life/function.h"
#include "life/images.h"
#include "life/permanent.h"
#include "life/seccomp.h"
#include "threads/own_signal.h"
#include "threads/own_tid.h"
#include "threads/registry.h"
#include "threads/sleeper.h"
#include "threads/threads.h"

enum {
  DEFAULT_ANSWER_MS = 1000,
  DEFAULT_HOLD_MS = 2000,
  MAX_TIMEOUT_MS = 600000,
  MAX_DEPTH = 1 << 20,
};

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t check_lock = PTHREAD_MUTEX_INITIALIZER;

// The results of the checks so far.
enum { CHECK_OPEN, CHECK_PASSED, CHECK_FAILED };
static uint32_t thread_check, code_check;
static struct cs_error check_error;

static HRESULT fill_options(const struct clrsnap_opts *opts, struct cs_error *err) {
  struct clrsnap_opts all = {0};
  if (opts != NULL) {
    if (opts->size < sizeof opts->size || opts->size > 4096) {
      cs_error_set(err, "clrsnap_opts.size is %zu: set it to sizeof(struct clrsnap_opts)",
                   opts->size);
      return E_INVALIDARG;
    }
    memcpy(&all, opts, opts->size < sizeof all ? opts->size : sizeof all);
  }
  all.size = sizeof all;
  if (all.answer_timeout_ms == 0) all.answer_timeout_ms = DEFAULT_ANSWER_MS;
  if (all.hold_timeout_ms == 0) all.hold_timeout_ms = DEFAULT_HOLD_MS;
  if (all.max_depth == 0) all.max_depth = CS_WALK_DEFAULT_DEPTH;
  if (all.answer_timeout_ms > MAX_TIMEOUT_MS || all.hold_timeout_ms > MAX_TIMEOUT_MS ||
      all.max_depth > MAX_DEPTH || all.walk_limit_us > MAX_TIMEOUT_MS * 1000u ||
      (all.flags &
       ~(uint32_t)(CLRSNAP_HOLD_TARGET | CLRSNAP_REPORT_DYNAMIC | CLRSNAP_ALWAYS_SIGNAL)) != 0) {
    cs_error_set(err, "an option is out of range: time-outs up to %d ms, max_depth up to %d",
                 MAX_TIMEOUT_MS, MAX_DEPTH);
    return E_INVALIDARG;
  }
  cs_library.opts = all;
  cs_threads.max_depth = all.max_depth;
  cs_threads.answer_timeout_ms = all.answer_timeout_ms;
  cs_threads.hold_timeout_ms = all.hold_timeout_ms;
  cs_store_relaxed(&cs_signal.request_limit_ns, all.walk_limit_us * 1000ull);
  return S_OK;
}

// ---- What takes long ----

static pthread_mutex_t prepare_lock = PTHREAD_MUTEX_INITIALIZER;
static bool prepared;

static HRESULT prepare(struct cs_error *err) {
  cs_clock_init();
  cs_signal.ns_of_tick = cs_clock_ticks_to_ns(1ull << 32);
  cs_signal.ticks_of_ns = (uint64_t)(((unsigned __int128)1 << 64) /
                                     (cs_signal.ns_of_tick != 0 ? cs_signal.ns_of_tick : 1));
  if (!cs_library_images_init()) {
    cs_error_set(err, "no memory for the tables of native images");
    return E_OUTOFMEMORY;
  }
  (void)cs_sleeper_init();
  cs_own_tid_init();
  cs_functions_forget();
  (void)cs_library_refresh_images();
  return S_OK;
}

HRESULT cs_library_prepare(struct cs_error *err) {
  HRESULT hr = S_OK;
  pthread_mutex_lock(&prepare_lock);
  if (!prepared) hr = prepare(err);
  if (hr == S_OK) cs_store_release(&prepared, true);
  pthread_mutex_unlock(&prepare_lock);
  return hr;
}

bool cs_library_is_prepared(void) {
  return cs_load_acquire(&prepared);
}

static HRESULT begin(const struct clrsnap_opts *opts, struct cs_error *err) {
  HRESULT hr = fill_options(opts, err);
  if (hr != S_OK) return hr;
  if (!cs_registry_init(err)) return E_OUTOFMEMORY;
  cs_mem_init_self(&cs_library.world.mem);
  if (!cs_library.world.mem.guard_works)
    cs_log_important(
        "process_vm_readv on this process itself is refused (seccomp?): "
        "stacks with code that can be unloaded will be cut");
  pthread_mutex_lock(&prepare_lock);
  cs_store_release(&prepared, false);
  pthread_mutex_unlock(&prepare_lock);
  thread_check = code_check = CHECK_OPEN;
  cs_signal.pid = getpid();
  return cs_own_signal_install(cs_library.opts.signal_number, err);
}

static void publish(void) {
  cs_store_release(&cs_signal.world, &cs_library.world);
}

HRESULT cs_library_start_native(const struct clrsnap_opts *opts, struct cs_error *err) {
  pthread_mutex_lock(&start_lock);
  HRESULT hr = S_FALSE;
  if (!cs_library.running) {
    memset(&cs_library.world.layout, 0, sizeof cs_library.world.layout);
    hr = cs_seccomp_probe(err) ? begin(opts, err) : E_FAIL;
    if (hr == S_OK) hr = cs_library_prepare(err);
    if (hr == S_OK && cs_client_add(NULL, NULL)) {
      cs_library.running = true;
      publish();
    }
  }
  pthread_mutex_unlock(&start_lock);
  return hr;
}

static HRESULT start_in_clr(IUnknown *unknown, ICorProfilerInfo15 *info,
                            const struct clrsnap_opts *opts, struct cs_error *err) {
  struct cs_runtime_version version = {0};
  bool version_known = cs_runtime_version_get(unknown, &version);
  if (!cs_seccomp_probe(err)) return CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER;
  if (!cs_contract_read(&cs_library.world.layout, version_known ? &version : NULL, err))
    return CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER;
  HRESULT hr = begin(opts, err);
  if (hr != S_OK) return hr;
  cs_library.info = info;
  cs_library.running = true;
  return S_OK;
}

static HRESULT start_client(IUnknown *unknown, const struct clrsnap_opts *opts,
                            struct cs_error *err) {
  ICorProfilerInfo15 *info = NULL;
  if (cs_client_is_known(unknown)) return S_FALSE;
  if (unknown->lpVtbl->QueryInterface(unknown, &IID_ICorProfilerInfo8, (void **)&info) != S_OK) {
    cs_error_set(err, "the runtime has no ICorProfilerInfo8");
    return E_NOINTERFACE;
  }
  HRESULT hr = cs_library.running ? S_FALSE : start_in_clr(unknown, info, opts, err);
  if (SUCCEEDED(hr) && !cs_client_add(unknown, info)) {
    cs_error_set(err, "too many profilers share clrsnap in this process");
    hr = E_OUTOFMEMORY;
  }
  if (FAILED(hr)) info->lpVtbl->Release(info);
  return hr;
}

HRESULT cs_library_begin(IUnknown *info, const struct clrsnap_opts *opts, struct cs_error *err) {
  if (info == NULL) {
    cs_error_set(err, "clrsnap_start needs the IUnknown that the profiler got in Initialize");
    return E_INVALIDARG;
  }
  pthread_mutex_lock(&start_lock);
  HRESULT hr = start_client(info, opts, err);
  pthread_mutex_unlock(&start_lock);
  return hr;
}

HRESULT cs_library_start(IUnknown *info, const struct clrsnap_opts *opts, struct cs_error *err) {
  HRESULT hr = cs_library_begin(info, opts, err);
  if (FAILED(hr)) return hr;
  HRESULT prepared_hr = cs_library_prepare(err);
  if (FAILED(prepared_hr)) {
    cs_library_stop(info);
    return prepared_hr;
  }
  if (hr == S_OK) {
    cs_registry_forget_ended(cs_library.info);
    cs_library_adopt_threads();
  }
  return hr;
}

// When this returns, no public call is under way, no thread is held, and no call can begin before
// the library runs again. A hold that is never released ends by itself, and is not waited for.
static void wait_for_users(void) {
  __atomic_store_n(&cs_library.running, false, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&cs_library.users, __ATOMIC_SEQ_CST) != 0) (void)usleep(1000);
  uint64_t until = cs_clock_now_ns() + cs_library.opts.hold_timeout_ms * 1000000ull;
  while (__atomic_load_n(&cs_library.holds, __ATOMIC_SEQ_CST) != 0 && cs_clock_now_ns() < until)
    (void)usleep(1000);
}

void cs_library_stop(const IUnknown *unknown) {
  ICorProfilerInfo15 *info, *left;
  pthread_mutex_lock(&start_lock);
  if (cs_library.running && cs_client_remove(unknown, &info)) {
    if (!cs_client_any(&left)) {
      cs_store_release(&cs_library.running, false);
      cs_store_release(&cs_signal.world, NULL);
      bool walks_ended = cs_epoch_wait();
      wait_for_users();
      if (walks_ended) cs_library_images_rest();
      if (walks_ended) cs_functions_rest();
      cs_registry_rest();
      cs_library.info = NULL;
    } else if (info == cs_library.info) {
      wait_for_users();
      cs_library.info = left;
      cs_store_release(&cs_library.running, true);
    }
    if (info != NULL) info->lpVtbl->Release(info);
  }
  pthread_mutex_unlock(&start_lock);
}

// ---- The checks ----

static void note_check(uint32_t *state, enum cs_check check, const struct cs_error *err) {
  if (check == CS_CHECK_PASSED) {
    uint32_t open = CHECK_OPEN;
    (void)cs_cas(state, &open, CHECK_PASSED);
  } else if (check == CS_CHECK_FAILED) {
    pthread_mutex_lock(&check_lock);
    if (check_error.text[0] == '\0') check_error = *err;
    pthread_mutex_unlock(&check_lock);
    cs_store_release(state, CHECK_FAILED);
    cs_store_release(&cs_signal.world, NULL);
    cs_log_important("this runtime is not walked: %s", err->text);
  }
}

void cs_library_check_thread(uint64_t clr_thread, uint32_t tid) {
  struct cs_error err = {0};
  if (!cs_library.running || cs_library.info == NULL || clr_thread == 0) return;
  note_check(&thread_check,
             cs_contract_check_thread(&cs_library.world.layout, (ThreadID)clr_thread, tid, &err),
             &err);
}

static void check_known_threads(void) {
  for (uint32_t i = 0; i < cs_registry_count(); i++) {
    struct cs_thread *thread = cs_registry_at(i);
    uint64_t clr_thread = thread->clr_thread;
    if (clr_thread == 0 || !cs_thread_pin(thread, clr_thread)) continue;
    cs_library_check_thread(clr_thread, thread->tid);
    cs_thread_unpin(thread);
  }
}

void cs_library_adopt_threads(void) {
  if (cs_library.info == NULL) return;
  cs_registry_adopt(cs_library.info);
  check_known_threads();
}

// Returns whether a jitted method agrees with the layout, or ReadyToRun images do. With images
// alone, there is no jitted code to walk yet, and the next call continues the check.
static bool check_code(void) {
  struct cs_error err = {0};
  struct cs_code_check report;
  struct cs_permanent code;
  cs_permanent_code(&cs_library.world.layout, &code);
  // The check calls the CLR, so no lock is held (contract: C19). Two checks at a time do no harm.
  enum cs_check check =
      cs_contract_check_code(&cs_library.world.layout, cs_library.info, &code, &report, &err);
  note_check(&code_check, check, &err);
  return check == CS_CHECK_PASSED || (check == CS_CHECK_NOT_YET && report.images > 0);
}

HRESULT cs_library_state(void) {
  if (cs_load_acquire(&cs_signal.world) != NULL) return S_OK;
  bool failed = cs_load_acquire(&thread_check) == CHECK_FAILED ||
                cs_load_acquire(&code_check) == CHECK_FAILED;
  return failed ? CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER : CORPROF_E_STACKSNAPSHOT_UNSAFE;
}

bool cs_library_is_settled(void) {
  HRESULT state = cs_library_state();
  return state == CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER ||
         (state == S_OK && cs_load_acquire(&code_check) == CHECK_PASSED && cs_function_checked());
}

bool cs_library_retry_checks(void) {
  struct cs_error err;
  if (cs_library_is_settled() || !cs_library_enter()) return true;
  if (cs_library_ready(&err) == S_OK) (void)cs_function_check();
  cs_library_leave();
  return cs_library_is_settled();
}

HRESULT cs_library_ready(struct cs_error *err) {
  bool walks = cs_load_acquire(&cs_signal.world) != NULL;
  // Without a runtime (in unit tests) there is nothing to check.
  if (walks && (cs_library.info == NULL || cs_load_acquire(&code_check) == CHECK_PASSED))
    return S_OK;
  if (!cs_load_acquire(&cs_library.running)) {
    cs_error_set(err, "clrsnap is not started: call clrsnap_start first");
    return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
  if (cs_library_prepare(err) != S_OK) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  if (cs_load_acquire(&thread_check) == CHECK_OPEN) check_known_threads();
  bool code_is_right = cs_load_acquire(&code_check) == CHECK_PASSED ||
                       (cs_load_acquire(&code_check) == CHECK_OPEN && check_code());
  uint32_t threads = cs_load_acquire(&thread_check), code = cs_load_acquire(&code_check);
  if (threads == CHECK_FAILED || code == CHECK_FAILED) {
    cs_error_set(err, "%s", check_error.text);
    return CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER;
  }
  if (walks) return S_OK;
  if (threads == CHECK_OPEN || !code_is_right) {
    cs_error_set(err, "the runtime has %s so far to check its layout against; try again",
                 threads == CHECK_OPEN ? "shown no thread" : "loaded no code");
    return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
  cs_unloading_hold();
  cs_eh_init();
  cs_unloading_release();
  (void)cs_function_check();
  (void)cs_library_refresh_images();
  publish();
  return S_OK;
}
