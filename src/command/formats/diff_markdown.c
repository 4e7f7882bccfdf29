// SPDX-License-Identifier: MIT
// A comparison as a short page of Markdown: what grew and what shrank in each mode, with intervals.
// One thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "formats/markdown.h"
#include "formats/writers.h"
#include "profile/change.h"
#include "profile/functions.h"

#define NONE UINT32_MAX

// Of own code what is spent there and in what it calls outside of own code; of the rest its own.
struct row {
  uint32_t frame;
  bool user;
  double part[2], squares[2];  // before, after
  double change;
};

struct section {
  const struct cs_diff *d;
  struct row *rows;  // in order of their change
  size_t count;
};

struct page {
  struct section *sections;
  size_t count;
};

static void add(struct row *row, int when, double weight, double squares) {
  row->part[when] += weight;
  row->squares[when] += squares;
}

static struct row *add_up(const struct cs_diff *d, size_t *count) {
  const struct cs_profile *p = &d->profile;
  struct cs_functions f;
  cs_functions_make(&f, p, false);
  struct row *rows = cs_allocate((f.count + 1) * sizeof *rows);
  uint32_t *own = cs_allocate(p->tree.count * sizeof *own);
  for (uint32_t i = 0; i < f.count; i++) {
    rows[i].frame = f.frame[i];
    rows[i].user = p->frames[f.frame[i]].kind == CS_KIND_USER;
  }
  own[0] = NONE;
  for (size_t i = 1; i < p->tree.count; i++) {
    const struct cs_node *node = &p->tree.nodes[i];
    own[i] = own[node->parent];
    if (node->parent == 0) continue;
    struct row *row = &rows[f.of[node->frame]];
    if (row->user) own[i] = f.of[node->frame];
    struct row *where[2] = {own[i] != NONE ? &rows[own[i]] : NULL, row->user ? NULL : row};
    for (int k = 0; k < 2; k++) {
      if (where[k] == NULL) continue;
      add(where[k], 0, (double)d->weight[i], d->squares[i]);
      add(where[k], 1, (double)node->weight, node->squares);
    }
  }
  *count = f.count;
  free(own);
  cs_functions_free(&f);
  return rows;
}

static void compare(const struct cs_diff *d, struct row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct cs_comparison c =
        cs_diff_compare(d, CS_CHANGE_DIFFERENCE, rows[i].part, rows[i].squares);
    rows[i].change = cs_change_measured(&c);
  }
}

static int by_change(const void *a, const void *b) {
  const struct row *x = a, *y = b;
  return CS_ORDER(y->change, x->change) ?: CS_ORDER(x->frame, y->frame);
}

// What the numbers of a table are: points of the whole, or an amount, by second or as recorded.
struct scale {
  double size;
  const char *name, *per;
};

static struct scale scale_of(const struct cs_diff *d) {
  struct scale s = {0.01, "points", ""};
  const struct cs_facts *f = &d->profile.facts;
  if (d->normalize == CS_NORMALIZE_TOTAL) return s;
  bool rate = d->normalize == CS_NORMALIZE_RATE;
  double most = (double)(f->weight > d->before->weight ? f->weight : d->before->weight);
  if (rate && f->duration_ns > 0) most /= (double)f->duration_ns / 1e9;
  s.name = cs_markdown_unit(cs_mode_of(f)->unit, most, &s.size);
  s.per = rate ? "/s" : "";
  return s;
}

// A recording without a sample of the mode has a whole of 0.
static double part_of(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

static void put_row(const struct cs_diff *d, const struct row *row, const struct cs_detail *detail,
                    FILE *out) {
  struct scale s = scale_of(d);
  struct cs_comparison c = cs_diff_compare(d, CS_CHANGE_DIFFERENCE, row->part, row->squares);
  double low, high;
  size_t len;
  const char *name = cs_profile_method(&d->profile, row->frame, &len);
  cs_change_interval(&c, &low, &high);
  cs_print(out, "%+8.2f  %+8.2f to %+8.2f%s %8.2f %8.2f  %s  ", row->change / s.size, low / s.size,
           high / s.size, low > 0 || high < 0 ? " " : "?",
           part_of(row->part[0], c.before.whole) / s.size,
           part_of(row->part[1], c.after.whole) / s.size, row->user ? "here" : "self");
  cs_markdown_name(out, name, len, detail->name);
  cs_print(out, "\n");
}

struct table {
  const struct section *section;
  const struct cs_detail *detail;
  bool grew;
  size_t shown, more;
};

// kind: 1: own code, 0: the rest, -1: both. The rows are in order of their change.
static void put_rows(struct table *t, int kind, size_t most, FILE *out) {
  const struct cs_diff *d = t->section->d;
  struct scale s = scale_of(d);
  size_t mine = 0, count = t->section->count;
  for (size_t i = 0; i < count; i++) {
    const struct row *row = &t->section->rows[t->grew ? i : count - 1 - i];
    if (kind >= 0 && row->user != (kind == 1)) continue;
    // Less than what the table can say is nothing.
    if ((t->grew ? row->change : -row->change) / s.size < 0.005) break;
    if (mine++ >= most) {
      t->more++;
      continue;
    }
    if (t->shown++ == 0)
      cs_print(out, "\n%s by %s%s, " CS_CHANGE_INTERVAL " interval, before, after\n",
               t->grew ? "grew" : "shrank", s.name, s.per);
    put_row(d, row, t->detail, out);
  }
}

// Own code comes first, unless there is room for the largest changes only.
static void put_table(const struct section *s, bool grew, const struct cs_detail *detail,
                      FILE *out) {
  struct table t = {.section = s, .detail = detail, .grew = grew};
  if (detail->others == 0) {
    put_rows(&t, -1, detail->methods, out);
  } else {
    put_rows(&t, 1, detail->methods, out);
    put_rows(&t, 0, detail->others, out);
  }
  if (t.shown == 0 && t.more == 0) cs_print(out, "\n%s: nothing\n", grew ? "grew" : "shrank");
  if (t.more > 0) cs_print(out, "  (%zu more that %s)\n", t.more, grew ? "grew" : "shrank");
}

static void put_program(const struct cs_facts *f, const struct cs_detail *detail, FILE *out) {
  cs_print(out, " in %.1f s  ", (double)f->duration_ns / 1e9);
  cs_markdown_name(out, f->program, strlen(f->program), detail->name);
}

// The program is the same for all modes: a brief page names it once.
static void put_facts(const char *when, const struct cs_facts *f, const struct cs_details *details,
                      FILE *out) {
  const struct cs_mode *mode = cs_mode_of(f);
  cs_print(out, "%s  ", when);
  cs_put_samples(out, f);
  if (mode->weight != NULL) {
    cs_print(out, ", ");
    cs_put_whole(out, mode, f->weight);
  }
  if (!details->page->brief) put_program(f, details->page, out);
  cs_print(out, "\n");
}

static void put_mode(const struct section *s, const struct cs_details *details,
                     const struct cs_detail *detail, FILE *out) {
  const struct cs_diff *d = s->d;
  const struct cs_mode *mode = cs_mode_of(&d->profile.facts);
  cs_print(out, "\n## %s: ", mode->token);
  if (d->normalize == CS_NORMALIZE_TOTAL)
    cs_print(out, "percent of each recording's %s\n\n", mode->whole);
  else
    cs_print(out, "%s%s\n\n", mode->whole,
             d->normalize == CS_NORMALIZE_RATE ? " in each second" : ", as recorded");
  cs_markdown_code(out);
  put_facts("before", d->before, details, out);
  cs_put_left_out(out, cs_mode_of(d->before), d->idle_weight[0]);
  put_facts("after ", &d->profile.facts, details, out);
  cs_put_left_out(out, cs_mode_of(&d->profile.facts), d->idle_weight[1]);
  cs_diff_put_reasons(d, "", out);
  put_table(s, true, detail, out);
  put_table(s, false, detail, out);
  cs_markdown_code_end(out);
}

static void put_page(const void *what, const struct cs_details *details, FILE *out) {
  const struct page *page = what;
  const struct cs_diff *d = page->sections[0].d;
  cs_print(out, "# What changed\n");
  if (details->page->brief) {
    cs_print(out, "\n");
    cs_markdown_code(out);
    cs_print(out, "before");
    put_program(d->before, details->page, out);
    cs_print(out, "\nafter ");
    put_program(&d->profile.facts, details->page, out);
    cs_print(out, "\n");
    cs_markdown_code_end(out);
  } else {
    cs_print(out,
             "\nhere: in a method of one's own, and in what it calls that is not own code "
             "(framework, runtime,\nsystem); self: in the function itself. The " CS_CHANGE_INTERVAL
             " interval is by the counts of samples: it covers the\nchance of sampling, not that "
             "runs differ. \"?\": not significant, the interval contains 0.\n");
  }
  for (size_t i = 0; i < page->count; i++)
    put_mode(&page->sections[i], details, details->mode[i], out);
}

bool cs_write_diff_markdown(const struct cs_diff *diffs, size_t count, FILE *out) {
  struct section *sections = cs_allocate(count * sizeof *sections);
  for (size_t i = 0; i < count; i++) {
    struct section *s = &sections[i];
    s->d = &diffs[i];
    s->rows = add_up(s->d, &s->count);
    compare(s->d, s->rows, s->count);
    cs_sort(s->rows, s->count, sizeof *s->rows, by_change);
  }
  bool written = cs_markdown_fit(put_page, &(struct page){sections, count}, count, out);
  for (size_t i = 0; i < count; i++) free(sections[i].rows);
  free(sections);
  return written;
}
