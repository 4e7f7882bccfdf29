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

enum { READINGS = 100 };
static struct cs_clock_pair began;

bool cs_handler_times_are_noted(void) {
  return cs_load_relaxed(&cs_signal.handler_times) != NULL;
}

void cs_handler_times_begin(void) {
  if (getenv("CLRSNAP_BENCH_HANDLER_TIMES") == NULL) return;
  void *at = mmap(NULL, sizeof(struct cs_handler_times), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) return;
  began = cs_clock_read_pair(CLOCK_MONOTONIC_RAW, READINGS);
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
  struct cs_clock_pair ended = cs_clock_read_pair(CLOCK_MONOTONIC_RAW, READINGS);
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
