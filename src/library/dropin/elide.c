// SPDX-License-Identifier: MIT
// CLRSNAP_ELIDE_SUSPEND=1: a guest that stops the runtime only to walk its threads need not do so,
// since a walk by clrsnap stops no other thread. SuspendRuntime and ResumeRuntime return S_OK, and
// the program runs on.
//
// Invariant: an ID of code or of a type that the guest may have between the two calls stays valid:
// the callbacks that would end it wait for ResumeRuntime, for ELIDE_WAIT_MS at most because a guest
// may never resume. Threads may end meanwhile; ids.c keeps calls that name them safe. Threads: any.
// Not for handlers.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/log.h"
#include "dropin/guest.h"
#include "life/altstacks_soon.h"
#include "life/runtime.h"
#include "snapshot/round.h"
#include "threads/registry.h"

// Longer than walks of thousands of threads take (10 us each), and short enough for a program whose
// profiler never resumes.
enum { ELIDE_WAIT_MS = 200 };

bool cs_elides(const struct cs_guest *guest) {
  return guest->options.elide_suspend && cs_load_acquire(&guest->walks);
}

static HRESULT suspend_runtime(ICorProfilerInfo15 *self) {
  ICorProfilerInfo15 *theirs = THEIRS(self, ICorProfilerInfo15, SuspendRuntime);
  struct cs_guest *guest = cs_wrapped_of(self)->guest;
  uint32_t running = 0;
  if (!cs_elides(guest)) {
    HRESULT hr = theirs->lpVtbl->SuspendRuntime(theirs);
    if (hr == S_OK) cs_runtime_stopped_by((uint32_t)gettid());
    return hr;
  }
  if (cs_runtime_probe(theirs) == CORPROF_E_STACKSNAPSHOT_UNSAFE)
    return CORPROF_E_RUNTIME_UNINITIALIZED;
  if (!cs_cas(&guest->suspended, &running, 1)) return CORPROF_E_SUSPENSION_IN_PROGRESS;
  cs_store_release(&guest->deaths, cs_registry_deaths());
  cs_store_release(&guest->suspender, (uint32_t)gettid());
  cs_round_begin();
  return S_OK;
}

// A resume without a suspension returns what the runtime's own method returns.
static HRESULT resume_runtime(ICorProfilerInfo15 *self) {
  ICorProfilerInfo15 *theirs = THEIRS(self, ICorProfilerInfo15, ResumeRuntime);
  struct cs_guest *guest = cs_wrapped_of(self)->guest;
  uint32_t stopped = 1;
  if (!cs_cas(&guest->suspended, &stopped, 0)) {
    cs_runtime_stopped_by(0);
    return theirs->lpVtbl->ResumeRuntime(theirs);
  }
  cs_round_end();
  (void)syscall(SYS_futex, &guest->suspended, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
  return S_OK;
}

void cs_elide_wait(struct cs_guest *guest) {
  if (cs_load_acquire(&guest->suspended) == 0) return;
  if (cs_load_acquire(&guest->suspender) == (uint32_t)gettid()) return;
  uint64_t until = cs_clock_now_ns() + ELIDE_WAIT_MS * 1000000ull, now;
  while (cs_load_acquire(&guest->suspended) != 0 && (now = cs_clock_now_ns()) < until) {
    struct timespec nap = {.tv_nsec = 10000000};
    (void)syscall(SYS_futex, &guest->suspended, FUTEX_WAIT_PRIVATE, 1, &nap, NULL, 0);
  }
  if (cs_load_acquire(&guest->suspended) != 0)
    cs_log("the profiler has not called ResumeRuntime for %d ms; unloading goes on", ELIDE_WAIT_MS);
}

void cs_elide_take_over(ICorProfilerInfo15Vtbl *vtbl) {
  vtbl->SuspendRuntime = suspend_runtime;
  vtbl->ResumeRuntime = resume_runtime;
}
