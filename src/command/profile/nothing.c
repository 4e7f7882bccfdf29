// SPDX-License-Identifier: MIT
// Why a mode of samples in time has none. One thread. Signal-safe: no.
#include "base/print.h"
#include "profile/profile.h"

// Of less CPU time than this, a share says nothing.
#define LEAST_CPU_NS 20000000u

// In less than this, a recorder that begins may find no thread, and no processor.
#define MOMENT_NS 100000000u

static uint64_t lasted_ns(const struct cs_facts *f) {
  return f->times.lasted_ns != 0 ? f->times.lasted_ns : f->duration_ns;
}

static double seconds(uint64_t ns) {
  return (double)ns / 1e9;
}

static void put_too_little(const struct cs_facts *f, FILE *out) {
  uint64_t period_ns = 1000000000u / (f->hz > 0 ? f->hz : 1);
  bool wall = f->mode == CS_WIRE_MODE_WALL;
  if (!wall)
    cs_print(out, "the program used too little %s", cs_mode_of(f)->whole);
  else if (lasted_ns(f) < 2 * period_ns || lasted_ns(f) < MOMENT_NS)
    cs_print(out, "the recording was too short (%.0f ms)", (double)lasted_ns(f) / 1e6);
  else
    cs_print(out, "no thread that runs managed code was found");
  if (f->event != 0 || f->hz == 0) return;
  cs_print(out, wall ? "; threads are sampled every " : "; a sample is due every ");
  cs_put_amount(out, CS_UNIT_NS, period_ns);
  if (!wall) cs_print(out, " of it");
}

// If the recorder's thread has waited for most of the time.
static bool put_starved(const struct cs_facts *f, FILE *out) {
  if (f->times.waited_ns <= f->times.lasted_ns / 2) return false;
  cs_print(out, "the recorder waited for a processor for %.2f s of %.2f s",
           seconds(f->times.waited_ns), seconds(f->times.lasted_ns));
  return true;
}

static bool put_cpu(const struct cs_facts *f, FILE *out) {
  const struct cs_engine_facts *e = &f->engine;
  uint64_t used = e->cpu_ns > f->times.process_ns ? e->cpu_ns : f->times.process_ns;
  if (used < LEAST_CPU_NS || f->event != 0) return false;
  cs_print(out, "the program used %.2f s of CPU time, but ", seconds(used));
  if (put_starved(f, out)) return true;
  if (e->cpu_ns < LEAST_CPU_NS)
    cs_print(out, "none of it on a thread that was sampled");
  else
    cs_print(
        out, "no %s",
        e->used == CS_WIRE_ENGINE_CLOCK ? "scan found a thread running" : "thread took its signal");
  return true;
}

void cs_put_unsampled(const struct cs_facts *f, FILE *out) {
  uint64_t ns = cs_unsampled_ns(f);
  cs_print(out,
           "another %.2f s of CPU time, %.0f %% of the program's, is in no sample: threads' starts "
           "and ends, and threads that are not sampled",
           seconds(ns), 100.0 * (double)ns / (double)f->times.process_ns);
}

void cs_put_why_nothing(const struct cs_facts *f, FILE *out) {
  bool wall = f->mode == CS_WIRE_MODE_WALL;
  if (!f->ended || !f->finished)
    cs_print(out, "the recording breaks off before its first sample");
  else if (f->stopped.unsampled_ns > 0)
    cs_print(out, "the threads could not be given larger signal stacks before they used %s time",
             cs_mode_of(f)->token);
  else if (wall && lasted_ns(f) >= MOMENT_NS && put_starved(f, out))
    return;
  else if (wall && lasted_ns(f) >= MOMENT_NS && f->ticks.taken == 0 && f->ticks.left_out > 0)
    cs_print(out, "the recorder got no processor");
  else if (wall || !put_cpu(f, out))
    put_too_little(f, out);
}
