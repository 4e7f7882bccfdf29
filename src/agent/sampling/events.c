// SPDX-License-Identifier: MIT
// Modes alloc, lock, wait, exception and gc: the runtime's own events, which an EventPipe session
// hands to this profiler on the very thread that they happen to. That thread walks itself right
// there, if the event is among those that are walked (gate.c).
//
// Invariants: only the keywords that the modes need are on, and none after cs_events_stop. A
// callback writes into the ring inside the epoch, so none is left when cs_epoch_wait has returned.
// It calls nothing of the CLR and waits for nothing but short locks of ours: the runtime may have
// stopped all other threads. Threads: the runtime's, several at a time. Signal-safe: no.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "sampling/agent.h"
#include "sampling/gc_names.h"

// The provider's keywords and events, as its manifest has them (facts of .NET 10).
#define KEYWORD_GC 0x1ull
#define KEYWORD_CONTENTION 0x4000ull
#define KEYWORD_EXCEPTION 0x8000ull
#define KEYWORD_WAIT_HANDLE 0x40000000000ull
#define KEYWORD_ALLOCATION_SAMPLING 0x80000000000ull
enum {
  // What is thrown; from the next level on each catch, filter and finally clause on the way has an
  // event, too, which takes as long.
  LEVEL_ERROR = 2,
  LEVEL_INFORMATIONAL = 4,
  LEVEL_VERBOSE = 5,  // waits; with it other keywords have events that are many
  GC_START = 1,
  GC_RESTART_END = 3,
  GC_SUSPEND_END = 8,
  GC_SUSPEND_BEGIN = 9,
  EXCEPTION_THROWN = 80,
  CONTENTION_STOP = 91,
  WAIT_START = 301,
  WAIT_STOP = 302,
  ALLOCATION_SAMPLED = 303,
};

static __thread bool is_ours;  // a thread of this agent's: what happens on it is not the program's

static struct session {
  uint64_t keywords;
  uint32_t level;
  EVENTPIPE_SESSION id;
  bool open;
} sessions[3];

// The calling thread as one that is sampled. A thread of the runtime's own may be new to us.
static struct cs_thread *own_thread(void) {
  struct cs_thread *thread = cs_registry_self_cached();
  if (thread == NULL) {
    cs_threads_add_native((uint32_t)syscall(SYS_gettid));
    thread = cs_registry_self_cached();
  }
  return thread != NULL && cs_load_acquire(&thread->agent) != NULL ? thread : NULL;
}

// ---- What the events say ----

// How many bytes a text has that ends with a NUL, without that. False: it does not.
static bool length_of_text(const struct cs_bytes *p, size_t *len) {
  for (*len = 0; *len + 2 <= p->left; *len += 2)
    if (p->at[*len] == 0 && p->at[*len + 1] == 0) return true;
  return false;
}

static bool pass_text(struct cs_bytes *p) {
  size_t len;
  return length_of_text(p, &len) && cs_take(p, NULL, len + 2);
}

// A text as a number. An empty one is that of "?".
static bool take_name(struct cs_bytes *p, uint32_t *type) {
  size_t len;
  if (!length_of_text(p, &len)) return false;
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
  // kind, CLR instance, id of the type; the name; the heap; the object's address
  if (!cs_take(p, NULL, 4 + 2 + 8)) return false;
  struct cs_bytes name = *p;
  return pass_text(p) && cs_take(p, NULL, 8) && cs_take(p, &size, sizeof size) &&
         cs_gate_take(CS_WIRE_MODE_ALLOC, estimate(size), &e->weight) && e->weight > 0 &&
         take_name(&name, &e->type);
}

static bool read_contention(struct cs_bytes *p, struct cs_sample_event *e) {
  double ns;
  if (!cs_take(p, NULL, 1 + 2) || !cs_take(p, &ns, sizeof ns)) return false;  // flags, CLR instance
  return cs_gate_take(CS_WIRE_MODE_LOCK, ns > 0 && ns < 1e18 ? (uint64_t)ns : 0, &e->weight);
}

// Each is owed to its type, and one that is walked takes all that are: so each type has as many as
// there were.
static bool read_exception(struct cs_bytes *p, struct cs_sample_event *e) {
  uint64_t weight;
  if (!take_name(p, &e->type)) return false;
  cs_type_owe(e->type, 1);
  if (!cs_gate_take(CS_WIRE_MODE_EXCEPTION, 1, &weight)) return false;
  e->weight = cs_type_take(e->type);
  return e->weight > 0;
}

// ---- Waits ----

static void begin_wait(void) {
  struct cs_thread *thread = own_thread();
  struct cs_agent_thread *t = thread != NULL ? cs_load_acquire(&thread->agent) : NULL;
  if (t != NULL) cs_store_release(&t->waits_since, cs_tsc());
}

// False: it began before we listened, or it is not to be walked.
static bool end_wait(struct cs_sample_event *e) {
  struct cs_thread *thread = own_thread();
  struct cs_agent_thread *t = thread != NULL ? cs_load_acquire(&thread->agent) : NULL;
  uint64_t since = t != NULL ? __atomic_exchange_n(&t->waits_since, 0, __ATOMIC_ACQ_REL) : 0;
  if (since == 0) return false;
  return cs_gate_take(CS_WIRE_MODE_WAIT, cs_clock_ticks_to_ns(cs_tsc() - since), &e->weight);
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
      return wants(CS_WIRE_MODE_LOCK) && read_contention(p, e);
    case EXCEPTION_THROWN:
      e->mode = CS_WIRE_MODE_EXCEPTION;
      return wants(CS_WIRE_MODE_EXCEPTION) && read_exception(p, e);
    case WAIT_START:
      begin_wait();
      return false;
    case WAIT_STOP:
      e->mode = CS_WIRE_MODE_WAIT;
      return end_wait(e);
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
      return end_pause(e) && wants(CS_WIRE_MODE_GC) &&
             cs_gate_take(CS_WIRE_MODE_GC, e->weight, &e->weight);
    default:
      return false;
  }
}

// The walk begins in this very function, so it must not be part of another one.
__attribute__((noinline)) static bool walk(const struct cs_sample_event *event) {
  struct cs_regs regs;
  struct cs_stack stack;
  struct cs_sample_ring *ring = cs_load_acquire(&cs_signal.ring);
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  struct cs_thread *thread = own_thread();
  if (ring == NULL || world == NULL || thread == NULL) return false;
  cs_regs_of_caller(&regs);
  cs_self_bounds(thread, &regs, &stack);
  struct cs_sampled from = {
      .world = world,
      .thread = thread,
      .agent = cs_load_acquire(&thread->agent),
      .regs = &regs,
      .stack = &stack,
      .limit_ns = ring->walk_limit_ns,
      .at_work = event->mode == CS_WIRE_MODE_ALLOC || event->mode == CS_WIRE_MODE_EXCEPTION};
  return cs_sample_event(ring, &from, &thread->rest, event);
}

static void take(const struct cs_sample_event *event) {
  if (walk(event))
    cs_gate_add_walk((enum cs_wire_mode)event->mode);
  else if (event->mode == CS_WIRE_MODE_EXCEPTION)
    cs_type_owe(event->type, event->weight);
}

void cs_events_take(uint32_t id, const uint8_t *data, size_t size) {
  struct cs_bytes payload = {data, size};
  struct cs_sample_event event = {.tsc = cs_tsc()};
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  if (!is_ours && cs_load_acquire(&cs_signal.ring) != NULL && read_event(id, &payload, &event))
    take(&event);
  cs_epoch_leave(&cs_signal.epoch, parity);
}

// ---- At the end ----

struct waiting {
  struct cs_agent_thread *agent;
  struct cs_thread *thread;  // pinned
  uint64_t since;
};
struct waiting_list {
  struct waiting *at;
  size_t count, capacity;
};

static bool count_waiting(struct cs_agent_thread *t, void *data) {
  struct waiting_list *list = data;
  if (cs_load_acquire(&t->waits_since) != 0) list->capacity++;
  return true;
}

static bool collect_waiting(struct cs_agent_thread *t, void *data) {
  struct waiting_list *list = data;
  uint64_t since = cs_load_acquire(&t->waits_since);
  if (since == 0 || t->tid == 0 || !cs_thread_pin(t->thread, t->clr_thread)) return true;
  list->at[list->count++] = (struct waiting){t, t->thread, since};
  return list->count < list->capacity;
}

void cs_events_end_waits(void) {
  struct waiting_list list = {NULL, 0, 0};
  if (!wants(CS_WIRE_MODE_WAIT)) return;
  cs_threads_visit(count_waiting, &list);
  list.at = list.capacity > 0 ? calloc(list.capacity, sizeof *list.at) : NULL;
  if (list.at == NULL) return;
  cs_threads_visit(collect_waiting, &list);
  for (size_t i = 0; i < list.count; i++) {
    const struct waiting *w = &list.at[i];
    uint64_t now = cs_tsc(), weight;
    struct cs_sample_event event = {.tsc = now, .mode = CS_WIRE_MODE_WAIT};
    event.weight = cs_clock_ticks_to_ns(now - w->since);
    // It may have ended meanwhile, and then it has been told.
    uint64_t since = w->since;
    if (cs_cas(&w->agent->waits_since, &since, 0)) {
      (void)cs_gate_take(CS_WIRE_MODE_WAIT, event.weight, &weight);
      cs_wall_walk_waiting(w->agent, w->thread, &event);
    }
    cs_thread_unpin(w->thread);
  }
  free(list.at);
}

// ---- The session ----

// One for each level. The runtime gives each event to those that want it.
static void choose_keywords(void) {
  sessions[0] =
      (struct session){.keywords = (wants(CS_WIRE_MODE_ALLOC) ? KEYWORD_ALLOCATION_SAMPLING : 0) |
                                   (wants(CS_WIRE_MODE_LOCK) ? KEYWORD_CONTENTION : 0) |
                                   (wants(CS_WIRE_MODE_GC) ? KEYWORD_GC : 0),
                       .level = LEVEL_INFORMATIONAL};
  sessions[1] = (struct session){.keywords = wants(CS_WIRE_MODE_WAIT) ? KEYWORD_WAIT_HANDLE : 0,
                                 .level = LEVEL_VERBOSE};
  sessions[2] = (struct session){.keywords = wants(CS_WIRE_MODE_EXCEPTION) ? KEYWORD_EXCEPTION : 0,
                                 .level = LEVEL_ERROR};
}

// In a program that runs, the runtime has its EventSources told, in managed code, on the thread
// that starts or ends a session. That makes a managed thread of it for good, and a managed thread
// may ask the profiling API nothing outside of a callback (CORPROF_E_UNSUPPORTED_CALL_SEQUENCE).
// The agent's thread has names to ask for. So a thread of its own does it.
static void *start_sessions(void *result) {
  static const WCHAR name[] = u"Microsoft-Windows-DotNETRuntime";
  ICorProfilerInfo15 *info = NULL;
  is_ours = true;
  HRESULT hr =
      cs_agent.info->lpVtbl->QueryInterface(cs_agent.info, &IID_ICorProfilerInfo12, (void **)&info);
  for (unsigned i = 0; i < CS_COUNT(sessions) && hr == S_OK; i++) {
    struct session *s = &sessions[i];
    COR_PRF_EVENTPIPE_PROVIDER_CONFIG config = {name, s->keywords, s->level, NULL};
    if (s->keywords == 0) continue;
    hr = info->lpVtbl->EventPipeStartSession(info, 1, &config, 0, &s->id);
    s->open = hr == S_OK;
  }
  if (info != NULL) (void)info->lpVtbl->Release(info);
  *(HRESULT *)result = hr;
  return NULL;
}

static void *stop_sessions(void *result) {
  ICorProfilerInfo15 *info = cs_agent.info;
  HRESULT *hr = result;
  is_ours = true;
  *hr = S_OK;
  for (unsigned i = 0; i < CS_COUNT(sessions); i++) {
    if (!sessions[i].open) continue;
    HRESULT one = info->lpVtbl->EventPipeStopSession(info, sessions[i].id);
    if (one != S_OK) *hr = one;
    sessions[i].open = false;
  }
  return NULL;
}

// False: there is no thread.
static bool on_own_thread(void *(*work)(void *result), HRESULT *result) {
  pthread_t thread;
  *result = E_FAIL;
  return pthread_create(&thread, NULL, work, result) == 0 && pthread_join(thread, NULL) == 0;
}

bool cs_events_start(struct cs_error *err) {
  HRESULT hr;
  if ((cs_agent.modes & ~CS_WIRE_TIMED_MODES) == 0) return true;
  choose_keywords();
  if (on_own_thread(start_sessions, &hr) && hr == S_OK) return true;
  return cs_error_set(err,
                      "the runtime refuses to tell of allocations, locks, waits, exceptions "
                      "or collections (EventPipeStartSession: 0x%08x)",
                      (unsigned)hr);
}

void cs_events_stop(void) {
  HRESULT hr;
  if ((cs_agent.modes & ~CS_WIRE_TIMED_MODES) == 0) return;
  if (!on_own_thread(stop_sessions, &hr) || hr != S_OK)
    cs_log_important("events go on: EventPipeStopSession: 0x%08x", (unsigned)hr);
}

void cs_events_free(void) {
  cs_types_free();
  pause_ns = resumed_ns = 0;
  collection = 0;
}
