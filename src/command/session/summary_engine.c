// SPDX-License-Identifier: MIT
// The summary's lines on what made threads take samples, and which threads did not. One thread.
// Signal-safe: no.
#include "session/summary_engine.h"

#include <inttypes.h>

#include "base/prefix.h"
#include "base/print.h"
#include "profile/blocked.h"
#include "profile/waits.h"
#include "util/say.h"

#define PREFIX "clrsnap: "

// Of less CPU time than this, a share says nothing.
#define LEAST_CPU_NS 20000000u

static uint64_t period_ns(const struct cs_facts *f) {
  return 1000000000u / f->hz;
}

// A kernel that finds samples too frequent skips some, and each stands for more.
static void print_period(const struct cs_facts *f, FILE *out) {
  double had = (double)f->weight / (double)(f->samples > 0 ? f->samples : 1);
  bool skips = f->samples > 0 && had > 1.5 * (double)f->event_period;
  cs_print(out, ": a sample in about %.0f %s", skips ? had : (double)f->event_period,
           cs_mode_of(f)->whole);
  if (skips) cs_print(out, ", not in %" PRIu64 ": that was too frequent", f->event_period);
}

static void put_blocked(const struct cs_facts *f, FILE *out) {
  if (f->blocked.weight == 0) return;
  cs_print(out, ", and ");
  cs_put_amount(out, CS_UNIT_NS, f->blocked.weight);
  cs_print(out, " with signals blocked");
}

// What made threads take samples in cpu mode, and how many they took.
// A rate, if there are samples enough for one: the time from one to the next is random.
static void print_rate(const struct cs_facts *f, FILE *out) {
  enum { ENOUGH = 100 };
  uint64_t samples = f->samples - f->blocked.samples;
  uint64_t cpu_ns = f->engine.cpu_ns > f->blocked.weight ? f->engine.cpu_ns - f->blocked.weight : 0;
  double cpu_s = (double)cpu_ns / 1e9;
  if (samples >= ENOUGH || f->hz == 0) {
    cs_print(out, ": %.0f of %" PRIu32 " samples per second of CPU time (%.1f s)",
             cs_rate_reached(f), f->hz, cpu_s);
    put_blocked(f, out);
    return;
  }
  cs_print(out, ": %" PRIu64 " %s in %.2f s of CPU time", samples,
           cs_plural(samples, "sample", "samples"), cpu_s);
  if (f->engine.used != CS_WIRE_ENGINE_CLOCK) {
    cs_print(out, "; one is due every ");
    cs_put_amount(out, CS_UNIT_NS, period_ns(f));
    cs_print(out, " of it on average");
  }
  put_blocked(f, out);
}

// The clock engine may take far fewer samples than were asked for, since its scans have a bound on
// their cost; and with a budget, some samples stand for much more than others. Says how exact
// shares are then: a share of a half, 19 times out of 20.
static void print_few(const struct cs_profile *p, FILE *out) {
  const double good = 3;
  const struct cs_facts *f = &p->facts;
  double points = cs_points_off(p, NULL), seconds = (double)f->duration_ns / 1e9;
  if (f->samples == 0 || points <= 2 * good) return;
  cs_print(out,
           PREFIX
           "  few samples: 19 of 20 shares are within %.0f points; for %.0f points record some "
           "%.0f s%s\n",
           points, good, seconds * (points / good) * (points / good),
           f->engine.used == CS_WIRE_ENGINE_CLOCK ? ", or with --engine perf" : "");
}

// Why the samples' sum may differ from the CPU time.
static const char *why_off(const struct cs_facts *f, double stood) {
  if (f->engine.used != CS_WIRE_ENGINE_CLOCK || stood > 100)
    return "threads end between two samples, and few samples are a matter of chance";
  return "scans miss some of it where they are late, as at a program's start, and threads that run "
         "for moments only";
}

static void print_unsampled(const struct cs_facts *f, FILE *out) {
  if (cs_unsampled_ns(f) == 0) return;
  cs_print(out, PREFIX "  ");
  cs_put_unsampled(f, out);
  cs_print(out, "\n");
}

void cs_print_engine(const struct cs_profile *p, FILE *out) {
  const struct cs_facts *f = &p->facts;
  const struct cs_engine_facts *e = &f->engine;
  if (e->used == CS_WIRE_ENGINE_AUTO) return;
  cs_print(out, PREFIX "engine %s", cs_wire_engine_name(e->used));
  if (f->event != 0)
    print_period(f, out);
  else if (e->cpu_ns > 0)
    print_rate(f, out);
  cs_print(out, "\n");
  if (f->event == 0) print_few(p, out);
  bool timed = e->cpu_ns >= LEAST_CPU_NS && f->event == 0;
  double stood = timed ? 100.0 * (double)f->weight / (double)e->cpu_ns : 100.0;
  if (stood < 98.0 || stood > 102.0)
    cs_print(out, PREFIX "  samples stand for %.0f %% of that time: %s\n", stood,
             why_off(f, stood));
  print_unsampled(f, out);
  if (e->unseen[0] != '\0') cs_print(out, PREFIX "  %s\n", e->unseen);
  const char *used = cs_wire_engine_name(e->used);  // by some threads, or for some time
  if (e->why[0] != '\0')
    cs_print(out, PREFIX "  not %s%s\n", cs_has_prefix(e->why, used) ? "always " : "", e->why);
  if (e->others > 0)
    cs_print(out, PREFIX "  %" PRIu32 " %s sampled by another engine\n", e->others,
             cs_plural(e->others, "thread was", "threads were"));
  if (e->without > 0)
    cs_print(out, PREFIX "  %" PRIu32 " %s not sampled: no engine was available\n", e->without,
             cs_plural(e->without, "thread was", "threads were"));
}

void cs_print_blocked(const struct cs_facts *f, FILE *out) {
  if (f->blocked.samples == 0) return;
  cs_print(out, PREFIX "%s: ", cs_mode_of(f)->token);
  cs_put_blocked(out, f);
  cs_print(out, "\n");
}

void cs_print_asks(const struct cs_facts *f, FILE *out) {
  if (f->lost_signals.unsent > 0)
    cs_print(out,
             PREFIX "%" PRIu64
                    " %s not sent: too many are pending (raise ulimit -i); running threads are "
                    "missing, or their next samples stand for more\n",
             f->lost_signals.unsent,
             cs_plural(f->lost_signals.unsent, "signal was", "signals were"));
  if (f->lost_signals.silent > 0)
    cs_print(
        out,
        PREFIX "%" PRIu64
               " %s signal, for %.1f s in total: no processor was available, or the "
               "program received it as data (sigwait, signalfd)\n",
        (uint64_t)f->lost_signals.silent,
        cs_plural(f->lost_signals.silent, "thread did not take its", "threads did not take their"),
        (double)f->lost_signals.silent_ns / 1e9);
}
