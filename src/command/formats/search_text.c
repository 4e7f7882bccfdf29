// SPDX-License-Identifier: MIT
// How much of a mode is in and below the methods whose names match: the page's search, as text. One
// thread. Signal-safe: no.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "formats/methods.h"
#include "formats/writers.h"
#include "profile/waits.h"

enum { MOST_ROWS = 10 };

struct found {
  bool *frames;  // that match
  uint64_t self, total, whole;
};

static void find(const struct cs_profile *p, const struct cs_search *search, const bool *idle,
                 struct found *out) {
  const struct cs_tree *tree = &p->tree;
  bool *inside = cs_allocate(tree->count * sizeof *inside);
  out->frames = cs_allocate((p->frame_count + 1) * sizeof *out->frames);
  for (size_t i = 0; i < p->frame_count; i++) {
    const char *name = cs_strings_get(&p->strings, p->frames[i].name, NULL);
    out->frames[i] = cs_search_matches(search, name);
  }
  for (size_t i = 1; i < tree->count; i++) {
    const struct cs_node *node = &tree->nodes[i];
    bool hit = node->parent != 0 && out->frames[node->frame];
    inside[i] = hit || inside[node->parent];
    if (idle != NULL && idle[i]) continue;
    out->whole += node->weight;
    out->self += hit ? node->weight : 0;
    out->total += inside[i] ? node->weight : 0;
  }
  free(inside);
}

static int by_total(const void *a, const void *b) {
  const struct cs_hot *x = a, *y = b;
  return CS_ORDER(y->total, x->total) ?: CS_ORDER(y->self, x->self) ?: CS_ORDER(x->frame, y->frame);
}

static void put_rows(const struct cs_profile *p, const struct found *f, const bool *idle,
                     const char *prefix, FILE *out) {
  uint64_t left_out = 0;
  size_t count = 0;
  struct cs_hot *hot = cs_hot_frames(p, idle, &left_out);
  double all = f->whole > 0 ? (double)f->whole : 1;
  for (size_t i = 0; i < p->frame_count; i++)
    if (f->frames[i] && hot[i].total > 0) hot[count++] = hot[i];
  cs_sort(hot, count, sizeof *hot, by_total);
  if (count > 0) cs_print(out, "%s   self   total  samples  method\n", prefix);
  for (size_t i = 0; i < count && i < MOST_ROWS; i++) {
    cs_print(out, "%s%5.1f %%  %5.1f %%  %7" PRIu64 "  ", prefix, 100.0 * (double)hot[i].self / all,
             100.0 * (double)hot[i].total / all, hot[i].samples);
    cs_print(out, "%s\n", cs_strings_get(&p->strings, p->frames[hot[i].frame].name, NULL));
  }
  if (count > MOST_ROWS) cs_print(out, "%s  (%zu more)\n", prefix, count - MOST_ROWS);
  free(hot);
}

static bool put_mode(const struct cs_profile *p, const struct cs_search *search, const char *prefix,
                     FILE *out) {
  struct found f = {0};
  const struct cs_mode *mode = cs_mode_of(&p->facts);
  bool *idle = cs_left_out_nodes(p);
  find(p, search, idle, &f);
  double all = f.whole > 0 ? (double)f.whole : 1;
  if (f.total > 0) {
    cs_print(out, "%s%s mode: %.1f %% in and below what matches, %.1f %% in itself, of ", prefix,
             mode->token, 100.0 * (double)f.total / all, 100.0 * (double)f.self / all);
    cs_put_whole(out, mode, f.whole);
    cs_print(out, idle != NULL ? " (without idle threads)\n" : "\n");
    put_rows(p, &f, idle, prefix, out);
  }
  bool inlined = cs_put_inlined_hits(p, search, prefix, out);
  free(idle);
  free(f.frames);
  return f.total > 0 || inlined;
}

void cs_write_search(const struct cs_profile_set *set, const char *text, const char *prefix,
                     FILE *out) {
  struct cs_search search;
  bool any = false;
  cs_search_begin(&search, text);
  cs_print(out, "%ssearch for '", prefix);
  cs_print(out, "%s", text);
  if (search.wrong[0] == '\0')
    cs_print(out, "'\n");
  else
    cs_print(out, "' as it is, because it is not a regular expression: %s\n", search.wrong);
  for (size_t i = 0; i < set->count; i++)
    any = put_mode(&set->profiles[i], &search, prefix, out) || any;
  cs_search_end(&search);
  if (!any) cs_print(out, "%sno frame and no method known to be inlined matches\n", prefix);
  cs_print(out, "%s%s\n", prefix,
           set->profiles[0].facts.inlined.wanted
               ? "not seen: what is inlined into precompiled code, or has no statement of its own "
                 "left"
               : "not seen: where a method was inlined, its time is its caller's (record with "
                 "--inlined)");
}
