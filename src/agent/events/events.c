// SPDX-License-Identifier: MIT
// Events come from an EventPipe session, which delivers each of them to this profiler on the very
// thread that it happens to. That thread walks itself there and then, if the event is one of those
// that are walked (throttle.c).
//
// Invariants: only the keywords that the modes need are on, and none after cs_events_stop. A
// callback writes to the ring inside the epoch, so none is left when cs_epoch_wait has returned. It
// calls nothing of the CLR and waits only for short locks of ours, because the runtime may have
// stopped all other threads. Threads: the runtime's, several at a time. Signal-safe: no.
#include "events/events.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/own_thread.h"
#include "events/allocations.h"
#include "events/gc_names.h"
#include "events/lock_waits.h"
#include "events/payload.h"
#include "events/sessions.h"
#include "events/thrown.h"
#include "sampling/thread_life.h"
#include "sampling/wall.h"
#include "snapshot/self.h"
#include "state/event_names.h"
#include "state/throttle.h"
#include "threads/own_tid.h"

// The provider's events, from its manifests (.NET 9 and 10).
enum {
  GC_START = 1,
  GC_RESTART_END = 3,
  GC_SUSPEND_END = 8,
  GC_SUSPEND_BEGIN = 9,
  ALLOCATION_TICK = 10,
  GC_TRIGGERED = 35,
  EXCEPTION_THROWN = 80,
  CONTENTION_START = 81,
  CONTENTION_STOP = 91,
  WAIT_START = 301,
  WAIT_STOP = 302,
  ALLOCATION_SAMPLED = 303,
};

enum { TRIGGER_BYTES = 256 << 10 };

// Returns the calling thread, if it is sampled. A thread of the runtime's own may be new to us.
static struct cs_thread *own_thread(void) {
  struct cs_thread *thread = cs_registry_self_cached();
  if (thread == NULL) {
    cs_threads_add_native((uint32_t)syscall(SYS_gettid));
    thread = cs_registry_self_cached();
  }
  return thread != NULL && cs_load_acquire(&thread->agent) != NULL ? thread : NULL;
}

static struct cs_agent_thread *own_sampled(void) {
  struct cs_thread *thread = own_thread();
  return thread != NULL ? cs_load_acquire(&thread->agent) : NULL;
}

// The owner is the one at the beginning of the wait: the lock may change hands meanwhile. There may
// be none: a lock is free while it waits for the next one's turn, and for some instructions around
// each release.
static void begin_contention(struct cs_bytes *p) {
  uint64_t words[3];  // the lock, its object, the owner's tid
  struct cs_agent_thread *t = own_sampled();
  if (t == NULL) return;
  t->lock_owner = 0;
  if (!cs_take(p, NULL, 1 + 2) || !cs_take(p, words, sizeof words)) return;  // flags, CLR instance
  if (cs_wants(CS_WIRE_MODE_LOCK))
    t->lock_owner = words[2] != 0 ? cs_threads_id_of(words[2]) : CS_NO_LOCK_OWNER;
  cs_lock_wait_begin(t->thread, words[0], words[1]);
}

static bool read_contention(struct cs_bytes *p, struct cs_sample_event *e) {
  double ns;
  struct cs_agent_thread *t = own_sampled();
  if (t != NULL) {
    cs_lock_wait_end(t->thread);
    e->type = t->lock_owner;
    t->lock_owner = 0;
  }
  if (!cs_wants(CS_WIRE_MODE_LOCK) || !cs_take(p, NULL, 1 + 2) ||  // flags, CLR instance
      !cs_take(p, &ns, sizeof ns) ||
      !cs_throttle_take(CS_WIRE_MODE_LOCK, ns > 0 && ns < 1e18 ? (uint64_t)ns : 0, NULL,
                        &e->weight))
    return false;
  if (t != NULL) e->class = cs_lock_wait_class(t->thread);
  return true;
}

// One that is walked stands for all of its type since the last one that was walked, so each type
// has as many as were thrown. The nth of a type is walked with a probability of at least EARLY / n,
// so those after the last one that was walked are a small part of the type.
static bool read_exception(struct cs_bytes *p, struct cs_sample_event *e) {
  enum { EARLY = 64 };
  e->class = cs_thrown_class(cs_registry_self_cached());
  if (!cs_payload_take_name(p, e->class, &e->type)) return false;
  double least = (double)EARLY / (double)cs_event_name_count(e->type);
  if (!cs_throttle_take_one(CS_WIRE_MODE_EXCEPTION, least)) return false;
  e->weight = cs_event_name_take_unsampled(e->type);
  return e->weight > 0;
}

// ---- Waits ----

// Where Monitor.Wait was inlined, only the event's source says that it waits.
static void begin_wait(struct cs_bytes *p) {
  enum { MONITOR = 1 };
  uint8_t source;
  struct cs_agent_thread *t = own_sampled();
  if (t == NULL || !cs_take(p, &source, sizeof source)) return;
  if (cs_sessions_want_locks()) cs_lock_wait_sleeps(t->thread, (uintptr_t)p);
  if (!cs_wants(CS_WIRE_MODE_WAIT)) return;
  cs_store_relaxed(&t->waiting_for, source == MONITOR ? cs_event_name_of("Monitor.Wait") : 0);
  cs_store_release(&t->waiting_from, cs_tsc());
}

// Returns false if it began before the session did, or it is not to be walked.
static bool end_wait(struct cs_sample_event *e) {
  struct cs_agent_thread *t = own_sampled();
  if (t != NULL && cs_sessions_want_locks()) cs_lock_wait_wakes(t->thread);
  uint64_t since = t != NULL ? cs_take_seq(&t->waiting_from, 0) : 0;
  if (since == 0) return false;
  e->type = cs_load_relaxed(&t->waiting_for);
  uint64_t lasted_ns = cs_clock_ticks_to_ns(cs_tsc() - since);
  return cs_throttle_take(CS_WIRE_MODE_WAIT, lasted_ns, NULL, &e->weight);
}

// ---- Walks ----

// Not inlined, because the walk begins in this function.
__attribute__((noinline)) static bool walk(struct cs_sample_ring *ring,
                                           const struct cs_sample_event *event) {
  struct cs_regs regs;
  struct cs_stack stack;
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
  return cs_sample_event(ring, &from, &thread->cooldown, event);
}

static void take(const struct cs_sample_event *event) {
  if (walk(cs_load_acquire(&cs_signal.ring), event))
    cs_throttle_add_walk((enum cs_wire_mode)event->mode);
  else if (event->mode == CS_WIRE_MODE_EXCEPTION)
    cs_event_name_return(event->type, event->weight);
}

// ---- Pauses ----

// A thread that stops all others has an event when it begins to, may have to wait for the end of
// another thread's pause, and has another event when all are stopped. Any thread may resume them.
static __thread uint64_t suspend_ns;  // when the calling thread last began to
// All atomic.
static uint64_t session_ns;                  // when the events began to come
static uint64_t pause_ns, resumed_ns;        // when this pause began; when the last one ended
static uint64_t stopped_ns, stopped_tsc;     // when all threads had reached a safe point
static uint32_t suspend_reason, collection;  // cs_gc_number of the pause's collection; 0: none
static uint64_t pause_weight;  // of a nanosecond of it, 32.32; 0: it is not to be walked
static uint64_t held_up;       // the weight of the samples of threads that have held it up

uint64_t cs_events_begin_way(void) {
  uint64_t weight = cs_throttle_draw(CS_WIRE_MODE_GC);
  cs_store_relaxed(&held_up, 0u);
  cs_store_relaxed(&pause_weight, weight);
  return weight;
}

void cs_events_end_way(uint64_t weight) {
  cs_store_relaxed(&held_up, weight);
}

static void note_suspension(struct cs_bytes *p) {
  uint32_t reason;
  suspend_ns = cs_clock_now_ns();
  if (cs_take(p, &reason, sizeof reason)) cs_store_relaxed(&suspend_reason, reason);
}

static void begin_pause(void) {
  uint64_t resumed = cs_load_acquire(&resumed_ns);
  cs_store_relaxed(&stopped_ns, cs_clock_now_ns());
  cs_store_relaxed(&stopped_tsc, cs_tsc());
  // What an earlier recording has left in the thread's variable is not this pause's begin.
  if (suspend_ns < cs_load_acquire(&session_ns)) return;
  cs_store_release(&pause_ns, suspend_ns > resumed ? suspend_ns : resumed);
}

static void note_collection(struct cs_bytes *p) {
  uint32_t words[4];  // count, generation, reason, type
  if (cs_take(p, words, sizeof words))
    cs_store_release(&collection, cs_gc_number(words[1], words[2], words[3]));
}

// A thread that triggers a collection under Server GC waits for another thread, the collector's, to
// make it: its stack is taken before that, and copied when the pause has ended. Otherwise the
// thread collects by itself, and has stopped all others when it has the event.
static struct cs_sample_ring triggers;  // has the last such stack; `triggers_busy` is its lock
static uint32_t triggers_busy;

static bool try_triggers(void) {
  uint32_t no = 0;
  return cs_cas(&triggers_busy, &no, 1u);
}

static void empty_triggers(void) {
  for (const struct cs_sample *s; (s = cs_sample_ring_peek(&triggers)) != NULL;)
    cs_sample_ring_pop(&triggers, s);
}

static void note_trigger(const struct cs_sample_event *e) {
  struct cs_sample_event trigger = {.tsc = e->tsc, .mode = CS_WIRE_MODE_GC};
  if (cs_load_acquire(&pause_ns) != 0 || triggers.bytes == NULL || !try_triggers()) return;
  empty_triggers();
  (void)walk(&triggers, &trigger);
  cs_store_release(&triggers_busy, 0u);
}

// Takes the samples of a pause with the stack of the thread that has triggered it. That thread
// still waits for the collection. Returns false if there is no such stack.
static bool take_triggered(const struct cs_sample_event *way, const struct cs_sample_event *work) {
  bool taken = false;
  if (triggers.bytes == NULL || !try_triggers()) return false;
  const struct cs_sample *s = cs_sample_ring_peek(&triggers);
  struct cs_thread *thread = s != NULL ? cs_registry_at(s->thread) : NULL;
  uint64_t clr_thread = thread != NULL ? thread->clr_thread : 0;
  if (clr_thread != 0 && cs_thread_pin(thread, clr_thread)) {
    taken =
        thread->generation == s->thread_generation && cs_load_acquire(&thread->agent) == s->agent;
    if (taken && way->weight > 0) (void)cs_sample_event_like(&cs_agent.ring, s, way);
    if (taken && work->weight > 0 && cs_sample_event_like(&cs_agent.ring, s, work))
      cs_throttle_add_walk(CS_WIRE_MODE_GC);
    cs_thread_unpin(thread);
  }
  empty_triggers();
  cs_store_release(&triggers_busy, 0u);
  return taken;
}

// The pause makes two events: the way of all threads to their safe points, and the work after it.
// Both are taken at its end, when no thread waits for this one any more. The part of the way that
// samples of the threads that have held it up account for is theirs (agent/stragglers.h).
static void end_pause(const struct cs_sample_event *e) {
  char name[128], way_name[160];
  uint64_t now = cs_clock_now_ns(), from = cs_load_acquire(&pause_ns);
  uint64_t stopped = cs_load_relaxed(&stopped_ns);
  cs_store_release(&resumed_ns, now);
  cs_store_release(&pause_ns, 0u);
  uint32_t number = cs_take_seq(&collection, 0u);
  cs_gc_name(number, cs_load_relaxed(&suspend_reason), name, sizeof name);
  if (from == 0 || now <= from || !cs_wants(CS_WIRE_MODE_GC))
    return;  // it began before the session
  if (stopped < from || stopped > now) stopped = from;
  cs_throttle_count(CS_WIRE_MODE_GC, now - from);
  uint64_t times = cs_load_relaxed(&pause_weight), weight = cs_scale(now - from, times);
  if (weight == 0) return;
  (void)snprintf(way_name, sizeof way_name, "[way to the safe point: %s", name + 1);
  uint64_t way_weight = cs_scale(stopped - from, times), held = cs_load_relaxed(&held_up);
  struct cs_sample_event way = {.tsc = cs_load_relaxed(&stopped_tsc),
                                .begin = e->tsc,
                                .mode = CS_WIRE_MODE_GC,
                                .weight = way_weight > held ? way_weight - held : 0,
                                .type = cs_event_name_of(way_name)};
  struct cs_sample_event work = {.tsc = e->tsc,
                                 .mode = CS_WIRE_MODE_GC,
                                 .weight = weight - way_weight,
                                 .type = cs_event_name_of(name)};
  if (way.type == 0 || work.type == 0) return;
  if (number != 0 && take_triggered(&way, &work)) return;
  if (way.weight > 0) (void)walk(cs_load_acquire(&cs_signal.ring), &way);  // no event of its own
  if (work.weight > 0) take(&work);
}

// ---- The callback ----

// Returns false if it makes no sample.
static bool read_event(uint32_t id, struct cs_bytes *p, struct cs_sample_event *e) {
  switch (id) {
    case ALLOCATION_SAMPLED:
      e->mode = CS_WIRE_MODE_ALLOC;
      return cs_wants(CS_WIRE_MODE_ALLOC) && cs_allocation_read_sampled(p, e);
    case ALLOCATION_TICK:
      e->mode = CS_WIRE_MODE_ALLOC;
      return cs_allocations_have_ticks() && cs_allocation_read_tick(p, e);
    case CONTENTION_START:
      if (cs_sessions_want_locks()) begin_contention(p);
      return false;
    case CONTENTION_STOP:
      e->mode = CS_WIRE_MODE_LOCK;
      return cs_sessions_want_locks() && read_contention(p, e);
    case EXCEPTION_THROWN:
      e->mode = CS_WIRE_MODE_EXCEPTION;
      return cs_wants(CS_WIRE_MODE_EXCEPTION) && read_exception(p, e);
    case WAIT_START:
      begin_wait(p);
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
    case GC_TRIGGERED:
      if (cs_wants(CS_WIRE_MODE_GC)) note_trigger(e);
      return false;
    case GC_RESTART_END:
      end_pause(e);
      return false;
    default:
      return false;
  }
}

void cs_events_take(uint32_t id, const uint8_t *data, size_t size) {
  struct cs_bytes payload = {data, size};
  struct cs_sample_event event = {.tsc = cs_tsc()};
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  if (!cs_own_thread_is(cs_own_tid()) && cs_load_acquire(&cs_signal.ring) != NULL &&
      read_event(id, &payload, &event))
    take(&event);
  cs_epoch_leave(&cs_signal.epoch, parity);
}

// The runtime is asked about the object before the epoch begins, in which it must not be called.
void cs_events_take_large(uint64_t object, uint64_t class) {
  char name[CS_EVENT_NAME_BYTES];
  struct cs_sample_event event = {.tsc = cs_tsc(), .mode = CS_WIRE_MODE_ALLOC};
  if (!cs_allocations_have_ticks() || cs_load_acquire(&cs_signal.ring) == NULL ||
      !cs_allocation_read_large(object, class, &event, name))
    return;
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  if (cs_load_acquire(&cs_signal.ring) != NULL && (event.type = cs_event_name_of(name)) != 0)
    take(&event);
  cs_epoch_leave(&cs_signal.epoch, parity);
}

// ---- At the end ----

static bool collect_waiting(struct cs_agent_thread *t, void *data) {
  if (cs_load_acquire(&t->waiting_from) == 0 || t->tid == 0) return true;
  return cs_pinned_add(data, t);
}

void cs_events_end_waits(void) {
  struct cs_pinned_list list = {NULL, 0, 0};
  if (!cs_wants(CS_WIRE_MODE_WAIT)) return;
  cs_threads_visit(collect_waiting, &list);
  for (size_t i = 0; i < list.count; i++) {
    struct cs_sample_event event = {.tsc = cs_tsc(), .mode = CS_WIRE_MODE_WAIT};
    event.type = cs_load_relaxed(&list.at[i].agent->waiting_for);
    uint64_t since = cs_take_seq(&list.at[i].agent->waiting_from, 0);
    if (since != 0) {  // else it has ended by itself
      event.weight = cs_clock_ticks_to_ns(event.tsc - since);
      cs_wall_walk_waiting(&list.at[i], &event);
    }
    cs_thread_unpin(list.at[i].thread);
  }
  cs_pinned_free(&list);
}

// ---- Begin and end ----

bool cs_events_start(struct cs_error *err) {
  cs_store_release(&session_ns, cs_clock_now_ns());
  if (!cs_wants_events()) return true;
  if (cs_wants(CS_WIRE_MODE_GC) &&
      !cs_sample_ring_open(&triggers, TRIGGER_BYTES, cs_agent.ring.max_depth))
    return cs_error_set(err, "no memory for the stacks of threads that trigger collections");
  return cs_sessions_start(err);
}

void cs_events_stop(void) {
  if (cs_wants_events()) cs_sessions_stop();
}

void cs_events_free(void) {
  cs_event_names_free();
  cs_sample_ring_close(&triggers);
  pause_ns = resumed_ns = 0;
  collection = 0;
}
