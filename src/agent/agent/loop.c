// SPDX-License-Identifier: MIT
// The agent's thread: waits until the runtime can be walked, then drains the ring until the
// recording is over: every 10 ms, in wall mode at every tick, and without perf events every 50 ms
// while little arrives, after the first two seconds.
//
// Invariant: it is the only thread that reads the ring and writes to the wire. It calls the CLR, so
// the runtime may stop it for a collection; it holds no lock then. All signals are blocked on it.
// Signal-safe: no.
#include "agent/loop.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/program_start.h"
#include "agent/stragglers.h"
#include "base/futex.h"
#include "base/log.h"
#include "engines/ask.h"
#include "engines/engines.h"
#include "engines/handler_times.h"
#include "events/events.h"
#include "events/holders.h"
#include "life/epoch.h"
#include "life/images.h"
#include "life/library.h"
#include "life/small_stacks.h"
#include "life/start.h"
#include "reporting/awaits.h"
#include "reporting/drain.h"
#include "reporting/lock_types.h"
#include "reporting/unload.h"
#include "sampling/blocked.h"
#include "sampling/budget.h"
#include "sampling/install_altstacks.h"
#include "sampling/thread_life.h"
#include "sampling/wall.h"
#include "sampling/weight.h"
#include "state/halts.h"
#include "state/label_slots.h"
#include "state/sums.h"
#include "state/throttle.h"
#include "threads/threads.h"

#define MS 1000000ull

enum {
  DRAIN_MS = 10,  // a ring of 4 MiB then suffices for up to 400 MB/s
  // While little arrives and no perf event can send a signal, since each drain takes a processor
  // from a thread for some 50 us.
  CALM_DRAIN_MS = 50,
  CALM_PART = 64,  // 1 / the part of the ring below which little has arrived
  // Many programs that crash do so at their start, and what has not been drained is then lost.
  YOUNG_MS = 2000,
  SLOW_DRAIN_MS = 100,  // if the budget has lowered the rate
  // Between two checks for:
  READY_MS = 2,      // whether the runtime can be walked
  NATIVE_MS = 200,   // native threads
  BLOCKED_MS = 50,   // whether threads block their signals
  UNKNOWN_MS = 500,  // threads that wall mode leaves out
  IMAGES_MS = 2000,  // the process's mappings, about 1 ms each. A library that the loader reports,
  OLD_IMAGES_MS = 10,  // or whose code a walk has met, is looked for after this: 2 % of a core at
                       // most
  NAMES_MS = 1000,
  CHECK_MS = 100,    // whether the runtime's layout still holds
  COMMAND_MS = 200,  // whether the command is still there
  GONE_S = 1,        // how long cs_loop_is_abandoned waits for such a check
  NAP_MS = 10,
  // A scan of all threads costs some 1.5 us for each that sleeps. After a long scan, there is a
  // rest of this many times its duration: with thousands of threads, wall mode takes a fifth of a
  // processor, and other scans a fiftieth.
  TICK_REST = 4,
  SCAN_REST = 50,
  PARTS_MS = 5,   // the shortest period for which threads are scanned in parts,
  PARTS_OF = 32,  // if there are more than this: a wake-up costs as much as a scan of some threads
};

enum { ENDING = 2 };

static struct cs_wire_ticks ticks;  // of wall mode, in this recording
// Atomic.
static uint32_t stop;                        // 1: the recording is to end; ENDING: the process as
                                             // well
static uint32_t checks_wanted, checks_done;  // checks whether the command lives; the latter a futex
static uint32_t attach_complete;             // 1: a program's start, or ProfilerAttachComplete

void cs_loop_prepare(bool attached) {
  stop = 0;
  attach_complete = attached ? 0 : 1;
}

void cs_loop_stop(void) {
  cs_store_release(&stop, (uint32_t)ENDING);
  cs_agent_wake();
}

void cs_loop_note_attached(void) {
  cs_store_release(&attach_complete, 1u);
  cs_agent_wake();
}

// Only the agent's thread checks, because the lock on the shared memory must not be tested while
// that memory is being given back.
bool cs_loop_is_abandoned(void) {
  uint64_t until = cs_clock_now_ns() + GONE_S * 1000 * MS;
  uint32_t wanted = cs_add_seq(&checks_wanted, 1) + 1, taken;
  cs_agent_wake();
  while (cs_load_acquire(&stop) == 0 && cs_agent_is_active() &&
         (int32_t)((taken = cs_load_acquire(&checks_done)) - wanted) < 0 &&
         cs_clock_now_ns() < until)
    cs_futex_wait_until(&checks_done, taken, cs_clock_now_ns() + NAP_MS * MS);
  return cs_load_acquire(&stop) != 0 || !cs_agent_is_active();
}

// Returns whether it is time again; if so, sets the next time.
static bool is_due(uint64_t *next_ns, uint64_t now_ns, uint64_t every_ms) {
  if (now_ns < *next_ns) return false;
  *next_ns = now_ns + every_ms * MS;
  return true;
}

// A command that was killed does not ask for an end.
static bool is_stop_wanted(void) {
  static uint64_t next_ns;
  if (cs_load_acquire(&stop) != 0 || cs_producer_stop_wanted(&cs_agent.wire)) return true;
  uint32_t wanted = cs_load_acquire(&checks_wanted);
  bool due = is_due(&next_ns, cs_clock_now_ns(), COMMAND_MS) || wanted != checks_done;
  if (!due) return false;
  bool lives = cs_producer_command_lives(&cs_agent.wire);
  if (wanted != checks_done && lives) {
    cs_store_release(&checks_done, wanted);
    cs_futex_wake(&checks_done);
  }
  if (lives) return false;
  cs_log("the command has ended without a word");
  uint32_t no = 0;
  (void)cs_cas(&stop, &no, 1u);
  return true;
}

static bool announce_start(void) {
  char runtime[32];
  const struct cs_layout *layout = &cs_library.world.layout;
  (void)snprintf(runtime, sizeof runtime, "%u.%u.%u", layout->runtime_major, layout->runtime_minor,
                 layout->runtime_build);
  cpu_set_t set;
  bool known = sched_getaffinity(getpid(), sizeof set, &set) == 0;
  struct cs_wire_start start = {
      .start_ns = cs_clock_read_ns(CLOCK_REALTIME),
      .pid = (uint32_t)getpid(),
      .hz = cs_options.hz,
      .modes = cs_options.modes,
      .processors = known ? (uint32_t)CPU_COUNT(&set) : 0,
  };
  const char *strings[] = {runtime};
  return cs_producer_put(&cs_agent.wire, CS_WIRE_START, &start, sizeof start, strings, 1);
}

// A runtime that is about to end does not report events, and calls Shutdown soon after.
static bool begin_events(struct cs_error *err) {
  enum { TRIES = 500 };
  if (cs_events_start(err)) return true;
  for (int i = 0; i < TRIES && !is_stop_wanted(); i++) (void)usleep(READY_MS * 1000);
  if (!is_stop_wanted()) return false;
  cs_producer_add_note(&cs_agent.wire, "the program ended before the runtime could report events");
  return true;
}

static bool begin_recording(struct cs_error *err) {
  cs_agent.start_ns = cs_clock_now_ns();
  ticks = (struct cs_wire_ticks){0};
  cs_halts_begin(cs_wants(CS_WIRE_MODE_WALL) ? cs_sleepers_have_run : NULL);
  cs_throttle_start(cs_agent.start_ns);
  cs_type_sums_begin();
  cs_budget_start(cs_agent.start_ns);
  (void)announce_start();  // the first record: there is room
  cs_handler_times_begin();
  if (!cs_engines_begin(err)) return false;
  cs_asks_begin();
  cs_agent_set_state(CS_AGENT_RECORDING);
  cs_producer_set_state(&cs_agent.wire, CS_WIRE_AGENT_RECORDING);
  cs_library_images_keep(0);
  cs_awaits_publish();
  cs_store_release(&cs_signal.ring, &cs_agent.ring);
  cs_altstacks_begin();
  cs_threads_adopt();
  cs_threads_start_engines();
  cs_stragglers_begin();
  cs_log("recording, pid %d, signal %d", getpid(), cs_threads.signal_number);
  bool begun = begin_events(err);
  cs_holders_start(cs_clock_now_ns());
  return begun;
}

// Waits also for ProfilerAttachComplete, which comes at once; before it, the runtime does not
// report all threads that begin. Returns false if there is no recording; the command has been given
// the reason.
static bool wait_until_ready(void) {
  struct cs_error err;
  HRESULT hr;
  uint64_t next_scan = 0;
  while (((hr = cs_library_ready(&err)) == CORPROF_E_STACKSNAPSHOT_UNSAFE ||
          cs_load_acquire(&attach_complete) == 0) &&
         !is_stop_wanted()) {
    uint32_t wake = cs_load_acquire(&cs_agent.wake);
    uint64_t now = cs_clock_now_ns();
    if (is_due(&next_scan, now, NATIVE_MS)) cs_threads_scan_native();
    cs_futex_wait_until(&cs_agent.wake, wake, now + READY_MS * MS);
  }
  if (hr == S_OK) return true;
  if (hr == CORPROF_E_STACKSNAPSHOT_UNSAFE) {
    bool asked = cs_producer_stop_wanted(&cs_agent.wire);
    cs_log("ended before the recording could begin: %s", err.text);
    cs_producer_refuse(&cs_agent.wire, asked ? "the recording was ended before it had begun"
                                             : "the program ended before the recording had begun");
    return false;
  }
  cs_log("%s", err.text);
  cs_producer_refuse(&cs_agent.wire, err.text);
  return false;
}

static void drain(void) {
  cs_drain();
  cs_unload_drained();
  cs_threads_free_dead();
}

// Puts off the next time of what has just been done, by `times` the CPU time since `began`.
static void rest(uint64_t *next_ns, uint64_t began, unsigned times) {
  uint64_t until = cs_clock_now_ns() + (cs_thread_cpu_ns() - began) * times;
  if (until > *next_ns) *next_ns = until;
}

// Calls `scan`, which visits all threads, if it is time again.
static void scan_now_and_then(uint64_t *next_ns, uint64_t now, uint64_t every_ms,
                              void (*scan)(uint64_t now)) {
  if (!is_due(next_ns, now, every_ms)) return;
  uint64_t began = cs_thread_cpu_ns();
  scan(now);
  rest(next_ns, began, SCAN_REST);
}

static void check_threads(uint64_t now) {
  (void)now;
  cs_threads_sweep_ended();
  cs_threads_scan_native();
}

// So that threads that end before the recording does are counted, too.
static void count_unknown(uint64_t now) {
  (void)now;
  if (cs_wants(CS_WIRE_MODE_WALL)) (void)cs_threads_count_unknown();
}

static void check_names(uint64_t now) {
  (void)now;
  cs_threads_refresh_names();
  cs_clock_refine();
}

// Stops the engines if a library has been loaded whose stacks have no room for a signal.
static void check_small_stacks(void) {
  static uint64_t reported;  // the beginning of the last recording in which that was reported
  (void)cs_signals_are_safe();
  if (cs_load_acquire(&cs_signal.small_stacks) == 0 || reported == cs_agent.start_ns) return;
  reported = cs_agent.start_ns;
  cs_threads_stop_engines();
  cs_producer_add_note(&cs_agent.wire, cs_small_stacks_reason());
}

static void maintain(uint64_t now) {
  static uint64_t images_ns, old_ns, blocked_ns, threads_ns, unknown_ns, names_ns;
  // Before threads that have ended are removed.
  scan_now_and_then(&blocked_ns, now, BLOCKED_MS, cs_blocked_check);
  scan_now_and_then(&threads_ns, now, NATIVE_MS, check_threads);
  scan_now_and_then(&unknown_ns, now, UNKNOWN_MS, count_unknown);
  bool old = cs_library_images_are_old() || cs_library_images_are_left();
  if (is_due(&images_ns, now, IMAGES_MS) || (old && is_due(&old_ns, now, OLD_IMAGES_MS)))
    (void)cs_library_refresh_images_briefly();
  check_small_stacks();
  cs_lock_types_learn();
  cs_threads_start_delayed();
  if (cs_labels_have_hook()) cs_producer_set_label_hooks(&cs_agent.wire);
  scan_now_and_then(&names_ns, now, NAMES_MS, check_names);
}

// Walks begin before any method has been jitted. The first jitted methods may still show that the
// layout is wrong; then walks end.
static bool is_trusted(uint64_t now, struct cs_error *err) {
  static uint64_t check_ns;
  return !is_due(&check_ns, now, CHECK_MS) ||
         cs_library_ready(err) != CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER;
}

// A scan takes a processor from the program while it lasts, so a scan of many threads is split:
// half of them, and the others half a period later.
static uint32_t parts_of(uint64_t period) {
  bool few = period < PARTS_MS * MS || cs_wall_threads() <= PARTS_OF;
  return few || cs_options.budget_ppm != 0 ? 1 : 2;
}

// Returns the time between two rounds of the loop; it was `before`, and the last round has drained
// so many bytes. In wall mode, each round is a tick.
static uint64_t step_of(bool wall, uint64_t before, uint64_t drained) {
  uint64_t period = cs_load_acquire(&cs_agent.period_ns);
  bool slow = cs_options.budget_ppm != 0 && period > DRAIN_MS * MS;
  if (wall) return period / parts_of(period);
  if (slow) return period < SLOW_DRAIN_MS * MS ? period : SLOW_DRAIN_MS * MS;
  bool young = cs_clock_now_ns() - cs_agent.start_ns < YOUNG_MS * MS;
  if (young || cs_engines_have_events() || drained > CS_SAMPLE_RING_BYTES / CALM_PART)
    return DRAIN_MS * MS;
  return before < CALM_DRAIN_MS * MS / 2 ? before * 2 : CALM_DRAIN_MS * MS;
}

static void tick(uint64_t now, uint64_t *next, uint64_t step) {
  static uint32_t part;
  uint32_t parts = parts_of(cs_load_acquire(&cs_agent.period_ns));
  uint64_t began = cs_thread_cpu_ns(), due = *next;
  cs_wall_tick(now, ++part % parts, parts);
  rest(next, began, TICK_REST);
  ticks.taken++;
  ticks.left_out += (*next - due) / step;
}

// Finds halts before samples are weighed.
static void wait_until(uint64_t until, uint32_t wake) {
  cs_halts_check(0);
  cs_futex_wait_until(&cs_agent.wake, wake, until);
  cs_halts_check(until);
}

// Returns when the alternate stacks are to be checked again.
static uint64_t drain_and_maintain(void) {
  drain();
  uint64_t now = cs_clock_now_ns();
  maintain(now);
  cs_budget_update(now);
  cs_throttle_update(now);
  cs_asks_check(now);
  return cs_altstacks_check(now);
}

static uint64_t sooner(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// Most scans of an engine come between two rounds, and do nothing else. Returns false if the agent
// has ended the recording, for the reason in `err`.
static bool record(struct cs_error *err) {
  bool wall = cs_wants(CS_WIRE_MODE_WALL);
  uint64_t step = step_of(wall, DRAIN_MS * MS / 2, 0), next = cs_clock_now_ns() + step;
  uint64_t round_ns = 0;  // when the next round is due, unless the thread is woken for one
  uint32_t woken = 0;
  while (!is_stop_wanted()) {
    next += cs_halts_take_new();  // rounds that were due in a halt do not count as left out
    uint32_t wake = cs_load_acquire(&cs_agent.wake);
    uint64_t scan_ns = cs_engines_poll(cs_clock_now_ns());  // first, because it is timed
    scan_ns = sooner(scan_ns, cs_holders_poll(cs_clock_now_ns()));
    uint64_t now = cs_clock_now_ns();
    if (now < round_ns && wake == woken) {
      wait_until(sooner(scan_ns, round_ns), wake);
      continue;
    }
    woken = wake;
    uint64_t used = cs_sample_ring_used(&cs_agent.ring), altstacks = drain_and_maintain();
    step = step_of(wall, step, used);
    now = cs_clock_now_ns();
    if (!is_trusted(now, err)) return false;
    // Late ticks are left out, not made up for.
    if (now >= next && now - next > step) {
      ticks.left_out += (now - next) / step;
      next = now;
    }
    if (now >= next) {
      next += step;
      if (wall) tick(now, &next, step);
    }
    round_ns = sooner(next, altstacks);
  }
  return true;
}

// Returns whether all handlers have ended.
static bool end_recording(bool trusted, const struct cs_error *err) {
  const struct cs_sample_ring *ring = &cs_agent.ring;
  cs_repeats_end();
  cs_blocked_check(cs_clock_now_ns());
  cs_asks_count_unanswered(cs_clock_now_ns());
  cs_events_end_waits();
  cs_threads_stop();
  cs_engines_end();
  // When the process is ending, the runtime has stopped events, and may never release its locks
  // again.
  if (cs_load_acquire(&stop) != ENDING) cs_events_stop();
  if (cs_labels_have_hook()) cs_producer_set_label_hooks(&cs_agent.wire);
  cs_labels_end();
  cs_store_release(&cs_signal.ring, NULL);
  cs_store_release(&cs_signal.awaits, NULL);
  bool walks_ended = cs_epoch_wait();
  cs_handler_times_end();
  cs_stragglers_end();
  cs_asks_end();
  drain();
  cs_drain_end();
  struct cs_wire_end end = {
      .samples = cs_load_acquire(&ring->samples),
      .lost_ring = cs_load_acquire(&ring->lost),
      .lost_wire = cs_load_acquire(&cs_agent.wire.header->lost_records),
      .signals = cs_load_acquire(&ring->signals),
      .asleep = cs_load_acquire(&ring->asleep),
      .runtime_suspensions = cs_altstacks_stops(),
      .events = cs_load_acquire(&ring->events),
  };
  if (cs_wants(CS_WIRE_MODE_WALL)) {
    ticks.uncovered_ns = cs_weight_uncovered_ns();
    ticks.native = cs_threads_count_unknown();
  }
  if (ticks.left_out + ticks.uncovered_ns + ticks.native > 0)
    (void)cs_send(CS_WIRE_TICKS, &ticks, sizeof ticks);
  (void)cs_engines_report();
  (void)cs_asks_report();
  cs_blocked_report();
  (void)cs_threads_report_small_stacks();
  (void)cs_budget_report(cs_clock_now_ns());
  (void)cs_throttle_report();
  (void)cs_altstacks_report();
  (void)cs_weight_report_put_off();
  cs_awaits_log();
  cs_drain_losses(end.lost);
  (void)cs_halts_end();
  (void)cs_send(CS_WIRE_END, &end, sizeof end);
  if (trusted)
    cs_producer_set_state(&cs_agent.wire, CS_WIRE_AGENT_DONE);
  else
    cs_producer_refuse(&cs_agent.wire, err->text);
  cs_log(
      "recorded: %lu signals, %lu asleep, %lu events, %lu samples, %lu lost in the ring, %lu in "
      "the shared memory",
      (unsigned long)end.signals, (unsigned long)end.asleep, (unsigned long)end.events,
      (unsigned long)end.samples, (unsigned long)end.lost_ring, (unsigned long)end.lost_wire);
  return walks_ended;
}

bool cs_loop_run(void) {
  if (!wait_until_ready()) {
    cs_program_start_allow(false);
    cs_threads_stop();
    return true;
  }
  struct cs_error err = {""};
  bool begun = begin_recording(&err);
  cs_program_start_allow(begun);
  return end_recording(begun && record(&err), &err);
}
