// SPDX-License-Identifier: MIT
// clrsnap_snapshot: DoStackSnapshot's contract around the walk. Any thread; not for handlers.
//
// Invariant: checks come in CoreCLR's order (docs/contract.md, the list at its end); while a thread
// is held the CLR is not called (contract: C20), and it is released on every path (contract: C8).
#include "snapshot/snapshot.h"

#include <string.h>

#include "life/error.h"
#include "life/function.h"
#include "life/library.h"
#include "life/runtime.h"
#include "life/start.h"
#include "signal/ucontext.h"
#include "snapshot/context.h"
#include "snapshot/deliver.h"
#include "snapshot/handler.h"
#include "snapshot/hold.h"
#include "snapshot/self.h"
#include "snapshot/sleeping.h"
#include "threads/registry.h"

enum {
  // A hold that finds methods whose ids are not known lets the thread run on, asks the CLR and
  // tries again. Each round knows more; a thread that runs into new methods in every round cannot
  // be held.
  HOLD_ROUNDS = 8,
  RESOLVE_ROUNDS = 4,  // captures, if a module is unloaded during each
  MAX_LEARNED = 64,    // methods to ask for between two holds
};

// The methods that were unknown in earlier rounds, and have been asked for since. The cache has
// them, too, but only until a module is unloaded; with the cache alone, a round might never know
// enough.
struct learned {
  struct cs_record records[MAX_LEARNED];  // a ring
  uint32_t next;
};

static bool resolve_learned(const struct learned *learned, struct cs_record *record) {
  for (uint32_t i = 0; i < MAX_LEARNED; i++) {
    const struct cs_record *known = &learned->records[i];
    if (!known->resolved || known->method_start != record->method_start ||
        (record->function_id != 0 && record->function_id != known->function_id))
      continue;
    record->function_id = known->function_id;
    record->dynamic = known->dynamic;
    record->eh = known->eh;
    record->resolved = true;
    return true;
  }
  return false;
}

// Resolves what can be resolved without the CLR, and notes the rest in `learned`. Returns whether
// nothing is left.
static bool resolve_held(struct cs_capture *capture, struct learned *learned) {
  uint32_t unknown = 0;
  for (uint32_t i = 0; i < capture->count && unknown < MAX_LEARNED; i++) {
    struct cs_record *record = &capture->records[i];
    if (!cs_record_is_managed(record) || cs_function_read(record) ||
        resolve_learned(learned, record))
      continue;
    learned->records[learned->next++ % MAX_LEARNED] = *record;
    unknown++;
  }
  return unknown == 0;
}

static void learn(struct learned *learned) {
  for (uint32_t i = 0; i < MAX_LEARNED; i++) {
    if (cs_record_is_managed(&learned->records[i])) (void)cs_function_resolve(&learned->records[i]);
  }
}

// A callback in C++ may throw through these frames. Cleanups run all the same: the component is
// compiled with -fexceptions.
static void end_take(struct cs_take *take) {
  if (take->request != NULL) (void)cs_take_end(take);
}
#define ENDED_AT_SCOPE_EXIT __attribute__((cleanup(end_take)))

static void leave_core(const bool *entered) {
  if (*entered) cs_library_leave();
}
static void unpin(struct cs_thread *const *thread) {
  if (*thread != NULL) cs_thread_unpin(*thread);
}

static bool has_managed(const struct cs_capture *capture) {
  for (uint32_t i = 0; i < capture->count; i++)
    if (cs_record_is_managed(&capture->records[i])) return true;
  return false;
}

// CoreCLR's walk fails when there is nothing to walk (contract: C11). It starts at the innermost
// Frame of a call; in an enter hook there is none, but there is managed code.
static HRESULT report(const struct cs_capture *capture, const struct cs_delivery *to,
                      struct cs_error *err) {
  HRESULT hr = cs_deliver(capture, to, err);
  if (hr != S_OK || !capture->no_explicit_frames || has_managed(capture)) return hr;
  cs_error_set(err, "the thread has no managed frames");
  return E_FAIL;
}

// Holds once. Returns whether *hr is final; otherwise there were unknown methods, which have been
// learned since, and the thread runs.
static bool hold_once(struct cs_thread *thread, const struct cs_regs *seed, struct learned *learned,
                      const struct cs_delivery *to, HRESULT *hr, struct cs_error *err) {
  struct cs_take take ENDED_AT_SCOPE_EXIT = {0};
  *hr = cs_take_other(&take, thread, CS_REQUEST_HOLD, seed, err);
  if (*hr != S_OK) return true;
  bool resolved = resolve_held(&take.request->capture, learned);
  struct cs_delivery held = *to;
  held.held = take.request;
  if (resolved) *hr = report(&take.request->capture, &held, err);
  end_take(&take);
  if (!resolved) learn(learned);
  return resolved;
}

// At first most methods of a stack are unknown: a capture finds them all without a hold.
static HRESULT learn_by_capture(struct cs_thread *thread, const struct cs_regs *seed,
                                struct cs_error *err) {
  struct cs_take take;
  if (!cs_thread_pin(thread, thread->clr_thread)) return CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD;
  HRESULT hr = cs_take_other(&take, thread, 0, seed, err);
  if (hr != S_OK) return hr;
  (void)cs_capture_resolve(&take.request->capture);
  (void)cs_take_end(&take);
  return S_OK;
}

// Callbacks while the target is held (CLRSNAP_HOLD_TARGET). `thread` is pinned, and stays so.
// If all methods are known already, this does not call the CLR at all (contract: C20).
static HRESULT snapshot_held(struct cs_thread *thread, const struct cs_regs *seed,
                             const struct cs_delivery *to, struct cs_error *err) {
  if (cs_caller_is_managed()) {
    cs_error_set(err, "a thread that runs managed code may not hold another one (contract: C17)");
    return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
  struct learned learned = {0};
  HRESULT hr = S_OK;
  for (int round = 0; round < HOLD_ROUNDS && hr == S_OK; round++) {
    if (!cs_thread_pin(thread, thread->clr_thread))
      return CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD;
    if (hold_once(thread, seed, &learned, to, &hr, err)) return hr;
    if (round == 0) hr = learn_by_capture(thread, seed, err);
  }
  if (hr != S_OK) return hr;
  cs_error_set(err, "the thread ran into code that was not known yet in each of %d holds",
               HOLD_ROUNDS);
  return CORPROF_E_STACKSNAPSHOT_UNSAFE;
}

static void keep(const struct cs_take *take, struct cs_thread *thread, uint64_t clr_thread) {
  const struct cs_capture *capture = &take->request->capture;
  if (!capture->asleep || capture->kept || !cs_thread_pin(thread, clr_thread)) return;
  cs_asleep_keep(take->request, thread);
  cs_thread_unpin(thread);
}

// A capture that was kept is resolved already.
static bool resolve(struct cs_capture *capture, bool other) {
  return (other && capture->asleep && capture->kept) || cs_capture_resolve(capture);
}

// Walks and resolves. A capture that cannot be resolved because a module is being unloaded is taken
// again. `thread` NULL: the calling thread.
static HRESULT take_resolved(struct cs_take *take, struct cs_thread *thread, uint64_t clr_thread,
                             const struct cs_regs *caller, const struct cs_regs *seed,
                             uint32_t flags, struct cs_error *err) {
  for (int round = 1;; round++) {
    HRESULT hr = thread == NULL ? cs_take_self(take, clr_thread, caller, flags, seed, err)
                                : cs_take_other(take, thread, flags, seed, err);
    bool resolved = hr == S_OK && resolve(&take->request->capture, thread != NULL);
    if (resolved && thread != NULL) keep(take, thread, clr_thread);
    if (hr != S_OK || resolved || thread == NULL || round == RESOLVE_ROUNDS) return hr;
    (void)cs_take_end(take);
    if (!cs_thread_pin(thread, clr_thread)) {
      cs_error_set(err, "the thread has ended");
      return CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD;
    }
  }
}

// Registers that only a CONTEXT needs are not followed without one.
static uint32_t request_flags(const struct cs_delivery *to) {
  uint32_t round = to->flags & CS_SNAPSHOT_ROUND ? CS_REQUEST_ROUND : 0;
  if (to->info_flags & COR_PRF_SNAPSHOT_REGISTER_CONTEXT) return round;
  if (to->flags & CLRSNAP_REPORT_DYNAMIC) return CS_REQUEST_PLAIN | round;
  return CS_REQUEST_PLAIN | CS_REQUEST_LOGICAL | round;
}

// Captures, lets the target run on, then calls back. `thread` NULL: the calling thread, whose walk
// `take` may hold already.
static HRESULT snapshot_captured(struct cs_take *take, struct cs_thread *thread,
                                 uint64_t clr_thread, const struct cs_regs *caller,
                                 const struct cs_regs *seed, const struct cs_delivery *to,
                                 struct cs_error *err) {
  HRESULT hr = take_resolved(take, thread, clr_thread, caller, seed, request_flags(to), err);
  if (hr != S_OK) return hr;
  struct cs_capture *capture = &take->request->capture;
  // As CoreCLR does for the calling thread (docs/contract.md, the list of HRESULTs, 8), even where
  // it drops a seed; for another thread it would return E_NOTIMPL.
  if (thread == NULL && !capture->seeded && capture->in_unwind) {
    cs_error_set(err, "an exception is unwinding the thread's frames; walk in a handler instead");
    return CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX;
  }
  const struct cs_request *request = take->request;
  if (capture->kept && request->reported_count > 0)
    return cs_deliver_reported(request->reported, request->reported_count, to, err);
  return report(capture, to, err);
}

// With CLRSNAP_HOLD_TARGET, the runtime is asked until the check has passed once (snapshot_held). A
// thread that holds another one does not ask at all.
static HRESULT check_runtime(const struct cs_delivery *to, bool holds, struct cs_error *err) {
  if (!holds) return cs_runtime_check((to->flags & CLRSNAP_HOLD_TARGET) != 0, err);
  if (cs_runtime_checked()) return S_OK;
  cs_error_set(err, "COR_PRF_ENABLE_STACK_SNAPSHOT was not in the event mask at clrsnap_hold");
  return CORPROF_E_INCONSISTENT_WITH_FLAGS;
}

struct seed {
  const BYTE *context;
  ULONG32 size;
  bool readable;
  struct cs_regs regs;
};

// The kernel makes the copy if it can, since the address may be invalid.
static bool read_seed(struct seed *seed, uint32_t *flags) {
  BYTE copy[CS_CONTEXT_MIN];
  const struct cs_mem *mem = &cs_library.world.mem;
  if (seed->context == NULL || seed->size < CS_CONTEXT_MIN) return false;
  if (!mem->guard_works)
    memcpy(copy, seed->context, sizeof copy);
  else if (!cs_mem_read_guarded(mem, (uint64_t)(uintptr_t)seed->context, copy, sizeof copy))
    return false;
  cs_context_read(copy, &seed->regs);
  *flags = cs_context_flags(copy);
  return true;
}

static const char *what_is_wrong(const struct cs_delivery *to, const struct seed *seed) {
  if (seed->context != NULL && seed->size < CS_CONTEXT_MIN)
    return "the context is smaller than " CS_CONTEXT_MIN_TEXT " bytes";
  if (seed->context != NULL && !seed->readable) return "the context cannot be read";
  if (to->callback == NULL) return "the callback is NULL";
  return to->info_flags & ~COR_PRF_SNAPSHOT_REGISTER_CONTEXT ? "unknown info_flags" : NULL;
}

static HRESULT check_arguments(const struct cs_delivery *to, const struct seed *seed, bool holds,
                               struct cs_error *err) {
  HRESULT hr = S_OK;
  if (!(to->flags & CS_SNAPSHOT_QUIET)) {
    if (cs_library_ready(err) != S_OK) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
    hr = check_runtime(to, holds, err);
  }
  if (hr != S_OK) return hr;
  const char *wrong = what_is_wrong(to, seed);
  if (wrong == NULL) return S_OK;
  cs_error_set(err, "%s", wrong);
  return E_INVALIDARG;
}

// A snapshot of the calling thread in a signal handler: no calls, no error text. Methods cannot be
// resolved before the runtime's memory has been checked.
static HRESULT snapshot_in_handler(struct cs_take *take, const struct cs_delivery *to) {
  cs_capture_read_functions(&take->request->capture);
  if (!cs_function_checked() && has_managed(&take->request->capture))
    return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  return cs_deliver(&take->request->capture, to, NULL);
}

// A snapshot of the thread that the caller holds.
static HRESULT snapshot_of_held(struct cs_take *take, const struct cs_request *held, ThreadID id,
                                const struct cs_regs *seed, const struct cs_delivery *to,
                                struct cs_error *err) {
  HRESULT hr = cs_take_held(take, held, id, request_flags(to), seed, err);
  if (hr != S_OK) return hr == S_FALSE ? S_OK : hr;
  return cs_deliver(&take->request->capture, to, err);
}

static HRESULT snapshot_outside(struct cs_take *take, ThreadID id, const struct cs_delivery *to,
                                const struct cs_regs *caller, const struct seed *seed,
                                struct cs_error *err) {
  const struct cs_regs *regs = seed->readable ? &seed->regs : NULL;
  struct cs_thread *thread;
  uint64_t clr_thread;
  const struct cs_request *held = cs_hold_of_caller();
  HRESULT hr = check_arguments(to, seed, held != NULL, err);
  if (hr != S_OK) return hr;
  if (held != NULL) return snapshot_of_held(take, held, id, regs, to, err);
  switch (cs_target_find(id, take->caller, &clr_thread, &thread)) {
    case CS_TARGET_NONE:
      return S_OK;
    case CS_TARGET_GONE:
      cs_error_set(err, "the thread has been destroyed");
      return CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD;
    case CS_TARGET_SELF:
      return snapshot_captured(take, NULL, clr_thread, caller, regs, to, err);
    case CS_TARGET_OTHER:
      break;
  }
  if (!(to->flags & CLRSNAP_HOLD_TARGET))
    return snapshot_captured(take, thread, clr_thread, NULL, regs, to, err);
  struct cs_thread *pinned __attribute__((cleanup(unpin))) = thread;
  return snapshot_held(pinned, regs, to, err);
}

// Sets *in_handler if nothing may be called from then on, not even for an error text.
static HRESULT snapshot(ThreadID id, struct cs_delivery *to, const struct cs_regs *caller,
                        struct seed *seed, bool *in_handler, struct cs_error *err) {
  struct cs_take take ENDED_AT_SCOPE_EXIT = {0};
  bool quiet = (to->flags & CS_SNAPSHOT_QUIET) != 0;
  if (quiet && cs_library_state() != S_OK) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  seed->readable = read_seed(seed, &to->seed_flags);
  HRESULT hr = cs_take_early(&take, id, caller, request_flags(to),
                             seed->readable ? &seed->regs : NULL, quiet, in_handler);
  if (take.self || id == 0) to->context_flags = 0;
  if (*in_handler && what_is_wrong(to, seed) != NULL)
    hr = E_INVALIDARG;
  else if (!*in_handler)
    hr = snapshot_outside(&take, id, to, caller, seed, err);
  else if (hr == S_OK)
    hr = snapshot_in_handler(&take, to);
  return hr == S_FALSE ? S_OK : hr;
}

HRESULT cs_snapshot(uint32_t flags, ThreadID thread, StackSnapshotCallback *callback,
                    ULONG32 info_flags, void *client_data, BYTE context[], ULONG32 context_size) {
  struct cs_delivery to = {callback, client_data, info_flags, cs_context_general(), flags, 0, NULL};
  struct seed seed;
  struct cs_error err;
  struct cs_regs caller;
  bool in_handler = false;
  HRESULT hr = CORPROF_E_STACKSNAPSHOT_UNSAFE;
  seed.context = context;
  seed.size = context_size;
  err.text[0] = '\0';
  cs_regs_of_caller(&caller);
  bool entered __attribute__((cleanup(leave_core))) = cs_library_enter();
  if (entered)
    hr = snapshot(thread, &to, &caller, &seed, &in_handler, &err);
  else
    cs_error_set(&err, "clrsnap is not started: call clrsnap_start first");
  if (hr != S_OK && !in_handler && !(flags & CS_SNAPSHOT_QUIET)) *cs_last_error() = err;
  return hr;
}

CLRSNAP_API HRESULT clrsnap_snapshot(ThreadID thread, StackSnapshotCallback *callback,
                                     ULONG32 info_flags, void *client_data, BYTE context[],
                                     ULONG32 context_size) {
  return cs_snapshot(cs_library.opts.flags, thread, callback, info_flags, client_data, context,
                     context_size);
}

// ---- In a signal handler of the caller's ----

static HRESULT snapshot_from_signal(const void *ucontext, const struct cs_delivery *to,
                                    const struct cs_regs *seed) {
  struct cs_regs interrupted;
  struct cs_take take;
  uint64_t clr_thread = cs_clr_thread_of_caller();
  if (cs_load_acquire(&cs_signal.world) == NULL) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  if (clr_thread == 0) return S_OK;  // no managed thread (contract: C9)
  cs_regs_from_ucontext(&interrupted, ucontext);
  HRESULT hr = cs_take_now(&take, clr_thread, &interrupted, request_flags(to), seed);
  if (hr != S_OK) return hr;
  cs_capture_read_functions(&take.request->capture);
  hr = cs_deliver(&take.request->capture, to, NULL);
  (void)cs_take_end(&take);
  return hr;
}

CLRSNAP_API HRESULT clrsnap_snapshot_from_signal(const void *ucontext,
                                                 StackSnapshotCallback *callback,
                                                 ULONG32 info_flags, void *client_data,
                                                 BYTE context[], ULONG32 context_size) {
  struct cs_delivery to = {
      callback, client_data, info_flags, cs_context_general(), cs_library.opts.flags, 0, NULL};
  struct cs_regs seed;
  if (ucontext == NULL || callback == NULL ||
      (info_flags & ~(ULONG32)COR_PRF_SNAPSHOT_REGISTER_CONTEXT) != 0 ||
      (context != NULL && context_size < CS_CONTEXT_MIN))
    return E_INVALIDARG;
  if (context != NULL) {
    cs_context_read(context, &seed);
    to.seed_flags = cs_context_flags(context);
  }
  if (!cs_library_enter()) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  HRESULT hr = snapshot_from_signal(ucontext, &to, context != NULL ? &seed : NULL);
  cs_library_leave();
  return hr;
}
