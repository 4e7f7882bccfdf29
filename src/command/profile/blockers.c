// SPDX-License-Identifier: MIT
// The agent says by the name of a sample's leaf that its thread held up a suspension, and why
// (docs/wire-format.md, "Events"). Signal-safe: no.
#include "profile/blockers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/prefix.h"
#include "base/print.h"
#include "profile/functions.h"

#define NONE UINT32_MAX

static const struct {
  const char *name, *text;  // in a leaf; in a sentence
} reasons[CS_BLOCKER_WHYS] = {{"", "running"},
                              {"not scheduled", "not scheduled"},
                              {"page fault", "in page faults"},
                              {"system call", "in system calls"}};

// "[holds up GC: not scheduled]"; without a reason the thread ran.
static enum cs_blocker_why why_of(const char *name, size_t len) {
  for (unsigned i = CS_BLOCKER_RUNS + 1; i < CS_BLOCKER_WHYS; i++) {
    size_t reason = strlen(reasons[i].name);
    if (len > reason + 1 && memcmp(name + len - 1 - reason, reasons[i].name, reason) == 0)
      return (enum cs_blocker_why)i;
  }
  return CS_BLOCKER_RUNS;
}

// The frame where the thread was whose sample has this leaf. NONE: it has no frames.
static uint32_t place_of(const struct cs_profile *p, uint32_t leaf) {
  const struct cs_node *nodes = p->tree.nodes;
  uint32_t innermost = NONE;
  for (uint32_t node = nodes[leaf].parent; nodes[node].parent != 0; node = nodes[node].parent) {
    if (innermost == NONE) innermost = nodes[node].frame;
    if (p->frames[nodes[node].frame].kind == CS_KIND_USER) return nodes[node].frame;
  }
  return innermost;
}

static int by_time(const void *a, const void *b) {
  const struct cs_blocker *x = a, *y = b;
  return CS_ORDER(y->ns, x->ns) ?: CS_ORDER(x->frame, y->frame);
}

// Joins the lines of each method. `lines` has what belongs to each frame.
static void by_method(struct cs_blockers *h, const struct cs_profile *p,
                      const struct cs_blocker *lines) {
  struct cs_functions functions;
  cs_functions_make(&functions, p, false);
  h->at = cs_allocate((functions.count + 1) * sizeof *h->at);
  for (uint32_t i = 0; i < p->frame_count; i++) {
    struct cs_blocker *method = &h->at[functions.of[i]];
    if (lines[i].ns == 0) continue;
    if (method->ns == 0 || lines[i].ns > lines[method->frame].ns) method->frame = i;
    method->ns += lines[i].ns;
    for (unsigned k = 0; k < CS_BLOCKER_WHYS; k++) method->why[k] += lines[i].why[k];
  }
  cs_sort(h->at, functions.count, sizeof *h->at, by_time);
  while (h->count < functions.count && h->at[h->count].ns > 0) h->count++;
  cs_functions_free(&functions);
}

void cs_blockers_find(struct cs_blockers *h, const struct cs_profile *p) {
  struct cs_blocker *lines = cs_allocate((p->frame_count + 1) * sizeof *lines);
  *h = (struct cs_blockers){0};
  bool locks = p->facts.mode == CS_WIRE_MODE_HOLDERS;
  for (uint32_t i = 1; i < p->tree.count && (locks || p->facts.mode == CS_WIRE_MODE_GC); i++) {
    const struct cs_node *node = &p->tree.nodes[i];
    if (node->parent == 0 || p->frames[node->frame].kind != CS_KIND_TYPE) continue;
    size_t len;
    const char *name = cs_strings_get(&p->strings, p->frames[node->frame].name, &len);
    bool held = cs_has_prefix_in(name, len, locks ? "[holds " : "[holds up ");
    if (held || cs_has_prefix_in(name, len, "[way to the safe point:")) h->way_ns += node->weight;
    if (!held) continue;
    h->held_ns += node->weight;
    uint32_t frame = place_of(p, i);
    if (frame == NONE) continue;
    lines[frame].ns += node->weight;
    lines[frame].why[why_of(name, len)] += node->weight;
  }
  by_method(h, p, lines);
  free(lines);
}

void cs_blockers_free(struct cs_blockers *h) {
  free(h->at);
}

void cs_blocker_put_place(const struct cs_profile *p, const struct cs_blocker *h, unsigned most,
                          FILE *out) {
  size_t len;
  const struct cs_profile_frame *frame = &p->frames[h->frame];
  const char *name = cs_profile_method(p, h->frame, &len);
  const char *file = cs_profile_file(p, h->frame, NULL);
  size_t cut = len > most ? len - most : 0;
  cs_print(out, "%s%.*s", cut > 0 ? "..." : "", (int)(len - cut), name + cut);
  if (file != NULL && frame->line > 0)
    cs_print(out, " (%.60s:%" PRIu32 ")", cs_file_of_source(file), frame->line);
}

void cs_blocker_put_time(const struct cs_blocker *h, FILE *out) {
  cs_put_amount(out, CS_UNIT_NS, h->ns);
  for (unsigned i = CS_BLOCKER_RUNS + 1; i < CS_BLOCKER_WHYS; i++) {
    if (h->why[i] < h->ns / 10) continue;
    cs_print(out, ", ");
    cs_put_amount(out, CS_UNIT_NS, h->why[i]);
    cs_print(out, " of that %s", reasons[i].text);
  }
}

void cs_holders_put(const struct cs_profile *p, unsigned most_name, FILE *out) {
  enum { MOST = 3, LEAST_PART = 20 };
  struct cs_blockers holders;
  cs_blockers_find(&holders, p);
  cs_put_amount(out, CS_UNIT_NS, p->facts.weight);
  for (size_t i = 0; i < holders.count && i < MOST; i++) {
    if (holders.at[i].ns < p->facts.weight / LEAST_PART) break;
    cs_print(out, i == 0 ? ", held by " : ", ");
    cs_blocker_put_place(p, &holders.at[i], most_name, out);
    cs_print(out, " %.0f %%", 100 * (double)holders.at[i].ns / (double)p->facts.weight);
  }
  cs_blockers_free(&holders);
}
