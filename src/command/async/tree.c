// SPDX-License-Identifier: MIT
// Merges chains of awaits, sorts and prints them. Invariant: a node's children have different
// steps, so that what is equal for people is one line. One thread. Signal-safe: no.
#include "async/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/print.h"

enum { MOST_TEXT = 8192, INDENT = 4, COUNT_WIDTH = 6, FIRST_STEPS = 20, LAST_STEPS = 4 };

static const char *keep(struct cs_async_tree *tree, const char *text) {
  if (text == NULL || text[0] == '\0') return "";
  char *copy = strdup(text);
  if (copy == NULL) abort();
  return CS_APPEND(tree->owned, tree->owned_count, tree->owned_capacity, copy);
}

uint32_t cs_async_step(struct cs_async_tree *tree, const struct cs_async_step *step) {
  char text[MOST_TEXT];
  const char *file = step->file != NULL ? step->file : "";
  const char *note = step->note != NULL ? step->note : "";
  const char *class = step->class != NULL ? step->class : "";
  const char *module = step->module != NULL ? step->module : "";
  int len = snprintf(text, sizeof text, "%s\n%s\n%s\n%s\n%s\n%" PRIu32, step->name, class, module,
                     note, file, step->line);
  size_t used = len < (int)sizeof text ? (size_t)len : sizeof text - 1;
  uint32_t id = cs_strings_add(&tree->texts, text, used);
  if (id < tree->step_count) return id;
  CS_APPEND(tree->steps, tree->step_count, tree->step_capacity,
            (struct cs_async_step){.name = keep(tree, step->name),
                                   .class = keep(tree, class),
                                   .module = keep(tree, module),
                                   .note = keep(tree, note),
                                   .file = keep(tree, file),
                                   .line = step->line});
  return id;
}

static uint32_t new_node(struct cs_async_tree *tree, uint32_t parent, uint32_t step,
                         uint64_t object) {
  CS_APPEND(tree->nodes, tree->count, tree->capacity,
            (struct cs_async_node){.step = step,
                                   .parent = parent,
                                   .first_child = CS_ASYNC_NO_NODE,
                                   .next = CS_ASYNC_NO_NODE,
                                   .object = object,
                                   .same = true});
  return (uint32_t)tree->count - 1;
}

uint32_t cs_async_root(struct cs_async_tree *tree) {
  return tree->count > 0 ? 0 : new_node(tree, CS_ASYNC_NO_NODE, CS_ASYNC_NO_NODE, 0);
}

uint32_t cs_async_add(struct cs_async_tree *tree, uint32_t parent, uint32_t step, uint64_t object) {
  bool added;
  uint32_t id =
      cs_map_put(&tree->by_place, (uint64_t)parent << 32 | step, (uint32_t)tree->count, &added);
  if (added) {
    (void)new_node(tree, parent, step, object);
    tree->nodes[id].next = tree->nodes[parent].first_child;
    tree->nodes[parent].first_child = id;
  }
  struct cs_async_node *node = &tree->nodes[id];
  node->count++;
  if (node->object != object) node->same = false;
  return id;
}

void cs_async_note_old(struct cs_async_tree *tree, uint32_t node, uint64_t began_ns) {
  struct cs_async_node *at = &tree->nodes[node];
  if (at->old == 0 || began_ns < at->first_ns) at->first_ns = began_ns;
  if (at->old == 0 || began_ns > at->last_ns) at->last_ns = began_ns;
  at->old++;
}

void cs_async_mark_cycle(struct cs_async_tree *tree, uint32_t node) {
  for (; node != CS_ASYNC_NO_NODE; node = tree->nodes[node].parent) tree->nodes[node].cycle = true;
}

// ---- Order ----

static const struct cs_async_tree *sorted;  // qsort passes no argument

static int by_weight(const void *a, const void *b) {
  const struct cs_async_node *x = &sorted->nodes[*(const uint32_t *)a];
  const struct cs_async_node *y = &sorted->nodes[*(const uint32_t *)b];
  const struct cs_async_step *p = &sorted->steps[x->step], *q = &sorted->steps[y->step];
  return CS_ORDER(y->cycle, x->cycle)    ?: CS_ORDER(y->count, x->count)
         ?: strcmp(p->name, q->name)     ?: strcmp(p->file, q->file)
         ?: CS_ORDER(p->line, q->line)   ?: strcmp(p->note, q->note)
         ?: strcmp(p->class, q->class);
}

void cs_async_sort(struct cs_async_tree *tree) {
  size_t capacity = 0;
  uint32_t *children = NULL;
  sorted = tree;
  for (size_t n = 0; n < tree->count; n++) {
    size_t count = 0;
    for (uint32_t c = tree->nodes[n].first_child; c != CS_ASYNC_NO_NODE; c = tree->nodes[c].next)
      CS_APPEND(children, count, capacity, c);
    cs_sort(children, count, sizeof *children, by_weight);
    for (size_t i = 0; i < count; i++)
      tree->nodes[children[i]].next = i + 1 < count ? children[i + 1] : CS_ASYNC_NO_NODE;
    if (count > 0) tree->nodes[n].first_child = children[0];
  }
  free(children);
}

// ---- Text ----

static bool step_has(const struct cs_async_step *step, const char *text) {
  return strstr(step->name, text) != NULL || strstr(step->class, text) != NULL ||
         strstr(step->file, text) != NULL;
}

bool cs_async_has(const struct cs_async_tree *tree, uint32_t node, const char *text) {
  const struct cs_async_node *at = &tree->nodes[node];
  if (text == NULL || text[0] == '\0' || step_has(&tree->steps[at->step], text)) return true;
  for (uint32_t c = at->first_child; c != CS_ASYNC_NO_NODE; c = tree->nodes[c].next)
    if (cs_async_has(tree, c, text)) return true;
  return false;
}

static void print_step(FILE *out, const struct cs_async_tree *tree,
                       const struct cs_async_node *node) {
  const struct cs_async_step *step = &tree->steps[node->step];
  cs_print(out, "%s", step->name);
  if (step->file[0] != '\0')
    cs_print(out, " (%s:%" PRIu32 ")", cs_file_of_source(step->file), step->line);
  if (step->note[0] != '\0') cs_print(out, " [%s]", step->note);
  if (node->same && node->count > 1) cs_print(out, " [one and the same]");
}

// ---- What has lasted for long ----

enum { MOST_OLD_LINES = 3 };

static int by_age(const void *a, const void *b) {
  const struct cs_async_node *x = &sorted->nodes[*(const uint32_t *)a];
  const struct cs_async_node *y = &sorted->nodes[*(const uint32_t *)b];
  return CS_ORDER(y->old, x->old) ?: CS_ORDER(x->first_ns, y->first_ns);
}

static bool is_own(const struct cs_async_step *step) {
  const char *file = cs_file_of(step->module);
  return file[0] != '\0' && strncmp(file, "System.", 7) != 0 &&
         strncmp(file, "Microsoft.", 10) != 0;
}

// The steps down to a node, without those of frameworks above the first one of the program's own.
static void print_path(FILE *out, const struct cs_async_tree *tree, uint32_t node) {
  enum { MOST = 512 };
  uint32_t path[MOST], depth = 0, first = 0;
  for (uint32_t n = node; n != 0 && depth < MOST; n = tree->nodes[n].parent) path[depth++] = n;
  for (uint32_t i = 0; i < depth; i++)
    if (is_own(&tree->steps[tree->nodes[path[i]].step])) first = i;
  if (first == 0) first = depth - 1;
  for (uint32_t i = first + 1; i-- > 0;) {
    if (first - i == FIRST_STEPS && i > LAST_STEPS) {
      cs_print(out, " > [%" PRIu32 " steps more]", i - LAST_STEPS + 1);
      i = LAST_STEPS;
      continue;
    }
    if (i < first) cs_print(out, " > ");
    print_step(out, tree, &tree->nodes[path[i]]);
  }
  cs_print(out, "\n");
}

static uint32_t root_of(const struct cs_async_tree *tree, uint32_t node) {
  while (tree->nodes[node].parent != 0) node = tree->nodes[node].parent;
  return node;
}

void cs_async_print_old(FILE *out, const struct cs_async_tree *tree, const char *text,
                        uint64_t now_ns) {
  uint32_t *old = cs_allocate((tree->count + 1) * sizeof *old);
  size_t count = 0;
  for (uint32_t n = 1; n < tree->count; n++)
    if (tree->nodes[n].old > 0 && cs_async_has(tree, root_of(tree, n), text)) old[count++] = n;
  sorted = tree;
  cs_sort(old, count, sizeof *old, by_age);
  for (size_t i = 0; i < count && i < MOST_OLD_LINES; i++) {
    const struct cs_async_node *node = &tree->nodes[old[i]];
    cs_print(out, "%" PRIu64 " %s began more than %" PRIu64 " s ago and %s: ", node->old,
             node->old == 1 ? "Activity (request)" : "Activities (requests)",
             (now_ns - node->last_ns) / 1000000000u, node->old == 1 ? "awaits" : "await");
    print_path(out, tree, old[i]);
  }
  if (count > MOST_OLD_LINES)
    cs_print(out, "(and what others await that began more than 10 s ago, in %zu places more)\n",
             count - MOST_OLD_LINES);
  free(old);
}

// ---- All operations ----

// Returns the next step of a chain, or NULL if it forks or ends.
static const struct cs_async_node *only_child(const struct cs_async_tree *tree,
                                              const struct cs_async_node *node) {
  if (node->first_child == CS_ASYNC_NO_NODE) return NULL;
  const struct cs_async_node *child = &tree->nodes[node->first_child];
  return child->next == CS_ASYNC_NO_NODE && child->count == node->count ? child : NULL;
}

// Up to where it forks, a chain is a line; the middle of a long one is left out.
static void print_node(FILE *out, const struct cs_async_tree *tree, uint32_t node, int indent) {
  const struct cs_async_node *at = &tree->nodes[node], *last = at;
  uint32_t steps = 0;
  for (const struct cs_async_node *n = at; n != NULL; n = only_child(tree, n)) steps++;
  uint32_t left_out = steps > FIRST_STEPS + LAST_STEPS + 1 ? steps - FIRST_STEPS - LAST_STEPS : 0;
  cs_print(out, "%*s%*" PRIu64 " x ", indent, "", COUNT_WIDTH, at->count);
  for (uint32_t i = 0; at != NULL; i++, at = only_child(tree, at)) {
    last = at;
    if (left_out > 0 && i == FIRST_STEPS) cs_print(out, " > [%" PRIu32 " steps more]", left_out);
    if (i >= FIRST_STEPS && i < FIRST_STEPS + left_out) continue;
    if (i > 0) cs_print(out, " > ");
    print_step(out, tree, at);
  }
  cs_print(out, "\n");
  for (uint32_t c = last->first_child; c != CS_ASYNC_NO_NODE; c = tree->nodes[c].next)
    print_node(out, tree, c, indent + INDENT);
}

uint32_t cs_async_print(FILE *out, const struct cs_async_tree *tree, const char *text) {
  uint32_t printed = 0;
  if (tree->count == 0) return 0;
  for (uint32_t c = tree->nodes[0].first_child; c != CS_ASYNC_NO_NODE; c = tree->nodes[c].next) {
    if (!cs_async_has(tree, c, text)) continue;
    print_node(out, tree, c, 0);
    printed++;
  }
  return printed;
}

void cs_async_tree_free(struct cs_async_tree *tree) {
  for (size_t i = 0; i < tree->owned_count; i++) free(tree->owned[i]);
  free(tree->owned);
  free(tree->nodes);
  free(tree->steps);
  cs_strings_free(&tree->texts);
  cs_map_free(&tree->by_place);
}
