// SPDX-License-Identifier: MIT
// The runtime notifies its EventSources, in managed code, on the thread that starts or ends a
// session. That makes this thread a managed one for good, and a managed thread may not call the
// profiling API outside of a callback (CORPROF_E_UNSUPPORTED_CALL_SEQUENCE), which the agent's
// thread has to do. Hence sessions have a thread of their own. Its managed code takes the lock of
// all EventSources and runs class constructors, and the program's threads do so in the other order:
// the runtime may deadlock there while a program creates its first EventSources (dotnet/runtime
// #105682, #118014). A program that is recorded from its start has none yet when the sessions
// begin.
//
// Invariants: the wait for that thread is bounded; a thread that has started sessions too late
// stops them itself; there is one such thread at a time. Threads: the agent's, and that one.
// Signal-safe: no.
#include "events/sessions.h"

#include "base/futex.h"
#include "base/log.h"
#include "base/own_thread.h"
#include "events/allocations.h"

// The provider's keywords, from its manifests (.NET 9 and 10).
#define KEYWORD_GC 0x1ull
#define KEYWORD_CONTENTION 0x4000ull
// Of the exceptions' events, only that of a throw has this keyword as well as their own. To decide
// whether to prepare an event, the runtime combines all sessions' keywords and the highest of their
// levels; so with the exceptions' own keyword, and another mode's level, it would find the names of
// methods for each catch, filter and finally clause, for nobody.
#define KEYWORD_MONITORING 0x200000000ull
#define KEYWORD_WAIT_HANDLE 0x40000000000ull
#define KEYWORD_ALLOCATION_SAMPLING 0x80000000000ull
enum {
  LEVEL_ERROR = 2,  // exceptions that are thrown. (The profiling API's callbacks for exceptions
                    // cost more, and may harm the program: docs/performance.md.)
  LEVEL_INFORMATIONAL = 4,
  LEVEL_VERBOSE = 5,  // waits and ticks; other keywords have far too many events at this level
};

enum { START_S = 10, STOP_S = 2 };
#define E_PENDING CLRSNAP_HRESULT(0x8000000Au)

static struct session {
  uint64_t keywords;
  uint32_t level;
  EVENTPIPE_SESSION id;
  bool open;
} sessions[3];

// One session for each level. An event comes once for each session that has it, so ticks, which
// need the keyword of collections at another level, bring the events of gc mode as well.
static void choose_keywords(void) {
  bool ticks = cs_allocations_have_ticks(), sampled = cs_wants(CS_WIRE_MODE_ALLOC) && !ticks;
  bool waits = cs_wants(CS_WIRE_MODE_WAIT) || cs_sessions_want_locks();  // lock_waits.c
  sessions[0] = (struct session){.keywords = (sampled ? KEYWORD_ALLOCATION_SAMPLING : 0) |
                                             (cs_sessions_want_locks() ? KEYWORD_CONTENTION : 0) |
                                             (cs_wants(CS_WIRE_MODE_GC) && !ticks ? KEYWORD_GC : 0),
                                 .level = LEVEL_INFORMATIONAL};
  sessions[1] =
      (struct session){.keywords = (waits ? KEYWORD_WAIT_HANDLE : 0) | (ticks ? KEYWORD_GC : 0),
                       .level = LEVEL_VERBOSE};
  sessions[2] = (struct session){
      .keywords = cs_wants(CS_WIRE_MODE_EXCEPTION) ? KEYWORD_MONITORING : 0, .level = LEVEL_ERROR};
}

// ---- The thread ----

static HRESULT start_all(ICorProfilerInfo15 *info) {
  static const WCHAR name[] = u"Microsoft-Windows-DotNETRuntime";
  HRESULT hr = S_OK;
  for (unsigned i = 0; i < CS_COUNT(sessions) && hr == S_OK; i++) {
    struct session *s = &sessions[i];
    COR_PRF_EVENTPIPE_PROVIDER_CONFIG config = {name, s->keywords, s->level, NULL};
    if (s->keywords == 0) continue;
    hr = info->lpVtbl->EventPipeStartSession(info, 1, &config, 0, &s->id);
    s->open = hr == S_OK;
  }
  return hr;
}

static HRESULT stop_all(ICorProfilerInfo15 *info) {
  HRESULT hr = S_OK;
  for (unsigned i = 0; i < CS_COUNT(sessions); i++) {
    if (!sessions[i].open) continue;
    HRESULT one = info->lpVtbl->EventPipeStopSession(info, sessions[i].id);
    if (one != S_OK) hr = one;
    sessions[i].open = false;
  }
  return hr;
}

enum { NONE, UNDER_WAY, GIVEN_UP };
static struct {
  uint32_t state;  // atomic; a futex
  bool stop;       // else start
  ICorProfilerInfo15 *info;
  HRESULT result;
} call;

static void *run_call(void *unused) {
  (void)unused;
  uint32_t under_way = UNDER_WAY;
  ICorProfilerInfo15 *info = call.info;
  call.result = call.stop ? stop_all(info) : start_all(info);
  if (!cs_cas(&call.state, &under_way, (uint32_t)NONE)) {
    (void)stop_all(info);
    (void)info->lpVtbl->Release(info);
    cs_log("the runtime has returned from starting or stopping events, too late");
    cs_store_release(&call.state, (uint32_t)NONE);
  }
  cs_futex_wake(&call.state);
  return NULL;
}

// E_PENDING: the thread has not come back; it will release the interface itself.
static HRESULT wait_for_call(unsigned seconds) {
  uint32_t under_way = UNDER_WAY;
  uint64_t until = cs_clock_now_ns() + seconds * 1000000000ull;
  while (cs_load_acquire(&call.state) == UNDER_WAY && cs_clock_now_ns() < until)
    cs_futex_wait_until(&call.state, UNDER_WAY, until);
  return cs_cas(&call.state, &under_way, (uint32_t)GIVEN_UP) ? E_PENDING : call.result;
}

static HRESULT send(bool stop, unsigned seconds) {
  uint32_t none = NONE;
  ICorProfilerInfo15 *info = NULL;
  if (!cs_cas(&call.state, &none, (uint32_t)UNDER_WAY)) return E_PENDING;
  HRESULT hr =
      cs_agent.info->lpVtbl->QueryInterface(cs_agent.info, &IID_ICorProfilerInfo12, (void **)&info);
  call.info = info;
  call.stop = stop;
  if (hr == S_OK && cs_own_thread_start(run_call) != 0) hr = E_FAIL;
  if (hr == S_OK)
    hr = wait_for_call(seconds);
  else
    cs_store_release(&call.state, (uint32_t)NONE);
  if (info != NULL && hr != E_PENDING) (void)info->lpVtbl->Release(info);
  return hr;
}

// ---- The agent's thread ----

bool cs_sessions_start(struct cs_error *err) {
  if (!cs_sessions_are_stuck()) choose_keywords();
  HRESULT hr = send(false, START_S);
  if (hr == S_OK) return true;
  if (hr == E_PENDING)
    return cs_error_set(err,
                        "the runtime has not begun to report events within %d s: it may be "
                        "deadlocked, or get no processor",
                        START_S);
  return cs_error_set(err,
                      "the runtime refuses to report allocations, locks, waits, exceptions "
                      "or collections (EventPipeStartSession: 0x%08x)",
                      (unsigned)hr);
}

void cs_sessions_stop(void) {
  if (cs_sessions_are_stuck()) return;
  HRESULT hr = send(true, STOP_S);
  if (hr != S_OK)
    cs_log_important("events cannot be stopped (EventPipeStopSession: 0x%08x)", (unsigned)hr);
}

bool cs_sessions_are_stuck(void) {
  return cs_load_acquire(&call.state) != NONE;
}
