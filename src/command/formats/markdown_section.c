// SPDX-License-Identifier: MIT
// One mode of a recording, added up for a Markdown page. Own code comes first: what a method of
// one's own spends in libraries and in the runtime is counted for it, since that is where it can be
// changed. One thread. Signal-safe: no.
#include "formats/markdown_section.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/path.h"
#include "base/print.h"
#include "profile/waits.h"

enum cs_profile_kind cs_section_kind(const struct cs_markdown_section *s, uint32_t function) {
  return s->p->frames[s->functions.frame[function]].kind;
}

// By frame: what it has spent itself and in what is not own code.
static uint64_t *spread(struct cs_markdown_section *s, const bool *idle) {
  const struct cs_tree *tree = &s->p->tree;
  uint64_t *here = cs_allocate((s->p->frame_count + 1) * sizeof *here);
  uint32_t *own = cs_allocate(tree->count * sizeof *own);  // the innermost frame of own code
  own[0] = CS_NO_ROW;
  for (size_t i = 1; i < tree->count; i++) {
    const struct cs_node *node = &tree->nodes[i];
    bool user = node->parent != 0 && s->p->frames[node->frame].kind == CS_KIND_USER;
    own[i] = user ? node->frame : own[node->parent];
    bool counts = idle == NULL || !idle[i];
    if (!counts)
      s->idle += node->weight;
    else if (own[i] != CS_NO_ROW)
      here[own[i]] += node->weight;
    else
      s->elsewhere += node->weight;
  }
  s->elsewhere -= s->p->facts.unwalked_weight;  // which has a line of its own
  free(own);
  return here;
}

static void add_totals(struct cs_markdown_section *s) {
  const struct cs_tree *tree = &s->tree;
  uint64_t *total = cs_allocate(tree->count * sizeof *total);
  for (uint32_t i = (uint32_t)tree->count; i-- > 1;) {
    const struct cs_node *node = &tree->nodes[i];
    total[i] += node->weight;
    total[node->parent] += total[i];
    if (node->parent == 0) continue;
    s->rows[node->frame].self += node->weight;
    if (!cs_tree_is_nested(tree, i)) s->rows[node->frame].total += total[i];
  }
  free(total);
}

static void find_stacks(struct cs_markdown_section *s) {
  const struct cs_node *nodes = s->tree.nodes;
  for (uint32_t i = 1; i < s->tree.count; i++) {
    if (nodes[i].weight == 0) continue;
    size_t at = s->stack_count < CS_MARKDOWN_STACKS ? s->stack_count : CS_MARKDOWN_STACKS;
    s->stack_count++;
    for (; at > 0 && nodes[s->stacks[at - 1]].weight < nodes[i].weight; at--)
      if (at < CS_MARKDOWN_STACKS) s->stacks[at] = s->stacks[at - 1];
    if (at < CS_MARKDOWN_STACKS) s->stacks[at] = i;
  }
}

static int by_here(const void *a, const void *b) {
  const struct cs_markdown_row *x = a, *y = b;
  return CS_ORDER(y->here, x->here) ?: CS_ORDER(y->total, x->total) ?:
         CS_ORDER(x->function, y->function);
}

static int by_self(const void *a, const void *b) {
  const struct cs_markdown_row *x = a, *y = b;
  return CS_ORDER(y->self, x->self) ?: CS_ORDER(x->function, y->function);
}

// Puts the rows of own code first, by `here`, and after them the others by `self`.
static void sort(struct cs_markdown_section *s) {
  struct cs_markdown_row *rows = cs_allocate((s->functions.count + 1) * sizeof *rows);
  for (int user = 1; user >= 0; user--) {
    size_t begin = s->own, count = 0;
    for (uint32_t i = 0; i < s->functions.count; i++) {
      const struct cs_markdown_row *row = &s->rows[i];
      bool own = cs_section_kind(s, i) == CS_KIND_USER;
      if (own == (user == 1) && (own ? row->total : row->self) > 0) rows[begin + count++] = *row;
    }
    cs_sort(rows + begin, count, sizeof *rows, user ? by_here : by_self);
    *(user ? &s->own : &s->others) = count;
  }
  free(s->rows);
  s->rows = rows;
}

// ---- What it was for ----

// A type, what is waited for, which thread held a lock, why there was a pause. What stacks without
// own code end in says at least what they do.
static bool says_cause(const struct cs_markdown_section *s, uint32_t function, bool own) {
  return !own || cs_section_kind(s, function) == CS_KIND_TYPE;
}

// Returns the row of the innermost own code of each node, CS_MARKDOWN_CAUSES if it is in
// stacks without, or CS_NO_ROW if it has no place among the first rows.
static uint32_t *rows_of_nodes(const struct cs_markdown_section *s) {
  uint32_t *row_of = cs_allocate((s->functions.count + 1) * sizeof *row_of);
  uint32_t *row = cs_allocate(s->tree.count * sizeof *row);
  for (uint32_t i = 0; i < s->functions.count; i++) row_of[i] = CS_NO_ROW;
  for (uint32_t i = 0; i < s->own && i < CS_MARKDOWN_CAUSES; i++) row_of[s->rows[i].function] = i;
  row[0] = CS_MARKDOWN_CAUSES;
  for (size_t i = 1; i < s->tree.count; i++) {
    const struct cs_node *node = &s->tree.nodes[i];
    bool own = node->parent != 0 && cs_section_kind(s, node->frame) == CS_KIND_USER;
    row[i] = own ? row_of[node->frame] : row[node->parent];
  }
  free(row_of);
  return row;
}

static void find_causes(struct cs_markdown_section *s) {
  size_t rows = CS_MARKDOWN_CAUSES + 1, functions = s->functions.count;
  uint64_t *sums = cs_allocate((rows * functions + 1) * sizeof *sums);
  uint32_t *row = rows_of_nodes(s);
  for (size_t i = 1; i < s->tree.count; i++) {
    const struct cs_node *node = &s->tree.nodes[i];
    if (node->parent == 0 || row[i] == CS_NO_ROW || node->weight == 0) continue;
    sums[row[i] * functions + node->frame] += node->weight;
  }
  for (size_t r = 0; r < rows; r++) {
    bool own = r < CS_MARKDOWN_CAUSES;
    uint64_t whole = !own ? s->elsewhere : r < s->own ? s->rows[r].here : 0;
    s->causes[r] = CS_NO_ROW;
    for (uint32_t f = 0; f < functions && whole > 0; f++)
      if (2 * sums[r * functions + f] >= whole && says_cause(s, f, own)) s->causes[r] = f;
  }
  free(row);
  free(sums);
}

// ---- All of it ----

void cs_section_add_up(struct cs_markdown_section *s, const struct cs_profile *p) {
  *s = (struct cs_markdown_section){.p = p};
  bool *idle = cs_left_out_nodes(p);
  cs_functions_make(&s->functions, p, false);
  cs_tree_init(&s->tree);
  uint32_t *node = cs_tree_join(&s->tree, &p->tree, NULL, s->functions.of);
  for (size_t i = 1; i < p->tree.count; i++)
    if (idle == NULL || !idle[i]) s->tree.nodes[node[i]].weight += p->tree.nodes[i].weight;
  free(node);
  s->rows = cs_allocate((s->functions.count + 1) * sizeof *s->rows);
  for (uint32_t i = 0; i < s->functions.count; i++)
    s->rows[i] = (struct cs_markdown_row){i, .line = CS_NO_ROW};
  add_totals(s);
  uint64_t *here = spread(s, idle);
  s->error = cs_points_off(p, idle);
  free(idle);
  for (uint32_t i = 0; i < p->frame_count; i++) {
    struct cs_markdown_row *row = &s->rows[s->functions.of[i]];
    row->here += here[i];
    if (p->frames[i].line > 0 && (row->line == CS_NO_ROW || here[i] > here[row->line]))
      row->line = i;
  }
  free(here);
  s->shown = p->facts.weight > s->idle ? p->facts.weight - s->idle : 0;
  sort(s);
  find_stacks(s);
  find_causes(s);
  enum cs_unit unit = cs_mode_of(&p->facts)->unit;
  s->unit_name = cs_markdown_unit(unit, (double)s->shown, &s->unit);
  s->decimals = unit == CS_UNIT_COUNT ? 0 : 2;
}

void cs_section_free(struct cs_markdown_section *s) {
  cs_functions_free(&s->functions);
  cs_tree_free(&s->tree);
  free(s->rows);
}

double cs_section_share(const struct cs_markdown_section *s, uint64_t weight) {
  return s->shown > 0 ? 100.0 * (double)weight / (double)s->shown : 0;
}

void cs_section_put_function(const struct cs_markdown_section *s, uint32_t function, unsigned most,
                             FILE *out) {
  size_t len;
  const char *name = cs_profile_method(s->p, s->functions.frame[function], &len);
  cs_markdown_name(out, name, len, most);
}

void cs_section_put_place(const struct cs_markdown_section *s, const struct cs_markdown_row *row,
                          FILE *out) {
  if (row->line == CS_NO_ROW) return;
  const char *file = cs_profile_file(s->p, row->line, NULL);
  if (file == NULL) return;
  cs_print(out, " (%.60s:%" PRIu32 ")", cs_file_of_source(file), s->p->frames[row->line].line);
}

// ---- Stacks ----

// Returns whether the leaf of a wait says all that matters: which of the program's methods waits,
// not which methods of .NET report it.
static bool leaf_says_all(const struct cs_markdown_section *s, const uint32_t *path, size_t depth) {
  enum cs_wire_mode mode = s->p->facts.mode;
  if (depth == 0 || (mode != CS_WIRE_MODE_LOCK && mode != CS_WIRE_MODE_WAIT)) return false;
  bool own = false;
  for (size_t i = 0; i < depth && !own; i++) own = cs_section_kind(s, path[i]) == CS_KIND_USER;
  return own && cs_section_kind(s, path[depth - 1]) == CS_KIND_TYPE;
}

// Own code and the two innermost frames; what is between them is "...". Of a stack that is longer
// than the line, the outer part goes.
void cs_section_put_stack(const struct cs_markdown_section *s, uint32_t node,
                          const struct cs_detail *d, FILE *out) {
  uint32_t *path = NULL;
  size_t capacity = 0, depth = cs_tree_path(&s->tree, node, &path, &capacity), first = depth;
  unsigned name = d->stack / 4;
  size_t inner = leaf_says_all(s, path, depth) ? 1 : 2;
  for (size_t used = 0; first > 0; first--) {
    uint32_t function = path[first - 1];
    bool shown = first - 1 + inner >= depth || cs_section_kind(s, function) == CS_KIND_USER;
    size_t len;
    (void)cs_profile_method(s->p, s->functions.frame[function], &len);
    if (shown) used += (len < name ? len : name) + 3;
    if (used > d->stack) break;
  }
  bool gap = first > 0, any = false;
  for (size_t i = first; i < depth; i++) {
    bool shown = i + inner >= depth || cs_section_kind(s, path[i]) == CS_KIND_USER;
    if (shown) {
      cs_print(out, "%s%s", gap ? (any ? " > ... > " : "... > ") : any ? " > " : "", "");
      cs_section_put_function(s, path[i], name, out);
      any = true;
    }
    gap = !shown;
  }
  if (depth == 0) cs_print(out, "[no frames]");
  free(path);
}
