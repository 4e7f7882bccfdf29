// SPDX-License-Identifier: MIT
// Writes a line for each note: "empty" or "full", "clock" or "asked", the ns from the event's
// overflow to the handler's end ("-": not known), and those of the handler. The rate of the
// time-stamp counter is measured over the whole recording. The memory is never freed, because a
// handler may still write to it. The agent's thread. Signal-safe: no.
#include "engines/handler_times.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "signal/handler_times.h"

struct moment {
  uint64_t tsc, ns;
};
static struct moment began;

// Returns the most precise of several readings of both clocks.
static struct moment read_clocks(void) {
  enum { TRIES = 100 };
  struct moment best = {0, 0};
  uint64_t closest = UINT64_MAX;
  for (int i = 0; i < TRIES; i++) {
    uint64_t before = cs_tsc(), ns = cs_clock_read_ns(CLOCK_MONOTONIC_RAW), after = cs_tsc();
    if (after - before >= closest) continue;
    closest = after - before;
    best = (struct moment){before + closest / 2, ns};
  }
  return best;
}

bool cs_handler_times_are_noted(void) {
  return cs_load_relaxed(&cs_signal.handler_times) != NULL;
}

void cs_handler_times_begin(void) {
  if (getenv("CLRSNAP_BENCH_HANDLER_TIMES") == NULL) return;
  void *at = mmap(NULL, sizeof(struct cs_handler_times), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) return;
  began = read_clocks();
  cs_store_release(&cs_signal.handler_times, (struct cs_handler_times *)at);
}

static void write_note(FILE *out, const struct cs_handler_time *note, double ns_of_tick) {
  const char *kind = note->empty ? "empty" : "full", *by = note->clocked ? "clock" : "asked";
  double handler = (double)(note->end - note->entry) * ns_of_tick;
  double end = (double)began.ns + ((double)note->end - (double)began.tsc) * ns_of_tick;
  if (note->overflow_ns != 0)
    (void)fprintf(out, "%s %s %.0f %.0f\n", kind, by, end - (double)note->overflow_ns, handler);
  else
    (void)fprintf(out, "%s %s - %.0f\n", kind, by, handler);
}

void cs_handler_times_end(void) {
  struct cs_handler_times *notes = cs_load_acquire(&cs_signal.handler_times);
  if (notes == NULL) return;
  cs_store_release(&cs_signal.handler_times, NULL);
  struct moment ended = read_clocks();
  const char *path = getenv("CLRSNAP_BENCH_HANDLER_TIMES");
  FILE *out = path != NULL ? fopen(path, "we") : NULL;
  if (out == NULL) {
    cs_log_important("%s: cannot be written", path != NULL ? path : "CLRSNAP_BENCH_HANDLER_TIMES");
  } else {
    double rate = (double)(ended.ns - began.ns) / (double)(ended.tsc - began.tsc);
    // A note without an end: the thread did not take its sample.
    for (uint32_t i = 0; i < notes->used && i < CS_HANDLER_TIMES; i++)
      if (notes->at[i].end != 0) write_note(out, &notes->at[i], rate);
    (void)fclose(out);
  }
}
