// SPDX-License-Identifier: MIT
// A recording as a short page of Markdown: what was recorded, where each mode's time, bytes or
// events go, and what is odd. Own code comes first: what a method of one's own spends in libraries
// and in the runtime is counted for it, since that is where it can be changed. One thread.
// Signal-safe: no.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/print.h"
#include "formats/markdown.h"
#include "formats/writers.h"
#include "profile/change.h"
#include "profile/functions.h"
#include "profile/holdups.h"
#include "profile/pool.h"
#include "profile/waits.h"

#define NONE UINT32_MAX
enum { MOST_STACKS = 5 };

struct row {
  uint32_t function;
  uint64_t here, self, total;  // `here`: of its own, and in what it calls that is not own code
  uint32_t line;               // the frame (a line) of most of `here`; NONE: its lines are unknown
};

struct section {
  const struct cs_profile *p;
  struct cs_functions functions;
  struct cs_tree tree;    // all threads', by function
  struct row *rows;       // by function; once added up, own code by `here`, then the rest by `self`
  size_t own, others;     // how many rows there are of each
  uint64_t elsewhere;     // of stacks without own code
  const char *unit_name;  // of the tables
  double unit;
  int decimals;
  uint32_t stacks[MOST_STACKS];  // the heaviest leaves of the tree, heaviest first
  size_t stack_count;            // of all
  double squares;                // of the weights of the samples shown, added up
  double error;                  // of a share, in points
  uint64_t idle, shown;          // of threads that wait for work, which is left out; and the rest
};

struct page {
  const struct cs_profile_set *set;
  struct section *sections;  // by profile
};

static enum cs_profile_kind kind_of(const struct section *s, uint32_t function) {
  return s->p->frames[s->functions.frame[function]].kind;
}

// By frame: what it has spent itself and in what is not own code.
static uint64_t *spread(struct section *s, const bool *idle) {
  const struct cs_tree *tree = &s->p->tree;
  uint64_t *here = cs_allocate((s->p->frame_count + 1) * sizeof *here);
  uint32_t *own = cs_allocate(tree->count * sizeof *own);  // the innermost frame of own code
  own[0] = NONE;
  for (size_t i = 1; i < tree->count; i++) {
    const struct cs_node *node = &tree->nodes[i];
    bool user = node->parent != 0 && s->p->frames[node->frame].kind == CS_KIND_USER;
    own[i] = user ? node->frame : own[node->parent];
    bool counts = idle == NULL || !idle[i];
    if (counts) s->squares += node->squares;
    if (!counts)
      s->idle += node->weight;
    else if (own[i] != NONE)
      here[own[i]] += node->weight;
    else
      s->elsewhere += node->weight;
  }
  free(own);
  return here;
}

static void add_totals(struct section *s) {
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

static void find_stacks(struct section *s) {
  const struct cs_node *nodes = s->tree.nodes;
  for (uint32_t i = 1; i < s->tree.count; i++) {
    if (nodes[i].weight == 0) continue;
    size_t at = s->stack_count < MOST_STACKS ? s->stack_count : MOST_STACKS;
    s->stack_count++;
    for (; at > 0 && nodes[s->stacks[at - 1]].weight < nodes[i].weight; at--)
      if (at < MOST_STACKS) s->stacks[at] = s->stacks[at - 1];
    if (at < MOST_STACKS) s->stacks[at] = i;
  }
}

static int by_here(const void *a, const void *b) {
  const struct row *x = a, *y = b;
  if (x->here != y->here) return x->here < y->here ? 1 : -1;
  if (x->total != y->total) return x->total < y->total ? 1 : -1;
  return x->function < y->function ? -1 : x->function > y->function;
}

static int by_self(const void *a, const void *b) {
  const struct row *x = a, *y = b;
  if (x->self != y->self) return x->self < y->self ? 1 : -1;
  return x->function < y->function ? -1 : x->function > y->function;
}

// Puts the rows of own code first, by `here`, and after them the others by `self`.
static void sort(struct section *s) {
  struct row *rows = cs_allocate((s->functions.count + 1) * sizeof *rows);
  for (int user = 1; user >= 0; user--) {
    size_t begin = s->own, count = 0;
    for (uint32_t i = 0; i < s->functions.count; i++) {
      const struct row *row = &s->rows[i];
      bool own = kind_of(s, i) == CS_KIND_USER;
      if (own == (user == 1) && (own ? row->total : row->self) > 0) rows[begin + count++] = *row;
    }
    cs_sort(rows + begin, count, sizeof *rows, user ? by_here : by_self);
    *(user ? &s->own : &s->others) = count;
  }
  free(s->rows);
  s->rows = rows;
}

static void add_up(struct section *s, const struct cs_profile *p) {
  *s = (struct section){.p = p};
  bool *idle = cs_left_out_nodes(p);
  cs_functions_make(&s->functions, p, false);
  cs_tree_init(&s->tree);
  uint32_t *node = cs_tree_join(&s->tree, &p->tree, NULL, s->functions.of);
  for (size_t i = 1; i < p->tree.count; i++)
    if (idle == NULL || !idle[i]) s->tree.nodes[node[i]].weight += p->tree.nodes[i].weight;
  free(node);
  s->rows = cs_allocate((s->functions.count + 1) * sizeof *s->rows);
  for (uint32_t i = 0; i < s->functions.count; i++) s->rows[i] = (struct row){i, .line = NONE};
  add_totals(s);
  uint64_t *here = spread(s, idle);
  free(idle);
  for (uint32_t i = 0; i < p->frame_count; i++) {
    struct row *row = &s->rows[s->functions.of[i]];
    row->here += here[i];
    if (p->frames[i].line > 0 && (row->line == NONE || here[i] > here[row->line])) row->line = i;
  }
  free(here);
  s->shown = p->facts.weight > s->idle ? p->facts.weight - s->idle : 0;
  sort(s);
  find_stacks(s);
  s->error = 100 * cs_share_error((double)s->shown, s->squares);
  enum cs_unit unit = cs_mode_of(&p->facts)->unit;
  s->unit_name = cs_markdown_unit(unit, (double)s->shown, &s->unit);
  s->decimals = unit == CS_UNIT_COUNT ? 0 : 2;
}

static void section_free(struct section *s) {
  cs_functions_free(&s->functions);
  cs_tree_free(&s->tree);
  free(s->rows);
}

static double share(const struct section *s, uint64_t weight) {
  return s->shown > 0 ? 100.0 * (double)weight / (double)s->shown : 0;
}

static void put_function(const struct section *s, uint32_t function, unsigned most, FILE *out) {
  size_t len;
  const char *name = cs_profile_method(s->p, s->functions.frame[function], &len);
  cs_markdown_name(out, name, len, most);
}

static void put_place(const struct section *s, const struct row *row, FILE *out) {
  if (row->line == NONE) return;
  const char *file = cs_profile_file(s->p, row->line, NULL);
  if (file == NULL) return;
  cs_print(out, " (%.60s:%" PRIu32 ")", cs_file_of_source(file), s->p->frames[row->line].line);
}

static void put_amount(const struct section *s, uint64_t amount, FILE *out) {
  cs_print(out, " %10.*f", s->decimals, (double)amount / s->unit);
}

static void put_methods(const struct section *s, const struct cs_detail *d, FILE *out) {
  const struct row *rows = s->rows;
  cs_print(out, "   here %10s       self      total  own method\n", s->unit_name);
  for (size_t i = 0; i < s->own && i < d->methods; i++) {
    cs_print(out, "%5.1f %%", share(s, rows[i].here));
    put_amount(s, rows[i].here, out);
    put_amount(s, rows[i].self, out);
    put_amount(s, rows[i].total, out);
    cs_print(out, "  ");
    put_function(s, rows[i].function, d->name, out);
    put_place(s, &rows[i], out);
    cs_print(out, "\n");
  }
  if (s->own > d->methods) cs_print(out, "  (%zu more)\n", s->own - d->methods);
  if (s->elsewhere > 0) {
    cs_print(out, "%5.1f %%", share(s, s->elsewhere));
    put_amount(s, s->elsewhere, out);
    cs_print(out, "%24s[stacks without own code]\n", "");
  }
}

// A mode whose only row may be of any code has one of these if it has none of own code.
static void put_others(const struct section *s, const struct cs_detail *d, FILE *out) {
  size_t most = d->others == 0 && s->own == 0 ? d->methods : d->others;
  const struct row *rows = s->rows + s->own;
  if (most == 0) return;
  if (s->others > 0) cs_print(out, "\n   self %10s  not own code\n", s->unit_name);
  for (size_t i = 0; i < s->others && i < most; i++) {
    cs_print(out, "%5.1f %%", share(s, rows[i].self));
    put_amount(s, rows[i].self, out);
    cs_print(out, "  ");
    put_function(s, rows[i].function, d->name, out);
    cs_print(out, "\n");
  }
  if (s->others > most) cs_print(out, "  (%zu more)\n", s->others - most);
}

// ---- Stacks ----

// Whether the leaf of a wait says all that matters: which of the program's methods waits, not which
// methods of .NET report it.
static bool leaf_says_all(const struct section *s, const uint32_t *path, size_t depth) {
  enum cs_wire_mode mode = s->p->facts.mode;
  if (depth == 0 || (mode != CS_WIRE_MODE_LOCK && mode != CS_WIRE_MODE_WAIT)) return false;
  bool own = false;
  for (size_t i = 0; i < depth && !own; i++) own = kind_of(s, path[i]) == CS_KIND_USER;
  return own && kind_of(s, path[depth - 1]) == CS_KIND_TYPE;
}

// Own code and the two innermost frames; what is between them is "...". Of a stack that is longer
// than the line, the outer part goes.
static void put_stack(const struct section *s, uint32_t node, const struct cs_detail *d,
                      FILE *out) {
  uint32_t *path = NULL;
  size_t capacity = 0, depth = cs_tree_path(&s->tree, node, &path, &capacity), first = depth;
  unsigned name = d->stack / 4;
  size_t inner = leaf_says_all(s, path, depth) ? 1 : 2;
  for (size_t used = 0; first > 0; first--) {
    uint32_t function = path[first - 1];
    bool shown = first - 1 + inner >= depth || kind_of(s, function) == CS_KIND_USER;
    size_t len;
    (void)cs_profile_method(s->p, s->functions.frame[function], &len);
    if (shown) used += (len < name ? len : name) + 3;
    if (used > d->stack) break;
  }
  bool gap = first > 0, any = false;
  for (size_t i = first; i < depth; i++) {
    bool shown = i + inner >= depth || kind_of(s, path[i]) == CS_KIND_USER;
    if (shown) {
      cs_print(out, "%s%s", gap ? (any ? " > ... > " : "... > ") : any ? " > " : "", "");
      put_function(s, path[i], name, out);
      any = true;
    }
    gap = !shown;
  }
  if (depth == 0) cs_print(out, "[no frames]");
  free(path);
}

static void put_stacks(const struct section *s, const struct cs_detail *d, FILE *out) {
  if (d->stacks == 0) return;
  cs_print(out, "\n  share  stack, its callers first\n");
  for (size_t i = 0; i < s->stack_count && i < d->stacks; i++) {
    cs_print(out, "%5.1f %%  ", share(s, s->tree.nodes[s->stacks[i]].weight));
    put_stack(s, s->stacks[i], d, out);
    cs_print(out, "\n");
  }
  if (s->stack_count > d->stacks) cs_print(out, "  (%zu more)\n", s->stack_count - d->stacks);
}

// ---- The page ----

static void put_pool(const struct cs_facts *f, FILE *out) {
  if (f->pool.reads == 0) return;
  if (cs_pool_has_cause(f)) {
    cs_print(out, "**");
    cs_pool_put_cause(f, out);
    cs_print(out, ".**\n");
  }
  cs_print(out, "Thread pool: ");
  cs_pool_put(f, out);
  cs_print(out, ".\n");
}

static void put_runtime(const struct cs_facts *f, FILE *out) {
  if (f->mode != CS_WIRE_MODE_CPU || f->runtime_weight == 0 || f->weight == 0) return;
  double all = (double)f->weight / 100.0;
  cs_print(out,
           "%.1f %% of %s is in functions of the runtime without names; %.1f %% in those without a "
           "class either.\n",
           (double)f->runtime_weight / all, cs_mode_of(f)->whole,
           (double)f->unclassed_weight / all);
}

static void put_mode(const struct section *s, const struct cs_detail *d, FILE *out) {
  const struct cs_facts *f = &s->p->facts;
  const struct cs_mode *mode = cs_mode_of(f);
  cs_print(out, "\n## %s: ", mode->token);
  cs_put_whole(out, mode, cs_facts_whole(f));
  cs_print(out, "\n\n");
  cs_put_samples(out, f);
  if (f->weight != cs_facts_whole(f)) {
    cs_print(out, ", which stand for ");
    cs_put_amount(out, mode->unit, f->weight);
  }
  if (mode->timed && f->hz > 0) cs_print(out, " at %" PRIu32 " Hz", f->hz);
  if (f->engine.used != CS_WIRE_ENGINE_AUTO)
    cs_print(out, ", engine %s", cs_wire_engine_name(f->engine.used));
  if (mode->timed && f->duration_ns > 0) {
    cs_print(out, "; %.2f", (double)f->weight / (double)f->duration_ns);
    if (f->mode == CS_WIRE_MODE_CPU && f->processors > 0)
      cs_print(out, " of %" PRIu32, f->processors);
    cs_print(out, " %s",
             f->mode == CS_WIRE_MODE_CPU     ? "processors used"
             : f->mode == CS_WIRE_MODE_ASYNC ? "operations at a time"
                                             : "threads at a time");
  }
  if (f->samples == 0) {
    cs_print(out, ".\n");
    put_pool(f, out);
    return;
  }
  if (cs_markdown_has_all(f))
    cs_print(out, "; every one was recorded.\n");
  else
    cs_print(out,
             "; a share may be off by up to %.1f points (" CS_CHANGE_INTERVAL ", by the counts).\n",
             s->error);
  if (s->idle > 0) {
    cs_put_amount(out, mode->unit, s->idle);
    cs_print(out,
             " of idle threads (the pool's, timers, sockets, ...) are left out; shares are of the "
             "rest.\n");
  }
  put_runtime(f, out);
  put_pool(f, out);
  if (f->mode == CS_WIRE_MODE_HOLDERS) {
    cs_print(out, "Waits for locks: ");
    cs_holders_put(s->p, 2 * d->name, out);
    cs_print(out, ".\n");
  }
  if (d->methods == 0) return;
  cs_print(out, "\n");
  cs_markdown_code(out);
  put_methods(s, d, out);
  put_others(s, d, out);
  put_stacks(s, d, out);
  cs_markdown_code_end(out);
}

static void put_page(const void *what, const struct cs_details *details, FILE *out) {
  const struct page *page = what;
  const struct cs_detail *d = details->page;
  const struct cs_profile_set *set = page->set;
  const struct cs_facts *f = &set->profiles[0].facts;
  cs_print(out, "# Recording of %.1f s", (double)f->duration_ns / 1e9);
  cs_print(out, "%s%s, process %" PRIu32 "\n\n", f->runtime[0] != '\0' ? ", .NET " : "", f->runtime,
           f->pid);
  cs_markdown_code(out);
  cs_markdown_name(out, f->program, strlen(f->program), 2 * d->name);
  cs_print(out, "\n");
  cs_markdown_code_end(out);
  if (!d->brief)
    cs_print(out,
             "\nself: in the method itself%s. here: self, and what it calls that is not own code "
             "(framework,\nruntime, system). total: with all that it calls; recursion counts once. "
             "Shares are of the mode's whole.\n",
             f->inlined.wanted ? "" : ", with what is inlined there");
  for (size_t i = 0; i < set->count; i++) put_mode(&page->sections[i], details->mode[i], out);
  cs_print(out, "\n## What is odd\n\n");
  if (cs_markdown_odd(set, d->brief ? 4 : 8, out) == 0)
    cs_print(out, "Nothing: no sample was lost, and nearly all walks are complete.\n");
}

bool cs_write_markdown(const struct cs_profile_set *set, FILE *out) {
  struct section *sections = cs_allocate(set->count * sizeof *sections);
  for (size_t i = 0; i < set->count; i++) add_up(&sections[i], &set->profiles[i]);
  bool written = cs_markdown_fit(put_page, &(struct page){set, sections}, set->count, out);
  for (size_t i = 0; i < set->count; i++) section_free(&sections[i]);
  free(sections);
  return written;
}
