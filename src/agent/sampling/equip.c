// SPDX-License-Identifier: MIT
// When the runtime is stopped for larger alternate stacks, and how much time is not sampled until
// then. Invariant: the runtime is stopped once when a recording begins, if any thread needs it; after
// that only for a thread that was asleep in foreign code then and is found running: each time after
// twice as long a pause, or sooner, once the time that is not sampled is WORTH times the duration of
// a stop. The agent's thread only. Signal-safe: no.
#include "sampling/equip.h"

#include "base/log.h"
#include "sampling/engine.h"
#include "sampling/thread_life.h"
#include "threads/altstack.h"
#include "threads/equip.h"

#define MS 1000000ull

enum {
  CHECK_MS = 20,  // between two looks at threads that have no larger stack yet
  GIVE_UP = 3,    // refusals in a row
  WORTH = 100,    // how many times the last stop's duration of unsampled CPU time is worth a stop
};

static struct {
  uint64_t stops, stopped_ns, given;
  uint64_t check_ns, next_stop_ns, gap_ns;
  uint64_t unequipped_ns;  // CPU time of threads without the larger stack
  uint64_t since_stop_ns;  // the part of it since the last attempt to stop the runtime
  uint64_t price_ns;       // how much of that makes for a stop at once
  uint32_t left;           // threads that lacked the stack at the last look
  uint32_t refused;
} state;

static void stop(uint64_t now) {
  struct cs_equipment equipment;
  HRESULT hr = cs_equip_threads(cs_agent.info, &equipment);
  if (hr == S_OK) {
    state.stops++;
    uint64_t took = equipment.stopping_ns + equipment.stopped_ns;
    state.stopped_ns += took;
    state.given += equipment.given;
    // A stop that has helped no thread makes the next one dearer.
    state.price_ns = equipment.given > 0 ? took * WORTH : (state.price_ns + took * WORTH) * 2;
    state.refused = 0;
    state.next_stop_ns = now + state.gap_ns;
    state.gap_ns = cs_equip_gap_after(state.gap_ns);
  } else {
    state.next_stop_ns = now + CS_EQUIP_FIRST_GAP_NS;
    if (hr == S_FALSE) return;  // those that ran are asleep again
    if (++state.refused == GIVE_UP)
      cs_log_important(
          "some threads are not sampled: the runtime cannot be stopped for their larger signal "
          "stacks (0x%08x)",
          (unsigned)hr);
  }
}

void cs_equip_begin(void) {
  state = (typeof(state)){.gap_ns = CS_EQUIP_FIRST_GAP_NS};
  stop(0);
  state.left = 1;  // one look at least, at the threads that sleep
}

// Counts the time that the thread has run without being sampled, from the first look on.
static bool count_unsampled(struct cs_agent_thread *t, void *data) {
  (void)data;
  if (t->tid == 0 || t->clr_thread == 0 || cs_thread_is_equipped(t->thread) ||
      cs_thread_room(t->thread) == CS_ROOM_SMALL)
    return true;
  uint64_t spent = cs_cpu_ns_of(t->tid);
  state.left++;
  if (t->unequipped_ns != 0 && spent > t->unequipped_ns) {
    state.unequipped_ns += spent - t->unequipped_ns;
    state.since_stop_ns += spent - t->unequipped_ns;
  }
  t->unequipped_ns = spent;
  return true;
}

void cs_equip_check(uint64_t now) {
  if (state.left == 0 || now < state.check_ns) return;
  state.check_ns = now + CHECK_MS * MS;
  state.left = 0;
  cs_threads_visit(count_unsampled, NULL);
  // Less time than a sample stands for is not worth a stop.
  bool is_time =
      now >= state.next_stop_ns || (state.stops > 0 && state.since_stop_ns >= state.price_ns);
  if (state.since_stop_ns < cs_load_acquire(&cs_agent.period_ns) || !is_time ||
      state.refused >= GIVE_UP)
    return;
  state.since_stop_ns = 0;
  stop(now);
  cs_threads_start_engines();
}

uint64_t cs_equip_stops(void) {
  return state.stops;
}

bool cs_equip_report(void) {
  struct cs_wire_stops record = {state.stopped_ns, state.given, state.unequipped_ns};
  return (state.stops == 0 && state.unequipped_ns == 0) ||
         cs_send(CS_WIRE_STOPS, &record, sizeof record);
}
