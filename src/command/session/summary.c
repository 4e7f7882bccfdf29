// SPDX-License-Identifier: MIT
// The summary: samples, what was lost and where, the share of complete walks and the reasons of the
// others, how long threads were held, and how often the runtime was stopped. It hides no weakness.
// One thread. Signal-safe: no.
#include "session/summary.h"

#include <inttypes.h>
#include <string.h>

#include "base/print.h"
#include "profile/blockers.h"
#include "profile/pool.h"
#include "profile/waits.h"
#include "session/summary_engine.h"
#include "util/say.h"

#define DEBUGGING_DISABLED 0x80131378u  // CORPROF_E_DEBUGGING_DISABLED
#define PREFIX "clrsnap: "
enum { MOST_NAME = 120 };  // bytes of a method's name

#define MOMENT_NS 1000000000u
enum { NOTICEABLE = 20 };  // missed rounds are reported if they are more than one in 20

static void print_losses(const struct cs_facts *f, FILE *out) {
  uint64_t lost = f->lost_target + f->lost_ring + f->lost_broken + f->lost_full;
  cs_print(out, PREFIX "lost %" PRIu64, lost);
  if (lost > 0) {
    cs_print(out,
             ": %" PRIu64 " in the program, %" PRIu64 " on the way, %" PRIu64
             " unreadable, %" PRIu64 " beyond the call tree's limit",
             f->lost_target, f->lost_ring, f->lost_broken, f->lost_full);
  }
  cs_print(out, "\n");
  if (f->lost_ring > 0) cs_print(out, PREFIX "  a larger --buffer loses less\n");
}

// The reasons of all modes, most frequent first; of equal ones the first mode's first.
static void print_cuts(const struct cs_profile_set *set, FILE *out) {
  struct cs_profile_stop sums[CS_PROFILE_MAX_STOPS];
  size_t count = 0;
  for (size_t i = 0; i < set->count; i++) {
    const struct cs_facts *f = &set->profiles[i].facts;
    for (size_t s = 0; s < f->stop_count; s++) {
      size_t at = 0;
      while (at < count && strcmp(sums[at].token, f->stops[s].token) != 0) at++;
      if (at < count)
        sums[at].count += f->stops[s].count;
      else if (count < CS_PROFILE_MAX_STOPS)
        sums[count++] = f->stops[s];
    }
  }
  for (size_t i = 0; i < count; i++) {
    size_t most = i;
    for (size_t k = i; k < count; k++)
      if (sums[k].count > sums[most].count) most = k;
    struct cs_profile_stop stop = sums[most];
    memmove(&sums[i + 1], &sums[i], (most - i) * sizeof sums[0]);
    sums[i] = stop;
    cs_print(out, PREFIX "  cut %" PRIu64 " %s: %s\n", stop.count, stop.token, stop.text);
  }
}

static void print_walks(const struct cs_profile_set *set, uint64_t samples, FILE *out) {
  uint64_t whole = 0;
  if (samples == 0) return;
  for (size_t i = 0; i < set->count; i++) whole += set->profiles[i].facts.complete;
  // Two digits, rounded down: 99.996 % must not be shown as 100.
  double complete = 100.0 * (double)whole / (double)samples;
  complete = (double)(uint64_t)(complete * 100.0) / 100.0;
  cs_print(out, PREFIX "complete walks %.2f %%\n", complete);
  print_cuts(set, out);
}

static double us(uint64_t ns) {
  return (double)ns / 1000.0;
}

static void print_halts(const struct cs_facts *f, FILE *out) {
  if (f->mode != CS_WIRE_MODE_WALL || f->times.halted_ns == 0) return;
  cs_print(out, PREFIX);
  cs_put_halts(out, f->times.halted_ns);
  cs_print(out, "\n");
}

// Scans of all threads that there was no time for. In a moment there are too few for a rate: the
// first ones take longest, since all threads are walked and named for the first time.
static void print_rounds(const struct cs_facts *f, FILE *out) {
  const struct cs_wire_ticks *t = &f->ticks;
  if (t->left_out <= (t->taken + t->left_out) / NOTICEABLE) return;
  if (f->duration_ns < MOMENT_NS)
    cs_print(out,
             PREFIX "  %" PRIu64 " of the %" PRIu64
                    " rounds that fit into %.0f ms at %u a second; record for a second or more\n",
             t->taken, t->taken + t->left_out, (double)f->duration_ns / 1e6, f->hz);
  else
    cs_print(out, PREFIX "  %.0f of %u rounds per second: there was no time for more\n",
             f->hz * (double)t->taken / (double)(t->taken + t->left_out), f->hz);
}

// A thread that was blocked when it was sampled was waiting; all others ran or wanted to.
static void print_sleepers(const struct cs_profile *p, FILE *out) {
  const struct cs_facts *f = &p->facts;
  if (f->asleep == 0 || f->mode != CS_WIRE_MODE_WALL) return;
  cs_print(out,
           PREFIX "%" PRIu64 " of sleeping threads, which were not woken; %" PRIu64 " by signal\n",
           f->asleep, f->samples - f->asleep - f->blocked.samples);
  cs_print(out, PREFIX "  waiting ");
  cs_put_amount(out, CS_UNIT_NS, f->asleep_weight);
  cs_print(out, ", running or ready to run ");
  cs_put_amount(out, CS_UNIT_NS, f->weight - f->asleep_weight);
  uint64_t spun = cs_spin_weight(p);
  if (spun > 0) {
    cs_print(out, ", of which ");
    cs_put_amount(out, CS_UNIT_NS, spun);
    cs_print(out, " idle, spinning for work%s", p->with_idle ? "" : ": tables leave that out");
  }
  cs_print(out, "\n");
  if (f->ticks.native > 0)
    cs_print(out, PREFIX "  without %" PRIu64 " %s that never ran managed code\n", f->ticks.native,
             cs_plural(f->ticks.native, "thread", "threads"));
  if (f->ticks.uncovered_ns > f->weight / 100) {
    cs_print(out, PREFIX "  not covered: ");
    cs_put_amount(out, CS_UNIT_NS, f->ticks.uncovered_ns);
    cs_print(out, " of threads, before the first scan that found them or after the last one\n");
  }
  print_rounds(f, out);
}

// Async mode: what the scans cost, and what they do not see.
static void print_scans(const struct cs_facts *f, FILE *out) {
  const struct cs_wire_scans *l = &f->scans;
  if (f->mode != CS_WIRE_MODE_ASYNC) return;
  cs_print(out, PREFIX "async mode: %" PRIu64 " %s for suspended operations", l->succeeded,
           cs_plural(l->succeeded, "scan", "scans"));
  if (l->succeeded > 0)
    cs_print(out, ", %.0f operations on average", (double)l->operations / (double)l->succeeded);
  if (l->stopped_ns > 0)
    cs_print(out, "; the program was stopped for %.1f ms in all, %.1f ms at most",
             (double)l->stopped_ns / 1e6, (double)l->longest_ns / 1e6);
  cs_print(out, "\n");
  if (cs_scans_are_few(f))
    cs_print(out,
             PREFIX
             "  few scans: sums and shares are rough (they stand for %.1f s of the %.1f s "
             "recorded)\n",
             (double)l->covered_ns / 1e9, (double)f->duration_ns / 1e9);
  if (l->failed > 0 || l->ended != 0)
    cs_print(
        out, PREFIX "  %" PRIu64 " %s, %s%s\n", l->failed,
        cs_plural(l->failed, "scan failed", "scans failed"), f->scans_why,
        l->ended != 0 ? "; it was given up, and the rest of the time is not in async mode" : "");
  if (l->unread > 0)
    cs_print(out,
             PREFIX
             "  %.1f %s per scan on average without a label, because their context could "
             "not be read\n",
             (double)l->unread / (double)l->succeeded,
             cs_plural(l->unread, "operation", "operations"));
  cs_print(out, PREFIX
           "  not seen: what completes a TaskCompletionSource, names of runtime-async methods\n");
}

static void print_pool(const struct cs_facts *f, FILE *out) {
  if (f->pool.scans == 0) return;
  if (cs_pool_has_cause(f)) {
    cs_print(out, PREFIX);
    cs_pool_put_cause(f, out);
    cs_print(out, "\n");
  }
  cs_print(out, PREFIX "pool: ");
  cs_pool_put(f, out);
  cs_print(out, "\n");
}

// Threads that a signal would kill. In wall mode they are sampled while they sleep.
static void print_small_stacks(const struct cs_facts *f, FILE *out) {
  if (f->small_stacks.small > 0)
    cs_print(out,
             PREFIX "%" PRIu64
                    " %s not sampled while running: a stack below 64 KiB may have no room for a "
                    "signal\n",
             (uint64_t)f->small_stacks.small,
             cs_plural(f->small_stacks.small, "thread was", "threads were"));
  if (f->small_stacks.unknown > 0)
    cs_print(out,
             PREFIX "%" PRIu64
                    " native %s not sampled: the C library does not know the size of the stack, "
                    "and a small one has no room for a signal\n",
             (uint64_t)f->small_stacks.unknown,
             cs_plural(f->small_stacks.unknown, "thread was", "threads were"));
}

// Only for signal stacks, after an attach (docs/signal-safety.md).
static void print_suspensions(const struct cs_facts *f, FILE *out) {
  if (f->suspensions == 1)
    cs_print(out, PREFIX "the runtime was stopped once");
  else
    cs_print(out, PREFIX "the runtime was stopped %" PRIu64 " times", f->suspensions);
  if (f->stopped.stopped_ns > 0)
    cs_print(out, ", %.1f ms, to give %" PRIu64 " %s larger signal stacks",
             (double)f->stopped.stopped_ns / 1e6, f->stopped.threads,
             cs_plural(f->stopped.threads, "thread", "threads"));
  cs_print(out, "\n");
  if (f->stopped.unsampled_ns > 0)
    cs_print(out,
             PREFIX
             "  %.1f ms of CPU time were not sampled, of threads that had no larger signal "
             "stacks yet\n",
             (double)f->stopped.unsampled_ns / 1e6);
}

static void print_whose(const char *thread, FILE *out) {
  if (thread[0] != '\0')
    cs_print(out, "thread '%s'", thread);
  else
    cs_print(out, "a thread");
}

// Samples may take a tenth of a thread's time, so after each walk ten times as long passes until
// the next one. The walks for events may take another tenth.
static void print_put_off(const struct cs_facts *f, FILE *out) {
  const struct cs_wire_put_off *put_off = &f->put_off;
  if (put_off->samples > 0) {
    cs_print(out, PREFIX "%" PRIu64 " %s (the next has %s weight): walks of ", put_off->samples,
             cs_plural(put_off->samples, "sample was put off", "samples were put off"),
             cs_plural(put_off->samples, "its", "their"));
    print_whose(f->put_off_thread, out);
    cs_print(out, " took up to %.0f us of CPU time\n", us(put_off->longest_ns));
  }
  if (put_off->events > 0) {
    cs_print(out, PREFIX "%" PRIu64 " %s no stack: walks for so many took a tenth of the time of ",
             put_off->events, cs_plural(put_off->events, "event has", "events have"));
    print_whose(f->stackless_thread, out);
    cs_print(out, "\n");
  }
}

static void put_held(const char *which, uint64_t ns, FILE *out) {
  cs_print(out, ns < 1000000 ? "%s %.1f us" : "%s %.1f ms", which,
           us(ns) / (ns < 1000000 ? 1 : 1e3));
}

// From the handler's entry to its end in real time, whether or not the thread had a processor.
static void print_held(const struct cs_facts *f, FILE *out) {
  enum { LONG_NS = 1000000, FAR_ABOVE = 20 };
  if (f->held_count == 0) return;
  put_held(PREFIX "threads held p50", f->held_p50_ns, out);
  put_held(", p99", f->held_p99_ns, out);
  put_held(", max", f->held_max_ns, out);
  if (f->held_max_ns >= LONG_NS &&
      (f->held_p50_ns >= LONG_NS || f->held_max_ns / FAR_ABOVE > f->held_p50_ns))
    cs_print(out, " (in real time, waits for a processor included)");
  cs_print(out, "\n");
}

static void print_cost(const struct cs_facts *f, FILE *out) {
  print_held(f, out);
  print_put_off(f, out);
  if (f->ended) {
    print_suspensions(f, out);
  } else if (!f->finished) {
    cs_print(out, PREFIX
             "the recording has no end: losses in the program and stops of the runtime are not "
             "known\n");
  } else {
    cs_print(
        out,
        PREFIX
        "the program %s: what was recorded until then is kept; losses in the program and stops "
        "of the runtime are not known\n",
        f->fate);
  }
}

static const char *why_unmapped(const struct cs_line_facts *f) {
  if ((unsigned)f->why_unmapped == DEBUGGING_DISABLED)
    return ": DOTNET_EnableDiagnostics_Debugger=0 forbids it";
  if (f->why_unmapped == CS_WIRE_E_IL_REPLACED)
    return ": they were edited (hot reload), or a profiler has replaced their IL: the PDB has no "
           "lines for that";
  return "";
}

static void print_lines(const struct cs_line_facts *f, FILE *out) {
  if (!f->wanted) return;
  cs_print(out,
           PREFIX "lines for %" PRIu64 " of %" PRIu64
                  " places in methods; symbols of %u of %u modules\n",
           f->named, f->places, f->with_symbols, f->modules);
  if (f->missing[0] != '\0') cs_print(out, PREFIX "  none for %s\n", f->missing);
  if (f->unmapped > 0)
    cs_print(out, PREFIX "  no IL map of %" PRIu64 " of %" PRIu64 " methods (0x%08x)%s\n",
             f->unmapped, f->methods, (unsigned)f->why_unmapped, why_unmapped(f));
}

static void print_symbols(const struct cs_symbol_facts *f, FILE *out) {
  if (f->kernel[0] != '\0')
    cs_print(out, PREFIX "the kernel's functions have no names: %s\n", f->kernel);
  if (f->refused == 0) return;
  cs_print(out, PREFIX "no names from the files of %u of %u libraries: %s\n", f->refused, f->images,
           f->missing);
}

// A runtime without symbols: what its frames are called, and what they are not.
static void print_runtime(const struct cs_facts *f, FILE *out) {
  if (f->runtime_weight == 0 || f->weight == 0) return;
  double all = (double)f->weight / 100.0;
  cs_print(out,
           PREFIX
           "%s: %.1f %% in functions of the runtime without names, %.1f %% in those without "
           "a class either\n",
           cs_mode_of(f)->token, (double)f->runtime_weight / all,
           (double)f->unclassed_weight / all);
}

static void print_inlined(const struct cs_inlined_facts *f, FILE *out) {
  if (!f->wanted) return;
  cs_print(out, PREFIX "inlined methods in %" PRIu64 " of the methods that were sampled\n",
           f->methods);
  if (f->unread > 0)
    cs_print(out,
             PREFIX "  what is inlined in %" PRIu64
                    " more cannot be read: this runtime keeps it in another form\n",
             f->unread);
}

// Shares of one processor, as `top` has them.
static void print_budget(const struct cs_wire_budget *b, uint32_t hz, FILE *out) {
  if (b->budget_ppm == 0 || b->recorded_ns == 0) return;
  double all = (double)b->recorded_ns / 100.0, allowed = b->budget_ppm / 1e4;
  double agent = (double)b->agent_ns / all, handlers = (double)b->handlers_ns / all;
  double command = (double)b->command_ns / all, used = agent + handlers + command;
  cs_print(out,
           PREFIX
           "budget %.3g %%: used %.3g %% of a processor (agent %.3g, handlers %.3g, "
           "command %.3g)\n",
           allowed, used, agent, handlers, command);
  cs_print(out,
           PREFIX "  rate %" PRIu32 " Hz, at least %" PRIu32 ", at last %" PRIu32
                  "; changed %" PRIu32 " %s\n",
           hz, b->hz_least, b->hz_last, b->changes, cs_plural(b->changes, "time", "times"));
  if (used > allowed && b->hz_least == 1)
    cs_print(out, PREFIX "  even at 1 Hz, recording costs more than that\n");
  else if (used > allowed)
    cs_print(out, PREFIX "  the beginning costs most: a longer recording comes closer\n");
}

// Where threads were that held up suspensions, if that was a part of the pauses that matters.
static void print_blockers(const struct cs_profile *p, FILE *out) {
  enum { MOST = 3, LEAST_PART = 20 };
  struct cs_blockers blockers;
  cs_blockers_find(&blockers, p);
  for (size_t i = 0; i < blockers.count && i < MOST; i++) {
    if (blockers.at[i].ns < p->facts.weight / LEAST_PART) break;
    cs_print(out, PREFIX "    held up by ");
    cs_blocker_put_place(p, &blockers.at[i], MOST_NAME, out);
    cs_print(out, ": ");
    cs_blocker_put_time(&blockers.at[i], out);
    cs_print(out, "\n");
  }
  cs_blockers_free(&blockers);
}

// What is shown is shares of what these samples stand for.
static void print_walked(const struct cs_facts *f, uint64_t value, FILE *out) {
  uint64_t weight = f->weight - f->unwalked_weight;
  cs_print(out, "; %" PRIu64 " of them walked, which stand for ", f->samples - f->unwalked);
  if (weight == value)
    cs_print(out, "all");
  else
    cs_put_amount(out, cs_mode_of(f)->unit, weight);
}

// One mode of several, or one of events.
static void print_mode(const struct cs_profile *p, FILE *out) {
  const struct cs_facts *f = &p->facts;
  const struct cs_mode *mode = cs_mode_of(f);
  // Only objects that the runtime has sampled are events of alloc mode.
  uint64_t events = f->events > 0 ? f->events : f->samples;
  uint64_t value = cs_facts_whole(f);
  cs_print(out, PREFIX "  %s: %" PRIu64 " %s", mode->token, events,
           f->part ? cs_plural(events, "sample", "samples") : mode->what[events != 1]);
  if (events > 0 && (f->event != 0 || (f->part && mode->unit == CS_UNIT_COUNT))) {
    cs_print(out, ", ");
    cs_put_whole(out, mode, value);
  } else if (events > 0 && mode->unit != CS_UNIT_COUNT) {
    cs_print(out, "%s", mode->unit == CS_UNIT_BYTES ? ", estimated " : ", ");
    cs_put_amount(out, mode->unit, value);
  }
  // A pause has at least two samples.
  if (f->mode == CS_WIRE_MODE_GC && f->samples < events)
    cs_print(out, "; %" PRIu64 " samples stand for all", f->samples);
  else if (!mode->timed && f->samples < events)
    print_walked(f, value, out);
  if (events == 0) cs_print(out, "%s", cs_waits_unseen(f->mode));
  if (f->lost_samples > 0) cs_print(out, ", %" PRIu64 " lost", f->lost_samples);
  if (mode->timed && events == 0 && f->mode != CS_WIRE_MODE_ASYNC) {
    cs_print(out, ": ");
    cs_put_why_nothing(f, out);
  }
  cs_print(out, "\n");
  if (f->mode == CS_WIRE_MODE_HOLDERS && f->weight > 0) {
    cs_print(out, PREFIX "    waits for locks: ");
    cs_holders_put(p, MOST_NAME, out);
    cs_print(out, "\n");
  }
  if (f->mode == CS_WIRE_MODE_HOLDERS)
    cs_print(out, PREFIX
             "    estimated from observations at random times; lock mode has each wait's length\n");
  if (cs_facts_are_by_count(f))
    cs_print(out, PREFIX
             "    .NET 9 chooses small objects by their count of bytes, not at random: where the "
             "same is allocated in turn, shares may be far off and types missing\n");
  if (f->mode == CS_WIRE_MODE_LOCK)
    cs_print(out, PREFIX "    for lock, Monitor and Lock only: other waits are in wait mode\n");
  if (f->mode == CS_WIRE_MODE_GC) print_blockers(p, out);
}

static void print_modes(const struct cs_profile_set *set, FILE *out) {
  if (set->count == 1 && cs_mode_of(&set->profiles[0].facts)->timed) return;
  for (size_t i = 0; i < set->count; i++) print_mode(&set->profiles[i], out);
}

static void print_first(const struct cs_profile_set *set, uint64_t samples, FILE *out) {
  const struct cs_facts *f = &set->profiles[0].facts;
  cs_print(out, PREFIX "%" PRIu64 " %s in %.1f s (", samples,
           cs_plural(samples, "sample", "samples"), (double)f->duration_ns / 1e9);
  for (size_t i = 0; i < set->count; i++)
    cs_print(out, "%s%s", i > 0 ? ", " : "", cs_mode_of(&set->profiles[i].facts)->token);
  if (cs_mode_of(f)->timed && f->hz > 0) cs_print(out, ", %" PRIu32 " Hz", f->hz);
  cs_print(out, "%s%s)\n", f->runtime[0] != '\0' ? ", .NET " : "", f->runtime);
  if (samples > 0 || set->count != 1 || !cs_mode_of(f)->timed || f->hz == 0) return;
  cs_print(out, PREFIX "nothing was sampled: ");
  cs_put_why_nothing(f, out);
  cs_print(out, "\n");
}

static void print_labels(const struct cs_profile_set *set, uint64_t samples, FILE *out) {
  if (set->profiles[0].facts.part)
    cs_print(out, PREFIX "only samples of the chosen trace or route; what was lost is of all\n");
  uint64_t labelled = 0, full = set->profiles[0].facts.labels_full;
  for (size_t i = 0; i < set->count; i++) labelled += set->profiles[i].facts.labelled;
  if (labelled > 0)
    cs_print(out, PREFIX "labels: %" PRIu64 " of %" PRIu64 " samples have one%s\n", labelled,
             samples,
             2 * labelled < samples ? "; the others were taken while no Activity was current" : "");
  if (labelled > 0 && 2 * labelled < samples)
    cs_print(out,
             PREFIX "  an Activity is a request of ASP.NET Core, or one that the program starts\n");
  if (full > 0)
    cs_print(out,
             PREFIX "  %" PRIu64
                    " have lost theirs: more than %u stacks under labels; record "
                    "for a shorter time\n",
             full, CS_LABELS_MAX);
}

void cs_print_summary(const struct cs_profile_set *set, FILE *out) {
  const struct cs_facts *f = &set->profiles[0].facts;
  uint64_t samples = 0;
  for (size_t i = 0; i < set->count; i++) samples += set->profiles[i].facts.samples;
  print_first(set, samples, out);
  print_modes(set, out);
  for (size_t i = 0; i < set->count; i++) cs_print_engine(&set->profiles[i], out);
  print_losses(f, out);
  print_walks(set, samples, out);
  print_symbols(&f->symbols, out);
  for (size_t i = 0; i < set->count; i++) print_runtime(&set->profiles[i].facts, out);
  print_lines(&f->lines, out);
  print_inlined(&f->inlined, out);
  print_labels(set, samples, out);
  for (size_t i = 0; i < set->count; i++) print_halts(&set->profiles[i].facts, out);
  for (size_t i = 0; i < set->count; i++) print_sleepers(&set->profiles[i], out);
  for (size_t i = 0; i < set->count; i++) print_scans(&set->profiles[i].facts, out);
  for (size_t i = 0; i < set->count; i++) print_pool(&set->profiles[i].facts, out);
  for (size_t i = 0; i < set->count; i++) cs_print_blocked(&set->profiles[i].facts, out);
  cs_print_asks(f, out);
  print_small_stacks(f, out);
  print_cost(f, out);
  print_budget(&f->budget, f->hz, out);
}
