// SPDX-License-Identifier: MIT
// What makes a recording less reliable, or is unusual in it: a sentence each, the gravest first.
// What the summary has in full is said here only where it may change what a reader concludes. One
// thread. Signal-safe: no.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefix.h"
#include "base/print.h"
#include "formats/markdown.h"
#include "profile/blocked.h"
#include "profile/blockers.h"

enum { FEW = 400 };  // samples: the error of a share of one half is five points

void cs_markdown_say_nothing(const struct cs_facts *f, FILE *out) {
  const struct cs_mode *mode = cs_mode_of(f);
  if (f->mode == CS_WIRE_MODE_ASYNC && f->scans.succeeded > 0)
    cs_print(out, "no operation was suspended in any of %" PRIu64 " scans", f->scans.succeeded);
  else if (f->mode == CS_WIRE_MODE_ASYNC)
    cs_print(out, "no scan for suspended operations succeeded");
  else if (mode->timed)
    cs_put_why_nothing(f, out);
  else
    cs_print(out, "none happened while the program was recorded%s", cs_waits_unseen(f->mode));
}

struct list {
  const struct cs_profile_set *set;
  unsigned count, most;
  FILE *out;
};

// Returns whether there is room for one more item, which it begins.
static bool item(struct list *l) {
  if (l->count++ >= l->most) return false;
  cs_print(l->out, "- ");
  return true;
}

static void check_losses(struct list *l) {
  const struct cs_facts *f = &l->set->profiles[0].facts;
  uint64_t lost = f->lost_target + f->lost_ring + f->lost_broken + f->lost_full;
  uint64_t samples = 0, complete = 0;
  const struct cs_profile_stop *why = NULL;
  for (size_t i = 0; i < l->set->count; i++) {
    const struct cs_facts *mode = &l->set->profiles[i].facts;
    samples += mode->samples;
    complete += mode->complete;
    if (mode->stop_count > 0 && (why == NULL || mode->stops[0].count > why->count))
      why = &mode->stops[0];
  }
  double part = 100.0 * (double)lost / (double)(lost + samples + (lost == 0));
  if (f->part && item(l))
    cs_print(l->out, "Only samples of the chosen trace or route are shown.\n");
  if (!f->finished && item(l))
    cs_print(l->out, "The recording has no end: its recorder was killed, or still runs.\n");
  else if (!f->ended && item(l))
    cs_print(l->out, "The program %s.\n", f->fate);
  if (lost > 0 && item(l))
    cs_print(l->out, "%" PRIu64 " samples were lost, %s%.*g %% of all.\n", lost,
             part < 0.01 ? "less than " : "", part < 99.5 ? 2 : 3, part < 0.01 ? 0.01 : part);
  if (samples - complete > samples / 100 && item(l))
    cs_print(l->out, "%.1f %% of the stacks are cut, mostly because %s.\n",
             100.0 * (double)(samples - complete) / (double)samples,
             why != NULL ? why->text : "of reasons that are unknown");
}

static void check_scans(struct list *l, const struct cs_facts *f) {
  const char *why = f->scans_why != NULL ? f->scans_why : "";
  if (f->scans.succeeded == 0 && f->samples == 0 && item(l))
    cs_print(l->out, "async: no scan for suspended operations succeeded%s%s.\n",
             why[0] != '\0' ? ": " : "", why);
  else if (cs_scans_are_few(f) && item(l))
    cs_print(l->out, "async: few scans (%" PRIu64 "): sums and shares are rough.\n",
             f->scans.succeeded);
}

static void check_halts(struct list *l, const struct cs_facts *f) {
  if (f->mode != CS_WIRE_MODE_WALL || f->times.halted_ns == 0 || !item(l)) return;
  cs_print(l->out, "wall: ");
  cs_put_halts(l->out, f->times.halted_ns);
  cs_print(l->out, ".\n");
}

static void check_samples(struct list *l, const struct cs_profile *p) {
  const struct cs_facts *f = &p->facts;
  const struct cs_mode *mode = cs_mode_of(f);
  if (f->mode == CS_WIRE_MODE_ASYNC) {
    check_scans(l, f);
    return;
  }
  if (mode->timed && f->samples == 0 && item(l)) {
    cs_print(l->out, "%s: no samples; ", mode->token);
    cs_put_why_nothing(f, l->out);
    cs_print(l->out, ".\n");
  } else if (f->samples > 0 && f->samples < FEW && !cs_facts_have_all(f) && item(l)) {
    cs_print(l->out, "%s: few samples (%" PRIu64 ").\n", mode->token, f->samples);
  }
  if (f->blocked.samples > 0 && item(l)) {
    cs_print(l->out, "%s: ", mode->token);
    cs_put_blocked(l->out, f);
    cs_print(l->out, ".\n");
  }
  double stood = f->engine.cpu_ns > 0 && f->event == 0
                     ? 100.0 * (double)f->weight / (double)f->engine.cpu_ns
                     : 100;
  if ((stood < 98 || stood > 102) && item(l))
    cs_print(l->out, "%s: samples stand for %.0f %% of the threads' CPU time.\n", mode->token,
             stood);
  if (cs_unsampled_ns(f) > 0 && item(l)) {
    cs_print(l->out, "%s: ", mode->token);
    cs_put_unsampled(f, l->out);
    cs_print(l->out, ".\n");
  }
  if (f->engine.without > 0 && item(l))
    cs_print(l->out, "%s: %" PRIu32 " threads were not sampled: no engine was available.\n",
             mode->token, f->engine.without);
}

static uint64_t weight_of_kind(const struct cs_profile *p, enum cs_profile_kind kind) {
  uint64_t sum = 0;
  for (size_t i = 1; i < p->tree.count; i++) {
    const struct cs_node *node = &p->tree.nodes[i];
    if (node->parent != 0 && p->frames[node->frame].kind == kind) sum += node->weight;
  }
  return sum;
}

// The threads of the collector, by the runtime's names for them. A collection on a thread of the
// program is not seen by this.
static uint64_t weight_of_collector(const struct cs_profile *p) {
  static const char *const prefixes[] = {".NET Server GC", ".NET BGC"};
  uint64_t sum = 0;
  uint32_t thread = 0;
  bool *collects = cs_allocate(p->tree.count * sizeof *collects);
  for (size_t i = 1; i < p->tree.count; i++) {
    const struct cs_node *node = &p->tree.nodes[i];
    collects[i] = collects[node->parent];
    thread = node->frame;
    for (size_t k = 0; k < CS_COUNT(prefixes) && node->parent == 0; k++) {
      const char *name = cs_strings_get(&p->strings, p->threads[thread].name, NULL);
      collects[i] |= cs_has_prefix(name, prefixes[k]);
    }
    if (collects[i]) sum += node->weight;
  }
  free(collects);
  return sum;
}

// The part of the pauses in which threads were still on the way to their safe points.
static void check_way(struct list *l, const struct cs_profile *p) {
  enum { MOST_NAME = 80 };
  struct cs_blockers blockers;
  cs_blockers_find(&blockers, p);
  double way = p->facts.weight > 0 ? 100 * (double)blockers.way_ns / (double)p->facts.weight : 0;
  bool shown = way >= 25 && item(l);
  if (shown)
    cs_print(l->out,
             "%.0f %% of the pauses was the way to the safe point: a thread ran where the runtime "
             "cannot stop it, or got no processor.",
             way);
  if (shown && blockers.count > 0) {
    cs_print(l->out, " Longest in `");
    cs_blocker_put_place(p, &blockers.at[0], MOST_NAME, l->out);
    cs_print(l->out, "`: ");
    cs_blocker_put_time(&blockers.at[0], l->out);
    cs_print(l->out, ".");
  }
  if (shown) cs_print(l->out, "\n");
  cs_blockers_free(&blockers);
}

static void check_shares(struct list *l, const struct cs_profile *p) {
  const struct cs_facts *f = &p->facts;
  double all = f->weight > 0 ? (double)f->weight : 1;
  if (f->mode == CS_WIRE_MODE_CPU) {
    double runtime = 100 * (double)weight_of_kind(p, CS_KIND_RUNTIME) / all;
    double collector = 100 * (double)weight_of_collector(p) / all;
    if (runtime >= 25 && item(l))
      cs_print(l->out,
               "%.0f %% of %s is in the runtime itself: its compiler, collector, type loading.\n",
               runtime, cs_mode_of(f)->whole);
    if (collector >= 10 && item(l))
      cs_print(l->out, "%.0f %% of %s is on the collector's own threads.\n", collector,
               cs_mode_of(f)->whole);
  }
  double paused = f->duration_ns > 0 ? 100 * (double)f->weight / (double)f->duration_ns : 0;
  if (f->mode == CS_WIRE_MODE_GC && paused >= 5 && item(l))
    cs_print(l->out, "The program was paused for collections for %.0f %% of the time.\n", paused);
  if (f->mode == CS_WIRE_MODE_GC) check_way(l, p);
}

static void check_names(struct list *l) {
  const struct cs_facts *f = &l->set->profiles[0].facts;
  if (f->symbols.refused > 0 && item(l))
    cs_print(l->out,
             "The functions of %" PRIu32 " of %" PRIu32 " native libraries have no names.\n",
             f->symbols.refused, f->symbols.images);
  if (f->lines.wanted && f->lines.named < f->lines.places - f->lines.places / 10 && item(l))
    cs_print(l->out, "Lines are known for %" PRIu64 " of %" PRIu64 " places in methods only.\n",
             f->lines.named, f->lines.places);
  if (f->budget.budget_ppm > 0 && f->budget.hz_least > 0 && f->budget.hz_least < f->hz && item(l))
    cs_print(l->out, "The budget has lowered the frequency, to %" PRIu32 " Hz at least.\n",
             f->budget.hz_least);
}

unsigned cs_markdown_odd(const struct cs_profile_set *set, unsigned most, FILE *out) {
  struct list l = {set, 0, most, out};
  check_losses(&l);
  for (size_t i = 0; i < set->count; i++) check_halts(&l, &set->profiles[i].facts);
  for (size_t i = 0; i < set->count; i++) check_samples(&l, &set->profiles[i]);
  for (size_t i = 0; i < set->count; i++) check_shares(&l, &set->profiles[i]);
  check_names(&l);
  if (l.count > most) cs_print(out, "- %u more: see the summary.\n", l.count - most);
  return l.count;
}
