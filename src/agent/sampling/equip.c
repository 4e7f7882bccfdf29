// SPDX-License-Identifier: MIT
// Larger alternate stacks for threads that were there before us: when the runtime is stopped for
// it, and what is missed until then. The agent's thread only. Signal-safe: no.
//
// Invariant: the runtime is stopped once when a recording begins, if there is a thread to stop it
// for; after that only for a thread that was asleep in foreign code then and is found running: each
// time after twice the gap of the time before, or sooner when what goes unsampled is WORTH times
// what a stop takes. docs/signal-safety.md, "Alternate stacks".
#include "base/log.h"
#include "sampling/agent.h"
#include "sampling/engine.h"

#define MS 1000000ull

enum {
  LOOK_MS = 20,  // at threads that have no larger stack yet
  GIVE_UP = 3,   // refusals in a row
  WORTH = 100,   // unsampled CPU time that is worth a stop, in times that the last one took
};

static struct {
  uint64_t stops, stopped_ns, given;
  uint64_t look_ns, next_stop_ns, gap_ns;
  uint64_t unequipped_ns;
  uint64_t owed_ns;   // of it, since the last stop
  uint64_t price_ns;  // of it, for which the next stop is made at once
  uint32_t left;      // threads that lack it, at the last look
  uint32_t refused;
} state;

static void stop(uint64_t now) {
  struct cs_equipment told;
  HRESULT hr = cs_equip_threads(cs_agent.info, &told);
  if (hr == S_OK) {
    state.stops++;
    uint64_t took = told.stopping_ns + told.stopped_ns;
    state.stopped_ns += took;
    state.given += told.given;
    // A stop that has helped no thread makes the next one dearer.
    state.price_ns = told.given > 0 ? took * WORTH : (state.price_ns + took * WORTH) * 2;
    state.refused = 0;
    state.next_stop_ns = now + state.gap_ns;
    state.gap_ns = cs_equip_gap_after(state.gap_ns);
  } else {
    state.next_stop_ns = now + CS_EQUIP_FIRST_GAP_NS;
    if (hr == S_FALSE) return;  // they sleep again
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
  state.left = 1;  // who sleeps is looked at, at least once
}

// How much it has run without being sampled. The first look only notes where it stands.
static bool look_at(struct cs_agent_thread *t, void *data) {
  (void)data;
  if (t->tid == 0 || t->clr_thread == 0 || cs_thread_is_equipped(t->thread) ||
      cs_thread_room(t->thread) == CS_ROOM_SMALL)
    return true;
  uint64_t spent = cs_cpu_ns_of(t->tid);
  state.left++;
  if (t->spent_ns != 0 && spent > t->spent_ns) {
    state.unequipped_ns += spent - t->spent_ns;
    state.owed_ns += spent - t->spent_ns;
  }
  t->spent_ns = spent;
  return true;
}

void cs_equip_turn(uint64_t now) {
  if (state.left == 0 || now < state.look_ns) return;
  state.look_ns = now + LOOK_MS * MS;
  state.left = 0;
  cs_threads_visit(look_at, NULL);
  // Less than a sample is not worth a stop.
  bool is_time = now >= state.next_stop_ns || (state.stops > 0 && state.owed_ns >= state.price_ns);
  if (state.owed_ns < cs_load_acquire(&cs_agent.period_ns) || !is_time || state.refused >= GIVE_UP)
    return;
  state.owed_ns = 0;
  stop(now);
  cs_threads_start_engines();
}

uint64_t cs_equip_stops(void) {
  return state.stops;
}

bool cs_equip_tell(void) {
  struct cs_wire_stops told = {state.stopped_ns, state.given, state.unequipped_ns};
  if (state.stops == 0 && state.unequipped_ns == 0) return true;
  return cs_producer_put(&cs_agent.wire, CS_WIRE_STOPS, &told, sizeof told, NULL, 0);
}
