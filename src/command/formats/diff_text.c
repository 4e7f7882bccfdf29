// SPDX-License-Identifier: MIT
// A comparison as text: a table of what grew and what shrank, and stacks with both counts. One
// thread. Signal-safe: no.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "formats/writers.h"
#include "profile/diff.h"

struct row {
  uint32_t frame;
  double self[2], total[2];  // before (made comparable) and after, in the mode's unit
};

static struct row *add_up(const struct cs_diff *d, double whole[2]) {
  const struct cs_tree *tree = &d->profile.tree;
  struct row *rows = cs_allocate((d->profile.frame_count + 1) * sizeof *rows);
  double(*total)[2] = cs_allocate(tree->count * sizeof *total);
  for (uint32_t i = 0; i < d->profile.frame_count; i++) rows[i].frame = i;
  for (uint32_t i = (uint32_t)tree->count - 1; i > 0; i--) {
    const struct cs_node *node = &tree->nodes[i];
    double own[2] = {(double)d->weight[i] * d->weight_scale, (double)node->weight};
    bool outermost = node->parent != 0 && !cs_tree_is_nested(tree, i);
    for (int when = 0; when < 2; when++) {
      total[i][when] += own[when];
      total[node->parent][when] += total[i][when];
      if (node->parent != 0) rows[node->frame].self[when] += own[when];
      if (outermost) rows[node->frame].total[when] += total[i][when];
    }
  }
  whole[0] = total[0][0];
  whole[1] = total[0][1];
  free(total);
  return rows;
}

static double grown(const struct row *row) {
  return row->self[1] - row->self[0];
}

static int by_growth(const void *a, const void *b) {
  const struct row *x = a, *y = b;
  double p = x->total[1] - x->total[0], q = y->total[1] - y->total[0];
  return CS_ORDER(grown(y), grown(x)) ?: CS_ORDER(q, p) ?: CS_ORDER(x->frame, y->frame);
}

// What one of the table's numbers is, in the mode's unit, and in words.
static double unit_of(const struct cs_diff *d, const double whole[2], const char **words) {
  static const char *const absolute[] = {"milliseconds", "KB", "events"};
  static const double size[] = {1e6, 1e3, 1};
  enum cs_unit unit = cs_mode_of(&d->profile.facts)->unit;
  double most = whole[0] > whole[1] ? whole[0] : whole[1];
  double seconds = (double)d->profile.facts.duration_ns / 1e9;
  *words = absolute[unit];
  if (d->normalize == CS_NORMALIZE_TOTAL) return most > 0 ? most / 100 : 1;
  if (d->normalize == CS_NORMALIZE_RATE) return size[unit] * (seconds > 0 ? seconds : 1);
  return size[unit];
}

static void put_row(const struct cs_diff *d, const struct row *row, double unit, FILE *out) {
  size_t len;
  const char *name = cs_strings_get(&d->profile.strings, d->profile.frames[row->frame].name, &len);
  cs_print(out, "%+9.2f %9.2f %9.2f %+9.2f %9.2f %9.2f  ", grown(row) / unit, row->self[0] / unit,
           row->self[1] / unit, (row->total[1] - row->total[0]) / unit, row->total[0] / unit,
           row->total[1] / unit);
  cs_print(out, "%.*s", (int)len, name);
  cs_print(out, "\n");
}

static void put_table(const struct cs_diff *d, const struct row *rows, const double whole[2],
                      size_t limit, bool grew, FILE *out) {
  const char *words;
  double unit = unit_of(d, whole, &words);
  size_t count = d->profile.frame_count, shown = 0;
  cs_print(out, "\n%s\n", grew ? "What grew" : "What shrank");
  for (size_t i = 0; i < count && shown < limit; i++) {
    const struct row *row = &rows[grew ? i : count - 1 - i];
    // Less than what the table can say is nothing.
    if ((grew ? grown(row) : -grown(row)) / unit < 0.005) break;
    if (shown++ == 0) {
      cs_print(out, "  self +-    before     after  total +-    before     after  method\n");
    }
    put_row(d, row, unit, out);
  }
  if (shown == 0) cs_print(out, "  nothing\n");
}

static void put_facts(const char *when, const struct cs_facts *f, FILE *out) {
  cs_print(out, "%s: ", when);
  cs_print(out, "%s", f->program);
  const struct cs_mode *mode = cs_mode_of(f);
  cs_print(out, "\n        ");
  cs_put_samples(out, f);
  if (mode->weight != NULL) {
    cs_print(out, ", ");
    cs_put_whole(out, mode, f->weight);
  }
  cs_print(out, " in %.1f s, %s mode", (double)f->duration_ns / 1e9, mode->token);
  if (mode->timed && f->hz > 0) cs_print(out, " at %" PRIu32 " Hz", f->hz);
  cs_print(out, "%s%s\n", f->runtime[0] != '\0' ? ", .NET " : "", f->runtime);
}

bool cs_write_diff_text(const struct cs_diff *d, size_t limit, FILE *out) {
  double whole[2];
  struct row *rows = add_up(d, whole);
  cs_sort(rows, d->profile.frame_count, sizeof *rows, by_growth);
  put_facts("before", d->before, out);
  cs_put_left_out(out, cs_mode_of(d->before), d->idle_weight[0]);
  put_facts("after ", &d->profile.facts, out);
  cs_put_left_out(out, cs_mode_of(&d->profile.facts), d->idle_weight[1]);
  cs_diff_put_reasons(d, "", out);
  const char *words;
  (void)unit_of(d, whole, &words);
  if (d->normalize == CS_NORMALIZE_TOTAL)
    cs_print(out, "numbers are percent of each recording's %s\n",
             cs_mode_of(&d->profile.facts)->whole);
  else
    cs_print(out, "numbers are %s%s\n", words,
             d->normalize == CS_NORMALIZE_RATE ? " in each second" : ", as recorded");
  put_table(d, rows, whole, limit, true, out);
  put_table(d, rows, whole, limit, false, out);
  free(rows);
  return fflush(out) == 0 && !ferror(out);
}

bool cs_write_diff_collapsed(const struct cs_diff *d, FILE *out) {
  const struct cs_profile *p = &d->profile;
  uint32_t *path = NULL;
  size_t capacity = 0;
  for (uint32_t i = 1; i < p->tree.count; i++) {
    uint64_t after = p->tree.nodes[i].weight;
    if (p->tree.nodes[i].parent == 0 || (after == 0 && d->weight[i] == 0)) continue;
    cs_put_collapsed_stack(p, &p->tree, i, &path, &capacity, out);
    cs_print(out, " %" PRIu64 " %" PRIu64 "\n", d->weight[i], after);
  }
  free(path);
  return fflush(out) == 0 && !ferror(out);
}
