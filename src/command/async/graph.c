// SPDX-License-Identifier: MIT
// Makes chains of objects that await each other, each from the outermost awaiter down. A box leads
// to what it awaits; a Task that is not a method's, such as WhenAll's, leads to all tasks whose
// completion it waits for. An outermost awaiter is one that no object leads to, or a member of a
// cycle that no other object leads into; such a cycle begins at the name that sorts first.
// Invariant: the work is bounded, though chains may fork and join at every step, and what is left
// out is counted. One thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "async/async.h"

enum { MOST_DEPTH = 400, STEPS_PER_OBJECT = 8, MORE_STEPS = 1000000 };

struct graph {
  const struct cs_async_scan *scan;
  const struct cs_async_namer *namer;
  struct cs_async *async;
  struct cs_async_edge *edges;  // by `to`
  uint32_t *first_edge;         // of each object, and the number of edges
  bool *led_to, *on_path;
  bool *reached;    // an operation leads there, though it may be cut before it gets there
  uint32_t *stack;  // of flood()
  uint64_t steps, most_steps;
};

static int by_target(const void *a, const void *b) {
  const struct cs_async_edge *x = a, *y = b;
  return CS_ORDER(x->to, y->to) ?: CS_ORDER(x->from, y->from);
}

static bool is_method(const struct graph *g, uint32_t i) {
  return g->namer->is_method(g->namer->data, &g->scan->objects[i]);
}

// Returns whether the object is a method that awaits something. One that runs, or that has just
// yielded a value, does not.
static bool is_suspended(const struct graph *g, uint32_t i) {
  const struct cs_async_object *object = &g->scan->objects[i];
  bool awaits = object->next != CS_ASYNC_NO_OBJECT || object->end != CS_ASYNC_LEAF_NONE;
  return is_method(g, i) && (awaits || (object->has_state && object->state >= 0));
}

static void prepare(struct graph *g) {
  const struct cs_async_scan *scan = g->scan;
  size_t kept = 0;
  g->edges = cs_allocate((scan->edge_count + 1) * sizeof *g->edges);
  g->first_edge = cs_allocate((scan->count + 1) * sizeof *g->first_edge);
  g->led_to = cs_allocate(scan->count + 1);
  g->on_path = cs_allocate(scan->count + 1);
  g->reached = cs_allocate(scan->count + 1);
  g->stack = cs_allocate((scan->count + 1) * sizeof *g->stack);
  if (scan->edge_count > 0) memcpy(g->edges, scan->edges, scan->edge_count * sizeof *g->edges);
  cs_sort(g->edges, scan->edge_count, sizeof *g->edges, by_target);
  for (size_t i = 0; i < scan->edge_count; i++)
    if (kept == 0 || by_target(&g->edges[kept - 1], &g->edges[i]) != 0)
      g->edges[kept++] = g->edges[i];
  for (size_t i = 0, at = 0; i <= scan->count; i++) {
    while (at < kept && g->edges[at].to < i) at++;
    g->first_edge[i] = (uint32_t)at;
  }
  for (size_t i = 0; i < kept; i++) g->led_to[g->edges[i].from] = true;
  for (size_t i = 0; i < scan->count; i++)
    if (scan->objects[i].next != CS_ASYNC_NO_OBJECT) g->led_to[scan->objects[i].next] = true;
}

static uint32_t add(struct graph *g, uint32_t parent, uint32_t step, uint64_t object) {
  return cs_async_add(&g->async->tree, parent, step, object);
}

// What is awaited in the end. Nothing is one and the same where no object is known.
static uint32_t add_leaf(struct graph *g, uint32_t parent, const struct cs_async_object *object) {
  uint32_t step = g->namer->leaf(g->namer->data, object);
  return add(g, parent, step, object->awaits != 0 ? object->awaits : object->address);
}

// An operation on its way down: what it works for, and which part of it goes this way.
struct part {
  double operations;
  uint32_t label;     // CS_ASYNC_NO_ACTIVITY: none was seen yet
  uint64_t began_ns;  // its Activity; 0: unknown yet
};

static bool is_same_request(const struct cs_label *a, const struct cs_label *b) {
  return cs_label_request(a) == cs_label_request(b) &&
         memcmp(a->trace, b->trace, sizeof a->trace) == 0;
}

// The outermost Activity says what the operation works for. Further in, the request may have an
// endpoint, or a span of its own; but what it awaits together with other requests has the label of
// the one that began it.
static void note_label(const struct graph *g, uint32_t i, struct part *part) {
  uint32_t own = g->scan->objects[i].label;
  const struct cs_label *labels = g->scan->labels.items;
  if (part->began_ns == 0) part->began_ns = g->scan->objects[i].began_ns;
  if (part->label == CS_ASYNC_NO_ACTIVITY)
    part->label = own;
  else if (part->label >= CS_ASYNC_LABELS && own >= CS_ASYNC_LABELS &&
           is_same_request(&labels[part->label], &labels[own]))
    part->label = own;
}

static void end_at(struct graph *g, uint32_t node, const struct part *part) {
  struct cs_async_ends *ends = &g->async->ends;
  bool added;
  if (node == 0) return;
  uint32_t i = cs_map_put(&ends->by_place, (uint64_t)node << 32 | part->label,
                          (uint32_t)ends->count, &added);
  if (added)
    CS_APPEND(ends->items, ends->count, ends->capacity,
              (struct cs_async_end){node, part->label, 0});
  ends->items[i].operations += part->operations;
  if (part->began_ns != 0 && part->began_ns + CS_ASYNC_OLD_NS <= g->async->taken_ns)
    cs_async_note_old(&g->async->tree, node, part->began_ns);
}

static void walk(struct graph *g, uint32_t parent, uint32_t i, int depth, struct part part);

static void walk_method(struct graph *g, uint32_t parent, uint32_t i, int depth, struct part part) {
  const struct cs_async_object *object = &g->scan->objects[i];
  const struct cs_async_namer *namer = g->namer;
  bool suspended = is_suspended(g, i);
  const char *note = suspended                                 ? ""
                     : object->has_state && object->state < -2 ? "has yielded a value"
                                                               : "runs";
  uint32_t node = add(g, parent, namer->method(namer->data, object, note), object->address);
  note_label(g, i, &part);
  if (object->next != CS_ASYNC_NO_OBJECT)
    walk(g, node, object->next, depth + 1, part);
  else
    end_at(g, suspended ? add_leaf(g, node, object) : node, &part);
}

static void walk_task(struct graph *g, uint32_t parent, uint32_t i, int depth, struct part part) {
  const struct cs_async_object *object = &g->scan->objects[i];
  uint32_t node = add(g, parent, g->namer->task(g->namer->data, object), object->address);
  bool leads_on = object->next != CS_ASYNC_NO_OBJECT;
  uint32_t branches = g->first_edge[i + 1] - g->first_edge[i] +
                      (leads_on || object->end != CS_ASYNC_LEAF_NONE ? 1 : 0);
  if (branches == 0) end_at(g, node, &part);
  if (branches > 1) part.operations /= branches;
  for (uint32_t e = g->first_edge[i]; e < g->first_edge[i + 1]; e++)
    walk(g, node, g->edges[e].from, depth + 1, part);
  if (leads_on)
    walk(g, node, object->next, depth + 1, part);
  else if (object->end != CS_ASYNC_LEAF_NONE)
    end_at(g, add_leaf(g, node, object), &part);
}

static void walk(struct graph *g, uint32_t parent, uint32_t i, int depth, struct part part) {
  const struct cs_async_object *object = &g->scan->objects[i];
  const struct cs_async_namer *namer = g->namer;
  if (g->on_path[i]) {
    uint32_t step = namer->method(namer->data, object, "again: they wait for each other");
    if (!is_method(g, i)) step = namer->task(namer->data, object);
    uint32_t node = add(g, parent, step, object->address);
    cs_async_mark_cycle(&g->async->tree, node);
    end_at(g, node, &part);
    return;
  }
  if (depth == MOST_DEPTH || g->steps == g->most_steps) {
    g->async->cut = true;
    end_at(g, parent, &part);
    return;
  }
  g->steps++;
  g->on_path[i] = true;
  if (is_method(g, i))
    walk_method(g, parent, i, depth, part);
  else
    walk_task(g, parent, i, depth, part);
  g->on_path[i] = false;
}

// Returns whether a suspended method is there or further down.
static bool leads_to_method(const struct graph *g, uint32_t i, int depth) {
  if (is_method(g, i)) return true;
  if (depth == 8) return false;
  for (uint32_t e = g->first_edge[i]; e < g->first_edge[i + 1]; e++)
    if (leads_to_method(g, g->edges[e].from, depth + 1)) return true;
  return false;
}

// Marks an object and everything that it leads to.
static void flood(struct graph *g, bool *marked, uint32_t from) {
  size_t waiting = 0;
  if (!marked[from]) g->stack[waiting++] = from;
  marked[from] = true;
  while (waiting > 0) {
    uint32_t i = g->stack[--waiting], next = g->scan->objects[i].next;
    for (uint32_t e = g->first_edge[i]; e < g->first_edge[i + 1] && !is_method(g, i); e++) {
      uint32_t branch = g->edges[e].from;
      if (!marked[branch]) g->stack[waiting++] = branch;
      marked[branch] = true;
    }
    if (next == CS_ASYNC_NO_OBJECT) continue;
    if (!marked[next]) g->stack[waiting++] = next;
    marked[next] = true;
  }
}

static void begin(struct graph *g, uint32_t i) {
  uint32_t root = cs_async_root(&g->async->tree);
  if (g->scan->objects[i].waited_for)
    root = add(g, root, g->namer->thread(g->namer->data), g->scan->objects[i].address);
  g->async->operations++;
  flood(g, g->reached, i);
  walk(g, root, i, 0, (struct part){1, CS_ASYNC_NO_ACTIVITY, 0});
}

static uint32_t successor(const struct graph *g, uint32_t i) {
  uint32_t next = g->scan->objects[i].next;
  if (is_method(g, i) || next != CS_ASYNC_NO_OBJECT) return next;
  return g->first_edge[i] < g->first_edge[i + 1] ? g->edges[g->first_edge[i]].from
                                                 : CS_ASYNC_NO_OBJECT;
}

static const char *name_of(const struct graph *g, uint32_t i) {
  const struct cs_async_namer *namer = g->namer;
  const struct cs_async_object *object = &g->scan->objects[i];
  uint32_t step =
      is_method(g, i) ? namer->method(namer->data, object, "") : namer->task(namer->data, object);
  return g->async->tree.steps[step].name;
}

// Returns where the cycle that begins here, if it is one, has its first name: equal cycles are
// then one.
static uint32_t first_of_circle(struct graph *g, uint32_t from) {
  uint32_t i = from, best = from;
  while (i != CS_ASYNC_NO_OBJECT && !g->on_path[i] && !g->reached[i]) {
    g->on_path[i] = true;
    i = successor(g, i);
  }
  bool is_circle = i == from;
  for (uint32_t k = from; k != CS_ASYNC_NO_OBJECT && g->on_path[k]; k = successor(g, k))
    g->on_path[k] = false;
  if (!is_circle) return from;
  for (uint32_t k = successor(g, from); k != from; k = successor(g, k))
    if (is_method(g, k) && strcmp(name_of(g, k), name_of(g, best)) < 0) best = k;
  return best;
}

// A method that no operation leads to yet is in a cycle, or a cycle leads to it. Of the objects
// at which the flood here has to begin anew, none leads to a later one, so the last of them is in a
// cycle that nothing leads into; and so is, in turn, the last of those that are then not yet
// reached.
static void begin_circles(struct graph *g) {
  size_t count = g->scan->count, begun = 0;
  uint32_t *begins = cs_allocate((count + 1) * sizeof *begins);
  bool *seen = cs_allocate(count + 1);
  memcpy(seen, g->reached, count);
  for (uint32_t i = 0; i < count; i++) {
    if (seen[i] || !is_suspended(g, i)) continue;
    begins[begun++] = i;
    flood(g, seen, i);
  }
  while (begun > 0)
    if (!g->reached[begins[--begun]]) begin(g, first_of_circle(g, begins[begun]));
  free(begins);
  free(seen);
}

void cs_async_merge(const struct cs_async_scan *scan, const struct cs_async_namer *namer,
                    struct cs_async *async) {
  struct graph g = {.scan = scan,
                    .namer = namer,
                    .async = async,
                    .most_steps = STEPS_PER_OBJECT * scan->count + MORE_STEPS};
  (void)cs_async_root(&async->tree);
  prepare(&g);
  for (uint32_t i = 0; i < scan->count; i++) {
    if (is_suspended(&g, i)) async->suspended++;
    if (!g.led_to[i] && (is_suspended(&g, i) || (!is_method(&g, i) && leads_to_method(&g, i, 0))))
      begin(&g, i);
  }
  begin_circles(&g);
  cs_async_sort(&async->tree);
  free(g.edges);
  free(g.first_edge);
  free(g.led_to);
  free(g.on_path);
  free(g.reached);
  free(g.stack);
}
