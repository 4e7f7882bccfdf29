// SPDX-License-Identifier: MIT
// Takes a capture of the thread with a ThreadID: finds the thread, asks it, and returns an HRESULT.
// Any thread; not for handlers.
//
// Invariant: on a failure the slot is released and the thread unpinned here.
#include "snapshot/take.h"

#include "life/altstacks_soon.h"
#include "life/function.h"
#include "life/images.h"
#include "snapshot/complete.h"
#include "snapshot/round.h"
#include "snapshot/self.h"
#include "snapshot/sleeping.h"
#include "threads/ask.h"
#include "threads/own_tid.h"
#include "threads/registry.h"
#include "threads/threads.h"

// Returns 0 if the calling thread has no ThreadID.
static uint64_t clr_thread_of_caller(void) {
  struct cs_thread *thread = cs_registry_self();
  ThreadID id = 0;
  if (thread != NULL) return thread->clr_thread;
  ICorProfilerInfo15 *info = cs_library.info;
  if (info == NULL || info->lpVtbl->GetCurrentThreadID(info, &id) != S_OK) return 0;
  return id;
}

enum cs_target cs_target_find(ThreadID id, uint64_t caller, uint64_t *clr_thread,
                              struct cs_thread **thread) {
  *clr_thread = id != 0 ? id : caller != 0 ? caller : clr_thread_of_caller();
  *thread = cs_registry_find(id);
  if (id == 0) return *clr_thread != 0 ? CS_TARGET_SELF : CS_TARGET_NONE;
  if (*thread == NULL) return cs_registry_was_destroyed(id) ? CS_TARGET_GONE : CS_TARGET_NONE;
  if (cs_load_acquire(&(*thread)->tid) == cs_own_tid()) return CS_TARGET_SELF;
  if (cs_thread_pin(*thread, id)) return CS_TARGET_OTHER;
  *thread = NULL;
  return cs_registry_was_destroyed(id) ? CS_TARGET_GONE : CS_TARGET_NONE;
}

HRESULT cs_answer_to_hresult(uint32_t answer, struct cs_error *err) {
  switch (answer) {
    case CS_ANSWER_WALKED:
      return S_OK;
    case CS_ANSWER_SEED_SP:
      cs_error_set(err, "the context's stack pointer is not on the target's stack");
      return E_INVALIDARG;
    case CS_ANSWER_SEED_IP:
      cs_error_set(err, "the context's instruction pointer is not in managed code");
      return CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX;
    default:
      cs_error_set(err, "clrsnap has been stopped");
      return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
}

// Returns whether the walk ended in a library that was loaded after the tables were made. Then they
// have been made again, and another try is worth it. The target runs meanwhile.
static bool worth_another(const struct cs_capture *capture) {
  return capture->stop == CS_STOP_UNKNOWN_CODE && cs_library_refresh_images();
}

HRESULT cs_take_self(struct cs_take *take, uint64_t clr_thread, const struct cs_regs *regs,
                     uint32_t flags, const struct cs_regs *seed, struct cs_error *err) {
  HRESULT hr = S_OK;
  bool plain = (flags & CS_REQUEST_PLAIN) != 0;
  if (take->request == NULL) {
    *take = (struct cs_take){.self = true};
    take->request = cs_request_claim(err);
    if (take->request == NULL) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
    hr = cs_answer_to_hresult(cs_walk_self(take->request, regs, clr_thread, seed, plain), err);
  }
  if (hr == S_OK && worth_another(&take->request->capture))
    hr = cs_answer_to_hresult(cs_walk_self(take->request, regs, clr_thread, seed, plain), err);
  if (hr != S_OK) (void)cs_take_end(take);
  return hr;
}

// ---- Another thread ----

static void prepare(struct cs_request *request, uint32_t flags, const struct cs_regs *seed) {
  if (seed != NULL) request->seed = *seed;
  request->answer = CS_ANSWER_WALKED;  // the walk of a sleeping thread does not set it
  request->capture.self = request->capture.held = request->capture.seeded = false;
  request->capture.kept = request->capture.asleep = false;
  request->reported_count = 0;
  request->capture.plain = (flags & CS_REQUEST_PLAIN) != 0;
  request->capture.module_deaths = cs_module_deaths();
}

// The thread was asked ahead, together with others: waits for its walk, which is then in a slot of
// its own, *request, in place of the caller's. If the thread falls asleep meanwhile, with signals
// blocked, it is walked as any sleeper. Sets *ask_alone if the walk cannot be used.
static enum cs_ask await_ahead(struct cs_request **request, struct cs_thread *thread,
                               const struct cs_ahead *ahead, bool *ask_alone,
                               struct cs_error *err) {
  uint32_t ms = 0, wait_ms = CS_FIRST_LOOK_MS, tid = ahead->request->tid;
  unsigned blocked = 0;
  for (; !cs_request_wait(ahead->request, wait_ms); ms += wait_ms, wait_ms = CS_LOOK_MS) {
    (*request)->capture.asleep = cs_asleep_walk(*request, thread, 0);
    if (!(*request)->capture.asleep && ms < cs_threads.answer_timeout_ms &&
        !cs_request_is_vain(ahead->request, &blocked))
      continue;
    cs_round_give_back(thread, ahead);
    if ((*request)->capture.asleep) return CS_ASK_ANSWERED;
    (void)cs_request_release(*request);
    return cs_request_explain(tid, ms, err);
  }
  *ask_alone = !cs_round_is_good(ahead->request);
  (void)cs_request_release(*ask_alone ? ahead->request : *request);
  if (!*ask_alone) *request = ahead->request;
  return CS_ASK_ANSWERED;
}

// Asks the thread alone, unless it sleeps.
static enum cs_ask ask_alone(struct cs_request *request, struct cs_thread *thread, uint32_t flags,
                             struct cs_error *err) {
  uint64_t runs = 0;
  // A thread must be in its handler to be held; otherwise a sleeping thread is not woken.
  request->capture.asleep =
      !(flags & CS_REQUEST_HOLD) &&
      (cs_asleep_recall(request, thread, flags, &runs) || cs_asleep_walk(request, thread, runs));
  bool asleep = request->capture.asleep;
  if (!asleep && !cs_library_may_ask(thread, &flags, err)) {
    (void)cs_request_release(request);
    return CS_ASK_NO_ANSWER;
  }
  enum cs_ask ask = asleep ? CS_ASK_ANSWERED : cs_request_ask(request, thread, flags, err);
  if (ask == CS_ASK_ANSWERED && !(flags & CS_REQUEST_HOLD) && worth_another(&request->capture) &&
      cs_library_may_ask(thread, &flags, err))
    ask = cs_request_ask(request, thread, flags, err);
  if (!asleep && (flags & CS_REQUEST_ROUND) != 0) cs_round_note(thread, flags);
  return ask;
}

static enum cs_ask ask_other(struct cs_request **request, struct cs_thread *thread, uint32_t flags,
                             struct cs_error *err) {
  struct cs_ahead ahead;
  bool alone = (flags & (CS_REQUEST_ROUND | CS_REQUEST_SEED)) != CS_REQUEST_ROUND ||
               !cs_round_take(thread, flags, &ahead);
  enum cs_ask ask = alone ? CS_ASK_ANSWERED : await_ahead(request, thread, &ahead, &alone, err);
  return alone ? ask_alone(*request, thread, flags, err) : ask;
}

HRESULT cs_take_other(struct cs_take *take, struct cs_thread *thread, uint32_t flags,
                      const struct cs_regs *seed, struct cs_error *err) {
  *take = (struct cs_take){.thread = thread};
  if (cs_library_images_are_old()) (void)cs_library_refresh_images();
  struct cs_request *request = cs_request_claim(err);
  if (request == NULL) {
    (void)cs_take_end(take);
    return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
  if (seed != NULL) flags |= CS_REQUEST_SEED;
  prepare(request, flags, seed);
  enum cs_ask ask = ask_other(&request, thread, flags, err);
  if (ask != CS_ASK_ANSWERED) {
    (void)cs_take_end(take);
    if (ask == CS_ASK_GONE) cs_error_set(err, "the thread has ended");
    return ask == CS_ASK_GONE ? CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD
                              : CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
  take->request = request;
  HRESULT hr = cs_answer_to_hresult(request->answer, err);
  if (hr != S_OK) {
    (void)cs_take_end(take);
    return hr;
  }
  if (!request->capture.kept) cs_capture_complete(&request->capture);
  if (!(flags & CS_REQUEST_HOLD)) {  // the walk is done, and so is ThreadDestroyed's wait (C18)
    cs_thread_unpin(thread);
    take->thread = NULL;
  }
  return S_OK;
}

bool cs_take_end(struct cs_take *take) {
  bool was_held = take->request == NULL || cs_request_release(take->request);
  if (take->thread != NULL) cs_thread_unpin(take->thread);
  *take = (struct cs_take){0};
  return was_held;
}
