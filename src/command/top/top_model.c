// SPDX-License-Identifier: MIT
// The numbers of `clrsnap top`. Invariant: window[n] is the weight of the queued samples with leaf
// n, and every share is of all time in its span, whatever is filtered or left out. One thread.
// Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "top/top.h"

#define SLOTS 64  // in the window; a sample leaves it up to one slot early

void cs_top_init(struct cs_top *top, const struct cs_tree *tree, uint64_t window_ns) {
  *top = (struct cs_top){.tree = tree, .window_ns = window_ns};
  cs_profile_init(&top->methods);
}

void cs_top_add_frame(struct cs_top *top, uint32_t method) {
  CS_APPEND(top->frames, top->frame_count, top->frame_capacity,
            (struct cs_top_frame){.method = method});
}

void cs_top_set_frame(struct cs_top *top, size_t frame, uint32_t method) {
  top->frames[frame].method = method;
}

static void add_outer(struct cs_top *top, uint32_t method) {
  CS_APPEND(top->outer, top->outer_count, top->outer_capacity, method);
}

void cs_top_set_inlined(struct cs_top *top, size_t frame, const uint32_t *methods, size_t count) {
  top->frames[frame].method = methods[count - 1];
  if (count == 1) return;
  if (top->outer_count == 0) add_outer(top, CS_NO_TEXT);  // 0 is not a list
  top->frames[frame].outer = (uint32_t)top->outer_count;
  for (size_t i = count - 1; i-- > 0;) add_outer(top, methods[i]);
  add_outer(top, CS_NO_TEXT);
}

void cs_top_set_async(struct cs_top *top, size_t frame, bool awaits, bool resumes) {
  top->frames[frame].awaits = awaits;
  top->frames[frame].resumes = resumes;
  top->has_awaits = top->has_awaits || awaits;
}

void cs_top_set_part(struct cs_top *top, size_t frame, struct cs_top_part part) {
  top->frames[frame].part = part;
}

// ---- The window ----

// Grows what is counted by node with the tree.
static void follow_tree(struct cs_top *top) {
  if (top->node_count >= top->tree->count) return;
  size_t want = top->tree->count + top->tree->count / 2;
  uint64_t *more = cs_allocate(want * sizeof *more);
  if (top->node_count > 0) memcpy(more, top->window, top->node_count * sizeof *more);
  uint64_t *latest = cs_allocate(want * sizeof *latest);
  if (top->node_count > 0) memcpy(latest, top->latest, top->node_count * sizeof *latest);
  free(top->window);
  free(top->latest);
  top->window = more;
  top->latest = latest;
  top->node_count = want;
}

static void grow_queue(struct cs_top *top) {
  size_t want = top->queue_capacity > 0 ? 2 * top->queue_capacity : 1024;
  struct cs_top_sample *more = cs_allocate(want * sizeof *more);
  for (size_t i = 0; i < top->queue_count; i++)
    more[i] = top->queue[(top->queue_first + i) % top->queue_capacity];
  free(top->queue);
  top->queue = more;
  top->queue_first = 0;
  top->queue_capacity = want;
}

// Samples with the same leaf in one slot of the window are one entry, so that the length of the
// queue depends on the number of stacks, not on the rate or the window.
void cs_top_add(struct cs_top *top, uint64_t now_ns, uint32_t leaf, uint64_t weight) {
  uint64_t slot = now_ns - now_ns % (top->window_ns / SLOTS);
  follow_tree(top);
  top->window[leaf] += weight;
  if (top->latest[leaf] > top->expired) {
    size_t back = (size_t)(top->latest[leaf] - 1 - top->expired);
    struct cs_top_sample *last = &top->queue[(top->queue_first + back) % top->queue_capacity];
    if (last->at_ns == slot) {
      last->weight += weight;
      return;
    }
  }
  if (top->queue_count == top->queue_capacity) grow_queue(top);
  size_t end = (top->queue_first + top->queue_count++) % top->queue_capacity;
  top->queue[end] = (struct cs_top_sample){slot, weight, leaf};
  top->latest[leaf] = top->expired + top->queue_count;
}

void cs_top_expire(struct cs_top *top, uint64_t now_ns) {
  while (top->queue_count > 0) {
    const struct cs_top_sample *s = &top->queue[top->queue_first];
    if (now_ns - s->at_ns < top->window_ns) break;
    top->window[s->leaf] -= s->weight;
    top->queue_first = (top->queue_first + 1) % top->queue_capacity;
    top->queue_count--;
    top->expired++;
  }
}

void cs_top_freeze(struct cs_top *top, bool on) {
  free(top->frozen[0]);
  free(top->frozen[1]);
  top->frozen[0] = top->frozen[1] = NULL;
  if (!on) return;
  follow_tree(top);
  top->frozen_count = top->tree->count;
  for (int i = 0; i < 2; i++) top->frozen[i] = cs_allocate((top->frozen_count + 1) * 8);
  for (size_t i = 0; i < top->frozen_count; i++) {
    top->frozen[0][i] = top->window[i];
    top->frozen[1][i] = top->tree->nodes[i].weight;
  }
}

static bool is_frozen(const struct cs_top *top) {
  return top->frozen[0] != NULL;
}

void cs_top_free(struct cs_top *top) {
  cs_top_freeze(top, false);
  cs_profile_free(&top->methods);
  free(top->frames);
  free(top->outer);
  free(top->queue);
  free(top->window);
  free(top->latest);
}

// ---- Sums ----

static size_t nodes_of(const struct cs_top *top, const struct cs_top_view *view) {
  if (is_frozen(top)) return top->frozen_count;
  if (view->whole || top->node_count > top->tree->count) return top->tree->count;
  return top->node_count;
}

static uint64_t weight_of(const struct cs_top *top, const struct cs_top_view *view, size_t node) {
  if (is_frozen(top)) return top->frozen[view->whole][node];
  return view->whole ? top->tree->nodes[node].weight : top->window[node];
}

static uint64_t all_weight(const struct cs_top *top, const struct cs_top_view *view) {
  uint64_t sum = 0;
  for (size_t i = 1; i < nodes_of(top, view); i++) sum += weight_of(top, view, i);
  return sum;
}

// By node: the class of the node and of the native code that it calls. To be freed.
static uint8_t *classes_of(const struct cs_top *top) {
  const struct cs_node *nodes = top->tree->nodes;
  uint8_t *class = cs_allocate(top->tree->count * sizeof *class);
  for (size_t i = 1; i < top->tree->count; i++) {
    uint32_t frame = nodes[i].frame;
    if (nodes[i].parent == 0) {
      class[i] = frame < top->thread_count ? top->thread_class[frame] : 0;
      continue;
    }
    if (frame >= top->frame_count) continue;
    const struct cs_top_part *part = &top->frames[frame].part;
    class[i] = part->class != 0 || !part->native ? part->class : class[nodes[i].parent];
  }
  return class;
}

// Returns the node's method, or CS_NO_TEXT if it is unknown, or hidden by the view.
static uint32_t visible(const struct cs_top *top, const struct cs_top_view *view,
                        const uint8_t *classes, uint32_t node) {
  uint32_t frame = top->tree->nodes[node].frame;
  uint32_t method = frame < top->frame_count ? top->frames[frame].method : CS_NO_TEXT;
  if (frame < top->frame_count && top->frames[frame].part.runtime && classes[node] != 0)
    method = top->class_method[classes[node]];
  if (method == CS_NO_TEXT || view->native) return method;
  enum cs_profile_kind kind = top->methods.frames[method].kind;
  bool native = kind == CS_KIND_RUNTIME || kind == CS_KIND_NATIVE || kind == CS_KIND_KERNEL;
  return native ? CS_NO_TEXT : method;
}

struct sums {
  const uint8_t *classes;  // by node
  uint64_t *self, *total;
  uint32_t *counted;  // by method: the leaf of the last stack that has counted it
};

static const struct cs_top_frame *frame_of(const struct cs_top *top, uint32_t node) {
  static const struct cs_top_frame none = {.method = CS_NO_TEXT};
  uint32_t frame = top->tree->nodes[node].frame;
  bool is_frame = top->tree->nodes[node].parent != 0 && frame < top->frame_count;
  return is_frame ? &top->frames[frame] : &none;
}

// Returns the node of the method that called a node's method, or that awaits it. The frames that
// have resumed an awaited method, down to the thread's first frame, are not its callers, and the
// outermost awaiting method has only the thread below it.
static uint32_t caller_of(const struct cs_top *top, uint32_t node) {
  const struct cs_node *nodes = top->tree->nodes;
  uint32_t parent = nodes[node].parent, n = parent;
  if (!top->has_awaits) return parent;
  if (frame_of(top, node)->awaits) {
    while (!frame_of(top, parent)->awaits && nodes[n].parent != 0) n = nodes[n].parent;
    return n;
  }
  while (frame_of(top, n)->resumes) n = nodes[n].parent;
  return frame_of(top, n)->awaits ? n : parent;
}

// Recursion: a method's total counts a stack once.
static void add_total(struct sums *sums, uint32_t method, uint32_t leaf, uint64_t weight) {
  if (sums->counted[method] == leaf) return;
  sums->counted[method] = leaf;
  sums->total[method] += weight;
}

static void add_stack(const struct cs_top *top, const struct cs_top_view *view, struct sums *sums,
                      uint32_t leaf, uint64_t weight) {
  const struct cs_node *nodes = top->tree->nodes;
  bool is_leaf = true, classed = false;
  for (uint32_t n = leaf; nodes[n].parent != 0; n = caller_of(top, n)) {
    const struct cs_top_part *part = &frame_of(top, n)->part;
    uint32_t method = visible(top, view, sums->classes, n);
    // What leads from managed code to a class belongs to that.
    bool leads = part->runtime && sums->classes[n] == 0 && classed;
    classed = part->native && (classed || (part->runtime && sums->classes[n] != 0));
    if (method == CS_NO_TEXT || leads) continue;
    if (is_leaf) sums->self[method] += weight;
    is_leaf = false;
    add_total(sums, method, leaf, weight);
    const uint32_t *outer = &top->outer[top->frames[nodes[n].frame].outer];
    for (bool any = top->frames[nodes[n].frame].outer != 0; any && *outer != CS_NO_TEXT; outer++)
      add_total(sums, *outer, leaf, weight);
  }
}

static bool matches(const char *text, const struct cs_top_view *view) {
  return view->filter[0] == '\0' || strcasestr(text, view->filter) != NULL;
}

static const char *name_of(const struct cs_top *top, uint32_t method) {
  return cs_strings_get(&top->methods.strings, top->methods.frames[method].name, NULL);
}

struct order {
  const struct cs_top *top;
  enum cs_top_sort sort;
};

static int compare_methods(const void *a, const void *b, void *context) {
  const struct cs_top_method *x = a, *y = b;
  const struct order *order = context;
  int self = CS_ORDER(y->self, x->self), total = CS_ORDER(y->total, x->total);
  int name = strcmp(name_of(order->top, x->frame), name_of(order->top, y->frame));
  int first = order->sort == CS_TOP_BY_NAME ? name : order->sort == CS_TOP_BY_TOTAL ? total : self;
  return first ?: self ?: total ?: name;
}

static size_t select_methods(const struct cs_top *top, const struct cs_top_view *view,
                             const struct sums *sums, struct cs_top_method *rows) {
  double all = (double)all_weight(top, view);
  size_t count = 0;
  for (uint32_t i = 0; i < top->methods.frame_count; i++) {
    if (sums->total[i] == 0) continue;
    const char *module = cs_strings_get(&top->methods.strings, top->methods.frames[i].module, NULL);
    if (!matches(name_of(top, i), view) && !matches(module, view)) continue;
    rows[count++] =
        (struct cs_top_method){i, (double)sums->self[i] / all, (double)sums->total[i] / all};
  }
  return count;
}

struct cs_top_method *cs_top_methods(const struct cs_top *top, const struct cs_top_view *view,
                                     size_t *count) {
  size_t methods = top->methods.frame_count + 1;
  uint8_t *classes = classes_of(top);
  struct sums sums = {classes, cs_allocate(methods * sizeof *sums.self),
                      cs_allocate(methods * sizeof *sums.total),
                      cs_allocate(methods * sizeof *sums.counted)};
  struct cs_top_method *rows = cs_allocate(methods * sizeof *rows);
  for (size_t i = 1; i < nodes_of(top, view); i++) {
    uint64_t weight = weight_of(top, view, i);
    if (weight > 0) add_stack(top, view, &sums, (uint32_t)i, weight);
  }
  *count = select_methods(top, view, &sums, rows);
  qsort_r(rows, *count, sizeof *rows, compare_methods, &(struct order){top, view->sort});
  free(sums.self);
  free(sums.total);
  free(sums.counted);
  free(classes);
  return rows;
}

// ---- Threads ----

struct pairs {  // of a tid and a method: its own time
  struct cs_map ids;
  struct pair {
    uint32_t tid, method;
    uint64_t weight;
  } * items;
  size_t count, capacity;
};

// Adds a node's time to its thread and to the innermost visible method.
static void add_pair(const struct cs_top *top, const struct cs_top_view *view,
                     const struct cs_top_known *known, size_t known_count, struct pairs *pairs,
                     const uint8_t *classes, uint32_t leaf, uint64_t weight) {
  const struct cs_node *nodes = top->tree->nodes;
  uint32_t method = CS_NO_TEXT, n = leaf;
  for (; nodes[n].parent != 0; n = nodes[n].parent)
    if (method == CS_NO_TEXT) method = visible(top, view, classes, n);
  if (nodes[n].frame >= known_count) return;
  uint32_t tid = known[nodes[n].frame].tid;
  bool added;
  uint32_t i =
      cs_map_put(&pairs->ids, (uint64_t)tid << 32 | method, (uint32_t)pairs->count, &added);
  if (added) CS_APPEND(pairs->items, pairs->count, pairs->capacity, (struct pair){tid, method, 0});
  pairs->items[i].weight += weight;
}

static void fill_thread(struct cs_top_thread *row, const struct pairs *pairs, double all) {
  uint64_t sum = 0, most = 0;
  for (size_t i = 0; i < pairs->count; i++) {
    const struct pair *pair = &pairs->items[i];
    if (pair->tid != row->tid) continue;
    sum += pair->weight;
    if (pair->weight <= most || pair->method == CS_NO_TEXT) continue;
    most = pair->weight;
    row->hottest = pair->method;
  }
  row->share = all > 0 ? (double)sum / all : 0;
}

static int compare_threads(const void *a, const void *b, void *context) {
  const struct cs_top_thread *x = a, *y = b;
  const enum cs_top_sort *sort = context;
  int name = *sort == CS_TOP_BY_NAME ? strcmp(x->name, y->name) : 0;
  return name ?: CS_ORDER(y->cpu, x->cpu) ?: CS_ORDER(y->share, x->share) ?:
         CS_ORDER(x->tid, y->tid);
}

// Returns the name that the program has given it, or else the kernel's.
static const char *thread_name(const struct cs_top_task *task, const struct cs_top_known *known,
                               size_t count) {
  for (size_t i = count; i-- > 0;)
    if (known[i].tid == task->tid && known[i].name[0] != '\0') return known[i].name;
  return task->name;
}

struct cs_top_thread *cs_top_threads(const struct cs_top *top, const struct cs_top_view *view,
                                     const struct cs_top_task *tasks, size_t task_count,
                                     const struct cs_top_known *known, size_t known_count,
                                     size_t *count) {
  struct pairs pairs = {0};
  uint8_t *classes = classes_of(top);
  struct cs_top_thread *rows = cs_allocate((task_count + 1) * sizeof *rows);
  for (size_t i = 1; i < nodes_of(top, view); i++) {
    uint64_t weight = weight_of(top, view, i);
    if (weight > 0) add_pair(top, view, known, known_count, &pairs, classes, (uint32_t)i, weight);
  }
  free(classes);
  double all = (double)all_weight(top, view);
  *count = 0;
  for (size_t i = 0; i < task_count; i++) {
    const char *name = thread_name(&tasks[i], known, known_count);
    if (!matches(name, view)) continue;
    struct cs_top_thread *row = &rows[(*count)++];
    *row = (struct cs_top_thread){tasks[i].tid, name, tasks[i].cpu, 0, CS_NO_TEXT};
    fill_thread(row, &pairs, all);
  }
  enum cs_top_sort sort = view->sort;
  qsort_r(rows, *count, sizeof *rows, compare_threads, &sort);
  free(pairs.items);
  cs_map_free(&pairs.ids);
  return rows;
}
