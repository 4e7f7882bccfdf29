// SPDX-License-Identifier: MIT
// The agent's own thread: waits until the runtime can be walked, then drains the ring every 10 ms
// (in wall mode: with every tick) until the recording is over.
//
// Invariant: it is the only one that reads the ring and writes the wire. It calls the CLR, so it is
// a thread that the runtime may stop for a collection, and holds no lock meanwhile. All signals are
// blocked on it. Signal-safe: no.
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "sampling/agent.h"
#include "sampling/engine.h"

#define MS 1000000ull

enum {
  DRAIN_MS = 10,  // a ring of 4 MiB then holds out to 400 MB/s
  READY_MS = 2,   // how often it is tried whether the runtime can be walked
  SLOW_DRAIN_MS = 100,
  NATIVE_MS = 200,   // between two looks for native threads
  IMAGES_MS = 2000,  // between two looks at the process' mappings, about 1 ms each. A library that
                     // the loader tells of, or that a walk has met, is looked for at once
  OLD_IMAGES_MS = 10,  // the same when libraries have come or gone: 2 % of a core at most
  NAMES_MS = 1000,
  CHECK_MS = 100,    // between two looks whether the runtime's layout still holds
  COMMAND_MS = 200,  // between two looks whether there is a command still
  // A look at all threads costs some 1.5 us each that sleeps. What takes long is followed by a rest
  // so many times as long: of thousands of threads wall mode takes a fifth of a processor, and the
  // rest a fiftieth.
  TICK_REST = 4,
  PARTS_MS = 5,  // from this period on
  LOOK_REST = 50,
};

static struct cs_wire_ticks ticks;  // of mode wall, in this recording

void cs_agent_wake(void) {
  cs_add_seq(&cs_agent.wake, 1);
  (void)syscall(SYS_futex, &cs_agent.wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void sleep_until(uint64_t until_ns, uint32_t seen_wake) {
  struct timespec at = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
  (void)syscall(SYS_futex, &cs_agent.wake, FUTEX_WAIT_BITSET_PRIVATE, seen_wake, &at, NULL,
                FUTEX_BITSET_MATCH_ANY);
}

// Is it time again? Moves the mark on.
static bool is_due(uint64_t *next_ns, uint64_t now_ns, uint64_t every_ms) {
  if (now_ns < *next_ns) return false;
  *next_ns = now_ns + every_ms * MS;
  return true;
}

// A command that was killed says nothing.
static bool stop_wanted(void) {
  static uint64_t next_ns;
  if (cs_load_acquire(&cs_agent.stop) != 0 || cs_producer_stop_wanted(&cs_agent.wire)) return true;
  if (!is_due(&next_ns, cs_clock_now_ns(), COMMAND_MS) || cs_producer_command_lives(&cs_agent.wire))
    return false;
  cs_log("the command has ended without a word");
  cs_store_release(&cs_agent.stop, 1u);
  return true;
}

static bool announce_start(void) {
  struct timespec now;
  char runtime[32];
  const struct cs_layout *layout = &cs_library.world.layout;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  (void)snprintf(runtime, sizeof runtime, "%u.%u.%u", layout->runtime_major, layout->runtime_minor,
                 layout->runtime_build);
  struct cs_wire_start start = {
      .start_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
      .pid = (uint32_t)getpid(),
      .hz = cs_agent.hz,
      .modes = cs_agent.modes,
  };
  const char *strings[] = {runtime};
  return cs_producer_put(&cs_agent.wire, CS_WIRE_START, &start, sizeof start, strings, 1);
}

static bool begin_recording(struct cs_error *err) {
  cs_agent.start_ns = cs_clock_now_ns();
  ticks = (struct cs_wire_ticks){0, 0};
  cs_budget_start(cs_agent.start_ns);
  cs_gate_start(cs_agent.start_ns);
  (void)announce_start();  // the first record: there is room
  if (!cs_engines_begin(err)) return false;
  cs_asks_begin();
  cs_store_release(&cs_agent.state, (uint32_t)CS_AGENT_RECORDING);
  cs_producer_set_state(&cs_agent.wire, CS_WIRE_AGENT_RECORDING);
  cs_library_images_keep(0);
  cs_awaits_publish();
  cs_store_release(&cs_signal.ring, &cs_agent.ring);
  cs_equip_begin();
  cs_threads_adopt();
  cs_threads_start_engines();
  cs_log("recording, pid %d, signal %d", getpid(), cs_threads.signal_number);
  return cs_events_start(err);
}

// Before, the runtime does not tell us of all threads that begin. It does so at once.
static bool has_attached(void) {
  return !cs_agent.attached || cs_load_acquire(&cs_agent.attach_complete) != 0;
}

// True: recording. False: not to be; the reason has been told.
static bool wait_until_ready(void) {
  struct cs_error err;
  HRESULT hr;
  uint64_t next_scan = 0;
  while (((hr = cs_library_ready(&err)) == CORPROF_E_STACKSNAPSHOT_UNSAFE || !has_attached()) &&
         !stop_wanted()) {
    uint64_t now = cs_clock_now_ns();
    if (is_due(&next_scan, now, NATIVE_MS)) cs_native_threads_scan();
    sleep_until(now + READY_MS * MS, cs_load_acquire(&cs_agent.wake));
  }
  if (hr == S_OK) return true;
  if (hr == CORPROF_E_STACKSNAPSHOT_UNSAFE) {
    cs_log("the program ended before the recording could begin: %s", err.text);
    cs_producer_set_state(&cs_agent.wire, CS_WIRE_AGENT_DONE);
    return false;
  }
  cs_log_important("%s", err.text);
  cs_producer_refuse(&cs_agent.wire, err.text);
  return false;
}

static void drain(void) {
  cs_drain();
  cs_unload_drained();
  cs_threads_free_dead();
}

// The processor's time that this thread has had.
static uint64_t own_time(void) {
  struct timespec t;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return 0;
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void rest(uint64_t *next_ns, uint64_t began, unsigned times) {
  uint64_t until = cs_clock_now_ns() + (own_time() - began) * times;
  if (until > *next_ns) *next_ns = until;
}

static void look_for_native_threads(uint64_t now) {
  static uint64_t next_ns;
  if (!is_due(&next_ns, now, NATIVE_MS)) return;
  uint64_t began = own_time();
  cs_threads_sweep_ended();
  cs_native_threads_scan();
  rest(&next_ns, began, LOOK_REST);
}

static void look_at_names(uint64_t now) {
  static uint64_t next_ns;
  if (!is_due(&next_ns, now, NAMES_MS)) return;
  uint64_t began = own_time();
  cs_threads_refresh_names();
  cs_clock_refine();
  rest(&next_ns, began, LOOK_REST);
}

// A library has come on whose stacks no signal has room.
static void look_at_stacks(void) {
  static uint64_t told_of;  // in the recording that began then
  if (cs_load_acquire(&cs_signal.small_stacks) == 0 || told_of == cs_agent.start_ns) return;
  told_of = cs_agent.start_ns;
  cs_threads_stop_engines();
  cs_producer_say(&cs_agent.wire, cs_library_small_stacks());
}

static void maintain(uint64_t now) {
  static uint64_t images_ns, old_ns;
  look_for_native_threads(now);
  bool old = cs_library_images_are_old() && is_due(&old_ns, now, OLD_IMAGES_MS);
  if (is_due(&images_ns, now, IMAGES_MS) || old) (void)cs_library_refresh_images();
  look_at_stacks();
  cs_threads_start_unstarted();
  if (cs_labels_have_hooks()) cs_producer_tell_label_hooks(&cs_agent.wire);
  look_at_names(now);
}

// Walks begin before any method has been jitted; the first ones that are may still show that the
// layout is wrong. Nothing is walked any more then.
static bool is_trusted(uint64_t now, struct cs_error *err) {
  static uint64_t check_ns;
  return !is_due(&check_ns, now, CHECK_MS) ||
         cs_library_ready(err) != CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER;
}

// A look takes a processor from the program for as long as it lasts, so it is taken in parts: half
// of the threads, and half a period later the others.
static uint32_t parts_of(uint64_t period) {
  return period >= PARTS_MS * MS && cs_agent.budget_ppm == 0 ? 2 : 1;
}

// In wall mode threads are looked at with every step. A rate that the budget has lowered needs the
// ring emptied less often.
static uint64_t step_of(bool wall) {
  uint64_t period = cs_load_acquire(&cs_agent.period_ns);
  bool slow = cs_agent.budget_ppm != 0 && period > DRAIN_MS * MS;
  if (wall) return period / parts_of(period);
  return !slow ? DRAIN_MS * MS : period < SLOW_DRAIN_MS * MS ? period : SLOW_DRAIN_MS * MS;
}

static void tick(uint64_t now, uint64_t *next, uint64_t step) {
  static uint32_t part;
  uint32_t parts = parts_of(cs_load_acquire(&cs_agent.period_ns));
  uint64_t began = own_time(), due = *next;
  cs_wall_tick(now, ++part % parts, parts);
  rest(next, began, TICK_REST);
  ticks.taken++;
  ticks.left_out += (*next - due) / step;
}

// False: it was ended by us, for the reason in `err`.
static bool record(struct cs_error *err) {
  bool wall = (cs_agent.modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_WALL)) != 0;
  uint64_t step = step_of(wall), next = cs_clock_now_ns() + step;
  while (!stop_wanted()) {
    uint32_t wake = cs_load_acquire(&cs_agent.wake);
    uint64_t engine = cs_engines_turn(cs_clock_now_ns());  // first: its moment is now
    drain();
    uint64_t now = cs_clock_now_ns();
    maintain(now);
    cs_budget_turn(now);
    cs_gate_turn(now);
    cs_equip_turn(now);
    cs_asks_turn(now);
    step = step_of(wall);
    if (!is_trusted(now, err)) return false;
    if (now < next) {
      sleep_until(next < engine ? next : engine, wake);
      continue;
    }
    // Late: ticks are left out, not caught up.
    if (now - next > step) {
      ticks.left_out += (now - next) / step;
      next = now;
    }
    next += step;
    if (wall) tick(now, &next, step);
  }
  return true;
}

static void end_recording(bool trusted, const struct cs_error *err) {
  const struct cs_sample_ring *ring = &cs_agent.ring;
  cs_asks_count(cs_clock_now_ns());
  cs_events_end_waits();
  cs_threads_stop();
  cs_engines_end();
  cs_events_stop();
  if (cs_labels_have_hooks()) cs_producer_tell_label_hooks(&cs_agent.wire);
  cs_labels_end();
  cs_store_release(&cs_signal.ring, NULL);
  cs_store_release(&cs_signal.awaits, NULL);
  cs_agent.walks_ended = cs_epoch_wait();
  cs_asks_end();
  drain();
  cs_drain_end();
  (void)cs_types_tell_owed(cs_drain_unwalked);
  struct cs_wire_end end = {
      .samples = cs_load_acquire(&ring->samples),
      .lost_ring = cs_load_acquire(&ring->lost),
      .lost_wire = cs_load_acquire(&cs_agent.wire.header->lost_records),
      .signals = cs_load_acquire(&ring->signals),
      .asleep = cs_load_acquire(&ring->asleep),
      .overruns = cs_load_acquire(&ring->overruns),
      .runtime_suspensions = cs_equip_stops(),
      .events = cs_load_acquire(&ring->events),
  };
  if (ticks.left_out > 0)
    (void)cs_producer_put(&cs_agent.wire, CS_WIRE_TICKS, &ticks, sizeof ticks, NULL, 0);
  (void)cs_engines_tell();
  (void)cs_asks_tell();
  (void)cs_threads_tell_rooms();
  (void)cs_budget_tell(cs_clock_now_ns());
  (void)cs_gate_tell();
  (void)cs_equip_tell();
  (void)cs_drain_tell();
  cs_awaits_tell();
  cs_drain_losses(end.lost);
  (void)cs_producer_put(&cs_agent.wire, CS_WIRE_END, &end, sizeof end, NULL, 0);
  if (trusted)
    cs_producer_set_state(&cs_agent.wire, CS_WIRE_AGENT_DONE);
  else
    cs_producer_refuse(&cs_agent.wire, err->text);
  cs_log(
      "recorded: %lu signals, %lu asleep, %lu events, %lu samples, %lu lost in the ring, %lu in "
      "the shared memory",
      (unsigned long)end.signals, (unsigned long)end.asleep, (unsigned long)end.events,
      (unsigned long)end.samples, (unsigned long)end.lost_ring, (unsigned long)end.lost_wire);
}

void *cs_agent_main(void *unused) {
  (void)unused;
  (void)prctl(PR_SET_NAME, ".clrsnap");
  cs_store_release(&cs_agent.tid, (uint32_t)syscall(SYS_gettid));
  if (wait_until_ready()) {
    struct cs_error err = {""};
    bool trusted = begin_recording(&err) && record(&err);
    end_recording(trusted, &err);
  } else {
    cs_threads_stop();
    cs_agent.walks_ended = true;
  }
  cs_store_release(&cs_agent.state, (uint32_t)CS_AGENT_OVER);
  cs_unload_drained();  // who waits sees that there is nobody to wait for
  if (cs_load_acquire(&cs_agent.exiting) == 0) cs_agent_leave();
  return NULL;
}
