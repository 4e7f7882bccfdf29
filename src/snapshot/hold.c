// SPDX-License-Identifier: MIT
// Holding a thread: what SuspendThread, GetThreadContext and ResumeThread are elsewhere (contract:
// C14). Not for handlers.
//
// Invariant: a held thread is released by its holder or by its own deadline, whichever is first. A
// hold is nothing but its slot, so between hold and release nothing is allocated and no lock taken.
#include "snapshot/take.h"

enum { HELD_FLAGS = CONTEXT_AMD64_CONTROL | CONTEXT_AMD64_INTEGER };

// A hold is the request that it is made of; the public type only keeps that from showing.
static struct cs_request *request_of(const struct clrsnap_hold *hold) {
  return (struct cs_request *)(uintptr_t)hold;
}

static HRESULT hold_thread(ThreadID id, struct clrsnap_hold **out, struct cs_error *err) {
  struct cs_thread *thread;
  struct cs_take take;
  uint64_t clr_thread;
  if (cs_core_ready(err) != S_OK) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  if (cs_caller_is_managed()) {
    cs_error_set(err, "a thread that runs managed code may not hold another one (contract: C17)");
    return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
  if (id == 0 || cs_target_find(id, &clr_thread, &thread) != CS_TARGET_OTHER) {
    cs_error_set(err, "there is no such managed thread to hold");
    return CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD;
  }
  HRESULT hr = cs_take_other(&take, thread, CS_REQUEST_HOLD, NULL, err);
  if (hr != S_OK) return hr;
  *out = (struct clrsnap_hold *)take.request;
  return S_OK;
}

CLRSNAP_API HRESULT clrsnap_hold(ThreadID thread, struct clrsnap_hold **out) {
  struct cs_error err = {0};
  HRESULT hr = CORPROF_E_STACKSNAPSHOT_UNSAFE;
  if (out == NULL) {
    cs_error_set(cs_last_error(), "`out` is NULL");
    return E_INVALIDARG;
  }
  *out = NULL;
  if (cs_core_enter()) {
    hr = hold_thread(thread, out, &err);
    if (hr != S_OK) cs_core_leave();  // else at the release
  } else {
    cs_error_set(&err, "clrsnap is not started: call clrsnap_start first");
  }
  if (hr != S_OK) *cs_last_error() = err;
  return hr;
}

CLRSNAP_API HRESULT clrsnap_hold_context(const struct clrsnap_hold *hold, BYTE context[],
                                         ULONG32 size) {
  if (hold == NULL || context == NULL || size < CS_CONTEXT_MIN || size % 16 != 0)
    return E_INVALIDARG;
  cs_context_of_regs(context, size, &request_of(hold)->capture.leaf, HELD_FLAGS);
  return S_OK;
}

CLRSNAP_API HRESULT clrsnap_hold_unwind_to_managed(const struct clrsnap_hold *hold, BYTE context[],
                                                   ULONG32 size) {
  if (hold == NULL || context == NULL || size < CS_CONTEXT_MIN || size % 16 != 0)
    return E_INVALIDARG;
  const struct cs_capture *capture = &request_of(hold)->capture;
  for (uint32_t i = 0; i < capture->count; i++) {
    if (!cs_record_is_managed(&capture->records[i])) continue;
    if (i == 0)  // interrupted in managed code: all of its registers are known
      cs_context_of_regs(context, size, &capture->leaf, HELD_FLAGS);
    else
      cs_context_of_record(context, size, &capture->records[i], HELD_FLAGS);
    return S_OK;
  }
  return CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX;
}

CLRSNAP_API HRESULT clrsnap_release(struct clrsnap_hold *hold) {
  if (hold == NULL) return S_OK;
  struct cs_request *request = request_of(hold);
  struct cs_take take = {.request = request, .thread = request->thread};
  bool was_held = cs_take_end(&take);
  cs_core_leave();
  return was_held ? S_OK : S_FALSE;
}
