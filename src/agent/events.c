// SPDX-License-Identifier: MIT
// Modes alloc, lock, exception and gc: the runtime's own events, which an EventPipe session hands
// to this profiler on the very thread that they happen to. That thread walks itself right there.
//
// Invariants: only the keywords that the modes need are on, and none after cs_events_stop. A
// callback writes into the ring inside the epoch, so none is left when cs_epoch_wait has returned.
// It calls nothing of the CLR and waits for nothing but short locks of ours: the runtime may have
// stopped all other threads. Threads: the runtime's, several at a time. Signal-safe: no.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/gc_words.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"

// The provider's keywords and events, as its manifest has them (facts of .NET 10).
#define KEYWORD_GC 0x1ull
#define KEYWORD_CONTENTION 0x4000ull
#define KEYWORD_EXCEPTION 0x8000ull
#define KEYWORD_ALLOCATION_SAMPLING 0x80000000000ull
enum {
  LEVEL_INFORMATIONAL = 4,
  GC_START = 1,
  GC_RESTART_END = 3,
  GC_SUSPEND_END = 8,
  GC_SUSPEND_BEGIN = 9,
  EXCEPTION_THROWN = 80,
  CONTENTION_STOP = 91,
  ALLOCATION_SAMPLED = 303,
};

static EVENTPIPE_SESSION session;
static bool has_session;

// ---- What the events say ----

// A text that ends with a NUL, as a number. An empty one is that of "?".
static bool take_name(struct cs_bytes *p, uint32_t *type) {
  size_t len = 0;
  while (len + 2 <= p->left && (p->at[len] != 0 || p->at[len + 1] != 0)) len += 2;
  if (len + 2 > p->left) return false;
  *type = len > 0 ? cs_type_intern(p->at, len) : cs_type_intern_text("?");
  return cs_take(p, NULL, len + 2) && *type != 0;
}

// 1 - e^-x, without libm, which a program need not have.
static double one_less_exp(double x) {
  int doublings = 0;
  if (x > 40) return 1;
  for (; x > 0.01; doublings++) x /= 2;
  double y = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4)));
  while (doublings-- > 0) y *= 2 - y;
  return y;
}

// The runtime samples bytes, one of 102,400 at random, and tells of the object that a sampled one
// is in. So an object of that size stands for its size, divided by its chance to be met.
static uint64_t estimate(uint64_t size) {
  const double mean = 102400;
  double bytes = (double)size;
  return size == 0 ? 0 : (uint64_t)(bytes / one_less_exp(bytes / mean) + 0.5);
}

static bool read_allocation(struct cs_bytes *p, struct cs_sample_event *e) {
  uint64_t size;
  // kind, CLR instance, id of the type; the name; the object's address
  if (!cs_take(p, NULL, 4 + 2 + 8) || !take_name(p, &e->type) || !cs_take(p, NULL, 8) ||
      !cs_take(p, &size, sizeof size))
    return false;
  e->weight = estimate(size);
  return e->weight > 0;
}

static bool read_wait(struct cs_bytes *p, struct cs_sample_event *e) {
  double ns;
  if (!cs_take(p, NULL, 1 + 2) || !cs_take(p, &ns, sizeof ns)) return false;  // flags, CLR instance
  e->weight = ns > 0 && ns < 1e18 ? (uint64_t)ns : 0;
  return true;
}

static bool read_exception(struct cs_bytes *p, struct cs_sample_event *e) {
  e->weight = 1;
  return take_name(p, &e->type);
}

// ---- Pauses ----

// A thread that wants to stop all others says so, may have to wait until a pause of somebody else's
// is over, and then says that all stand still. Another one may let them go.
static __thread uint64_t suspend_ns;
static uint64_t pause_ns, resumed_ns;        // when this pause began; when the last one ended
static uint32_t suspend_reason, collection;  // 1 + number of a kind of collection; 0: none began

static void note_suspension(struct cs_bytes *p) {
  uint32_t reason;
  suspend_ns = cs_clock_now_ns();
  if (cs_take(p, &reason, sizeof reason)) cs_store_relaxed(&suspend_reason, reason);
}

static void begin_pause(void) {
  uint64_t resumed = cs_load_acquire(&resumed_ns);
  cs_store_release(&pause_ns, suspend_ns > resumed ? suspend_ns : resumed);
}

static void note_collection(struct cs_bytes *p) {
  uint32_t words[4];  // count, generation, reason, type
  if (cs_take(p, words, sizeof words))
    cs_store_release(&collection, cs_gc_number(words[1], words[2], words[3]));
}

static bool end_pause(struct cs_sample_event *e) {
  char name[128];
  uint64_t now = cs_clock_now_ns(), from = cs_load_acquire(&pause_ns);
  cs_store_release(&resumed_ns, now);
  cs_store_release(&pause_ns, 0u);
  cs_gc_name(__atomic_exchange_n(&collection, 0u, __ATOMIC_ACQ_REL),
             cs_load_relaxed(&suspend_reason), name, sizeof name);
  if (from == 0 || now <= from) return false;  // it began before we listened
  e->weight = now - from;
  e->type = cs_type_intern_text(name);
  return e->type != 0;
}

// ---- The callback ----

static bool wants(enum cs_wire_mode mode) {
  return (cs_agent.modes & CS_WIRE_MODE_BIT(mode)) != 0;
}

// False: it is not to be a sample.
static bool read_event(uint32_t id, struct cs_bytes *p, struct cs_sample_event *e) {
  switch (id) {
    case ALLOCATION_SAMPLED:
      e->mode = CS_WIRE_MODE_ALLOC;
      return wants(CS_WIRE_MODE_ALLOC) && read_allocation(p, e);
    case CONTENTION_STOP:
      e->mode = CS_WIRE_MODE_LOCK;
      return wants(CS_WIRE_MODE_LOCK) && read_wait(p, e);
    case EXCEPTION_THROWN:
      e->mode = CS_WIRE_MODE_EXCEPTION;
      return wants(CS_WIRE_MODE_EXCEPTION) && read_exception(p, e);
    case GC_SUSPEND_BEGIN:
      note_suspension(p);
      return false;
    case GC_SUSPEND_END:
      begin_pause();
      return false;
    case GC_START:
      note_collection(p);
      return false;
    case GC_RESTART_END:
      e->mode = CS_WIRE_MODE_GC;
      return end_pause(e) && wants(CS_WIRE_MODE_GC);
    default:
      return false;
  }
}

// The calling thread as one that is sampled. A thread of the runtime's own may be new to us.
static struct cs_thread *own_thread(void) {
  struct cs_thread *thread = cs_registry_own();
  if (thread == NULL) {
    cs_threads_add_native((uint32_t)syscall(SYS_gettid));
    thread = cs_registry_own();
  }
  return thread != NULL && cs_load_acquire(&thread->agent) != NULL ? thread : NULL;
}

// The walk begins in this very function, so it must not be part of another one.
__attribute__((noinline)) static void walk(const struct cs_sample_event *event) {
  struct cs_regs regs;
  struct cs_stack stack;
  struct cs_sample_ring *ring = cs_load_acquire(&cs_signal.ring);
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  struct cs_thread *thread = own_thread();
  if (ring == NULL || world == NULL || thread == NULL) return;
  cs_regs_here(&regs);
  cs_self_bounds(thread, &regs, &stack);
  struct cs_sampled from = {.world = world,
                            .thread = thread,
                            .agent = cs_load_acquire(&thread->agent),
                            .regs = &regs,
                            .stack = &stack,
                            .limit_ns = ring->walk_limit_ns};
  cs_sample_event(ring, &from, &thread->rest, event);
}

void cs_events_take(uint32_t id, const uint8_t *data, size_t size) {
  struct cs_bytes payload = {data, size};
  struct cs_sample_event event = {.tsc = cs_tsc()};
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  if (cs_load_acquire(&cs_signal.ring) != NULL && read_event(id, &payload, &event)) walk(&event);
  cs_epoch_leave(&cs_signal.epoch, parity);
}

// ---- The session ----

static uint64_t keywords(void) {
  return (wants(CS_WIRE_MODE_ALLOC) ? KEYWORD_ALLOCATION_SAMPLING : 0) |
         (wants(CS_WIRE_MODE_LOCK) ? KEYWORD_CONTENTION : 0) |
         (wants(CS_WIRE_MODE_EXCEPTION) ? KEYWORD_EXCEPTION : 0) |
         (wants(CS_WIRE_MODE_GC) ? KEYWORD_GC : 0);
}

// In a program that runs, the runtime has its EventSources told, in managed code, on the thread
// that starts or ends a session. That makes a managed thread of it for good, and a managed thread
// may ask the profiling API nothing outside of a callback (CORPROF_E_UNSUPPORTED_CALL_SEQUENCE).
// The agent's thread has names to ask for. So a thread of its own does it. False: there is none.
static bool on_own_thread(void *(*work)(void *result), HRESULT *result) {
  pthread_t thread;
  *result = E_FAIL;
  return pthread_create(&thread, NULL, work, result) == 0 && pthread_join(thread, NULL) == 0;
}

static void *start_session(void *result) {
  static const WCHAR name[] = u"Microsoft-Windows-DotNETRuntime";
  COR_PRF_EVENTPIPE_PROVIDER_CONFIG config = {name, keywords(), LEVEL_INFORMATIONAL, NULL};
  ICorProfilerInfo15 *info = NULL;
  HRESULT hr =
      cs_agent.info->lpVtbl->QueryInterface(cs_agent.info, &IID_ICorProfilerInfo12, (void **)&info);
  if (hr == S_OK) {
    hr = info->lpVtbl->EventPipeStartSession(info, 1, &config, 0, &session);
    (void)info->lpVtbl->Release(info);
  }
  *(HRESULT *)result = hr;
  return NULL;
}

static void *stop_session(void *result) {
  ICorProfilerInfo15 *info = cs_agent.info;
  *(HRESULT *)result = info->lpVtbl->EventPipeStopSession(info, session);
  return NULL;
}

bool cs_events_start(struct cs_error *err) {
  HRESULT hr;
  if (keywords() == 0) return true;
  has_session = on_own_thread(start_session, &hr) && hr == S_OK;
  if (has_session) cs_log("events with the keywords 0x%llx", (unsigned long long)keywords());
  return has_session ||
         cs_error_set(err,
                      "the runtime refuses to tell of allocations, locks, exceptions "
                      "or collections (EventPipeStartSession: 0x%08x)",
                      (unsigned)hr);
}

void cs_events_stop(void) {
  HRESULT hr;
  if (!has_session) return;
  has_session = false;
  if (!on_own_thread(stop_session, &hr) || hr != S_OK)
    cs_log_important("events go on: EventPipeStopSession: 0x%08x", (unsigned)hr);
}

void cs_events_free(void) {
  cs_types_free();
  pause_ns = resumed_ns = 0;
  collection = 0;
}
