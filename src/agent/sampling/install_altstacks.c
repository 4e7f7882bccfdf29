// SPDX-License-Identifier: MIT
// Decides when threads that existed before an attach get their larger alternate stacks, and counts
// the time that is not sampled until then. A thread that slept in foreign code when the recording
// began is asked as soon as it runs. Invariant, where that takes a stop of the runtime: the runtime
// is stopped once when a recording begins, if any thread needs it; after that, only for a thread
// that is found running, after pauses that double each time, or as soon as the time that was not
// sampled is WORTH times the duration of a stop. The agent's thread only. Signal-safe: no.
#include "sampling/install_altstacks.h"

#include "base/libc.h"
#include "base/log.h"
#include "engines/engine.h"
#include "sampling/thread_life.h"
#include "threads/altstack.h"
#include "threads/install_altstacks.h"

#define MS 1000000ull

enum {
  CHECK_MS = 20,  // between two scans for threads that have no larger stack yet
  SOON_MS = 2,    // the same while one of them runs
  REST = 50,      // a pause is at least this many times the duration of a scan
  GIVE_UP = 3,    // refusals in a row
  WORTH = 100,    // unsampled CPU time that is worth a stop: this many times the last stop's
                  // duration
};

static struct {
  uint64_t stops, stopped_ns, given;
  uint64_t check_ns, next_stop_ns, gap_ns;
  uint64_t no_altstack_ns;  // CPU time of threads without the larger stack
  uint64_t since_stop_ns;   // the part of it since the last attempt to stop the runtime
  uint64_t price_ns;        // how much of that is worth an immediate stop
  uint32_t left;            // threads that lacked the stack at the last scan
  uint32_t refused;
  uint32_t asleep;  // in foreign code, or code that cannot be walked, at the last stop
  struct cs_pinned_list running;  // those that have run since the scan before
} state;

static void stop(uint64_t now) {
  struct cs_altstacks_result result;
  HRESULT hr = cs_install_altstacks(cs_agent.info, &result);
  if (hr == S_OK && !result.stopped) return;
  if (hr == S_OK) {
    state.stops++;
    uint64_t took = result.stopping_ns + result.stopped_ns;
    state.stopped_ns += took;
    state.given += result.given;
    state.asleep = result.asleep;
    // A stop that has helped no thread raises the price of the next one.
    state.price_ns = result.given > 0 ? took * WORTH : (state.price_ns + took * WORTH) * 2;
    state.refused = 0;
    state.next_stop_ns = now + state.gap_ns;
    state.gap_ns = cs_altstacks_gap_after(state.gap_ns);
  } else {
    state.next_stop_ns = now + CS_ALTSTACKS_FIRST_GAP_NS;
    if (hr == S_FALSE) return;  // those that ran are asleep again
    if (++state.refused == GIVE_UP)
      cs_log_important(
          "some threads are not sampled: the runtime cannot be stopped for their larger signal "
          "stacks (0x%08x)",
          (unsigned)hr);
  }
}

void cs_altstacks_begin(void) {
  cs_pinned_free(&state.running);
  state = (typeof(state)){.gap_ns = CS_ALTSTACKS_FIRST_GAP_NS};
  stop(0);
  if (state.asleep > 0 && cs_libc_is_musl())
    cs_producer_add_note(
        &cs_agent.wire,
        "musl has no unwind data, so it is not known for which code a thread waits in it: "
        "threads that began before the attach are sampled little or not at all; record "
        "the program from its start, or use clrsnap stack");
  state.left = 1;  // at least one scan, for the threads that sleep
}

// Counts the time that the thread has run without being sampled, from the first scan on.
static bool count_unsampled(struct cs_agent_thread *t, void *data) {
  (void)data;
  if (t->tid == 0 || t->clr_thread == 0 || cs_thread_may_be_signalled(t->thread) ||
      cs_thread_room(t->thread) == CS_ROOM_SMALL)
    return true;
  uint64_t spent = cs_cpu_ns_of(t->tid);
  state.left++;
  // What a thread that blocks its signals uses is counted in blocked.c.
  if (t->no_altstack_ns != 0 && spent > t->no_altstack_ns && !t->blocks) {
    state.no_altstack_ns += spent - t->no_altstack_ns;
    state.since_stop_ns += spent - t->no_altstack_ns;
    (void)cs_pinned_add(&state.running, t);
  }
  t->no_altstack_ns = spent;
  return true;
}

// Returns false if threads must not be asked while the runtime runs on.
static bool ask_running(void) {
  enum { AT_ONCE = 64 };
  struct cs_thread *threads[AT_ONCE];
  uint32_t count = 0;
  for (size_t i = 0; i < state.running.count && count < AT_ONCE; i++)
    threads[count++] = state.running.at[i].thread;
  bool asked = count == 0 || cs_install_altstacks_pinned(threads, count);
  cs_pinned_unpin(&state.running);
  return asked;
}

// Less time than a sample stands for is not worth a stop.
static void stop_if_worth(uint64_t now) {
  bool is_time =
      now >= state.next_stop_ns || (state.stops > 0 && state.since_stop_ns >= state.price_ns);
  if (state.since_stop_ns < cs_load_acquire(&cs_agent.period_ns) || !is_time ||
      state.refused >= GIVE_UP)
    return;
  state.since_stop_ns = 0;
  stop(now);
}

uint64_t cs_altstacks_check(uint64_t now) {
  if (state.left == 0) return UINT64_MAX;
  if (now < state.check_ns) return state.check_ns;
  uint64_t began = cs_thread_cpu_ns();
  uint32_t before = state.left;
  state.left = 0;
  cs_threads_visit(count_unsampled, NULL);
  bool soon = state.running.count > 0;
  if (!ask_running()) {
    stop_if_worth(now);
    soon = false;
  }
  if (soon || state.left < before) cs_threads_start_engines();
  uint64_t rest = (cs_thread_cpu_ns() - began) * REST;
  uint64_t gap = (soon ? SOON_MS : CHECK_MS) * MS;
  state.check_ns = now + (gap > rest ? gap : rest);
  return state.check_ns;
}

uint64_t cs_altstacks_stops(void) {
  return state.stops;
}

bool cs_altstacks_report(void) {
  struct cs_wire_stops record = {state.stopped_ns, state.given, state.no_altstack_ns};
  return (state.stops == 0 && state.no_altstack_ns == 0) ||
         cs_send(CS_WIRE_STOPS, &record, sizeof record);
}
