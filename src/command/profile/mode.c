// SPDX-License-Identifier: MIT
// The table of modes. Any thread. Signal-safe: no.
#include "profile/mode.h"

#include <inttypes.h>
#include <string.h>

#include "base/perf.h"
#include "base/print.h"

static const struct cs_mode modes[CS_WIRE_MODES] = {
    // A recording whose header is lost has mode 0.
    [0] = {"unknown", "", CS_UNIT_NS, true, {"sample", "samples"}, "samples", "time", "time"},
    [CS_WIRE_MODE_CPU] = {"cpu",
                          "running threads",
                          CS_UNIT_NS,
                          true,
                          {"sample", "samples"},
                          "samples",
                          "cpu",
                          "CPU time"},
    [CS_WIRE_MODE_WALL] = {"wall",
                           "all threads, running or waiting",
                           CS_UNIT_NS,
                           true,
                           {"sample", "samples"},
                           "wall_samples",
                           "wall",
                           "wall-clock time"},
    [CS_WIRE_MODE_ALLOC] = {"alloc",
                            "allocations, by the bytes of their types",
                            CS_UNIT_BYTES,
                            false,
                            {"sampled object", "sampled objects"},
                            "alloc_samples",
                            "alloc_space",
                            "allocated bytes"},
    [CS_WIRE_MODE_LOCK] = {"lock",
                           "waits for locks",
                           CS_UNIT_NS,
                           false,
                           {"wait", "waits"},
                           "lock_samples",
                           "delay",
                           "waiting time"},
    [CS_WIRE_MODE_EXCEPTION] = {"exception",
                                "thrown exceptions",
                                CS_UNIT_COUNT,
                                false,
                                {"exception", "exceptions"},
                                "exceptions",
                                NULL,
                                "exceptions"},
    [CS_WIRE_MODE_WAIT] = {"wait",
                           "other waits: tasks, events, semaphores, joins, ...",
                           CS_UNIT_NS,
                           false,
                           {"wait", "waits"},
                           "wait_samples",
                           "wait",
                           "waiting time"},
    [CS_WIRE_MODE_GC] = {"gc",
                         "pauses for garbage collections",
                         CS_UNIT_NS,
                         false,
                         {"pause", "pauses"},
                         "gc_samples",
                         "gc",
                         "pause time"},
    [CS_WIRE_MODE_ASYNC] = {"async",
                            "suspended async operations, by what they await (with wall mode)",
                            CS_UNIT_NS,
                            true,
                            {"sample", "samples"},
                            "async_samples",
                            "async",
                            "time in suspended operations"},
    [CS_WIRE_MODE_HOLDERS] = {"holders",
                              "where locks are held while others wait",
                              CS_UNIT_NS,
                              false,
                              {"observation of a holder", "observations of holders"},
                              "holder_samples",
                              "held",
                              "time that others waited"},
};

const struct cs_mode *cs_mode(enum cs_wire_mode mode) {
  return &modes[(unsigned)mode < CS_WIRE_MODES ? mode : 0];
}

// Such samples do not stand for time, so they have no timeline.
const struct cs_mode *cs_mode_of_event(uint32_t event) {
  static struct cs_mode modes_of_events[CS_PERF_KINDS];
  const struct cs_perf_kind *kind = cs_perf_kind(event);
  if (kind == NULL) return cs_mode((enum cs_wire_mode)0);
  struct cs_mode *mode = &modes_of_events[event];
  *mode = (struct cs_mode){
      .token = kind->name,
      .unit = CS_UNIT_COUNT,
      .what = {"sample", "samples"},
      .count = "samples",
      .weight = kind->name,
      .whole = kind->words,
  };
  return mode;
}

enum cs_wire_mode cs_mode_by_name(const char *name, size_t len) {
  for (unsigned i = CS_WIRE_MODE_CPU; i < CS_WIRE_MODES; i++) {
    if (strlen(modes[i].token) == len && memcmp(modes[i].token, name, len) == 0)
      return (enum cs_wire_mode)i;
  }
  return (enum cs_wire_mode)0;
}

const char *cs_mode_names(uint32_t which, char text[CS_MODE_NAMES_BYTES]) {
  size_t used = 0;
  text[0] = '\0';
  for (unsigned i = CS_WIRE_MODE_CPU; i < CS_WIRE_MODES && used < CS_MODE_NAMES_BYTES; i++) {
    if ((which & CS_WIRE_MODE_BIT(i)) == 0) continue;
    used += (size_t)snprintf(text + used, CS_MODE_NAMES_BYTES - used, "%s%s", used > 0 ? ", " : "",
                             modes[i].token);
  }
  return text;
}

const char *cs_unit_name(enum cs_unit unit) {
  static const char *const names[] = {"nanoseconds", "bytes", "count"};
  return names[unit];
}

void cs_put_amount(FILE *out, enum cs_unit unit, uint64_t amount) {
  double value = (double)amount;
  if (unit == CS_UNIT_COUNT || (unit == CS_UNIT_BYTES && amount < 1000))
    cs_print(out, unit == CS_UNIT_COUNT ? "%" PRIu64 : "%" PRIu64 " bytes", amount);
  else if (unit == CS_UNIT_BYTES && amount >= 1000000000)
    cs_print(out, "%.2f GB", value / 1e9);
  else if (unit == CS_UNIT_BYTES)
    cs_print(out, amount < 1000000 ? "%.1f kB" : "%.1f MB",
             amount < 1000000 ? value / 1e3 : value / 1e6);
  else
    cs_print(out, amount < 1000000000 ? "%.2f ms" : "%.2f s",
             amount < 1000000000 ? value / 1e6 : value / 1e9);
}

void cs_put_whole(FILE *out, const struct cs_mode *mode, uint64_t amount) {
  cs_put_amount(out, mode->unit, amount);
  cs_print(out, mode->unit == CS_UNIT_NS ? " of %s" : " %s",
           mode->unit == CS_UNIT_BYTES ? "allocated" : mode->whole);
}

void cs_put_left_out(FILE *out, const struct cs_mode *mode, uint64_t amount) {
  if (amount == 0) return;
  cs_put_amount(out, mode->unit, amount);
  cs_print(out,
           " of idle threads (the pool's, timers, sockets, ...) are left out; --idle has them\n");
}

void cs_put_halts(FILE *out, uint64_t halted_ns) {
  cs_print(out, "the program was stopped for ");
  cs_put_amount(out, CS_UNIT_NS, halted_ns);
  cs_print(out, " (by a signal, a debugger or a cgroup's freezer): no sample stands for that");
}
