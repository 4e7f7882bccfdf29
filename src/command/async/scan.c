// SPDX-License-Identifier: MIT
// Walks a stopped process's heap, object by object, and keeps boxes and Tasks that have not
// completed. Invariants: an object's size is believed only within its part of the heap, and a part
// is left where an object is not as expected; how much that was is counted; a reference is only
// followed to what can be read and has a class. One thread. Signal-safe: no.
#include "async/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
  WINDOW = 1 << 20,
  SMALLEST = 24,
  CLASS_BITS = 7,         // lowest bits of an object's class, which the collector uses
  COMPLETED = 0x1600000,  // Task.m_stateFlags: canceled, faulted, ran to completion
  MOST_LINKS = 8,
  MOST_LIST = 1 << 22,
  CHECK_CLOCK = 4096,
};

struct scanner {
  struct cs_remote *remote;  // NULL: the process runs again
  struct cs_async_classes *classes;
  const struct cs_async_heap *heap;
  struct cs_async_scan *scan;
  uint64_t deadline;
  size_t gap;  // the first one that has not been passed
  uint64_t last_id;
  uint32_t last_class;
  uint64_t window_at;
  size_t window_len;
  uint8_t *window;
};

// ---- Objects ----

static uint64_t word_at(const uint8_t *object, uint32_t offset) {
  uint64_t word;
  memcpy(&word, object + offset, sizeof word);
  return word;
}
static uint32_t half_at(const uint8_t *object, uint32_t offset) {
  uint32_t half;
  memcpy(&half, object + offset, sizeof half);
  return half;
}

static bool is_zero(const uint8_t *bytes, const uint8_t *end) {
  while (bytes < end && *bytes == 0) bytes++;
  return bytes == end;
}

// What the machine awaits. Only the awaiter at which it is suspended has contents.
static void read_machine(const struct cs_async_class *layout, const uint8_t *object,
                         struct cs_async_object *out) {
  out->has_state = layout->has_state && layout->state_at + 4 <= layout->type.base_bytes;
  if (out->has_state) out->state = (int32_t)half_at(object, layout->state_at);
  out->awaits = 0;
  for (uint32_t i = 0; i < layout->awaiter_count && out->awaits == 0; i++) {
    const struct cs_async_awaiter *awaiter = &layout->awaiters[i];
    if (awaiter->end > layout->type.base_bytes) continue;
    if (awaiter->is_known && awaiter->reference != 0) {
      out->awaits = word_at(object, awaiter->reference);
    } else if (!awaiter->is_known && !is_zero(object + awaiter->begin, object + awaiter->end)) {
      out->end = CS_ASYNC_LEAF_AWAITER;
      out->leaf = awaiter->field;
    }
  }
  if (out->awaits != 0) out->end = CS_ASYNC_LEAF_NONE;
}

static bool has_room(const struct cs_async_class *class, uint32_t offset) {
  return offset + 8 <= class->type.base_bytes;
}

static void keep(struct scanner *s, uint64_t address, uint32_t index, const uint8_t *object) {
  const struct cs_async_class *class = cs_async_class_at(s->classes, index);
  const struct cs_async_task_members *task = cs_async_task(s->classes);
  struct cs_async_scan *scan = s->scan;
  struct cs_async_object out = {.address = address,
                                .class = index,
                                .next = CS_ASYNC_NO_OBJECT,
                                .leaf = CS_ASYNC_NO_CLASS,
                                .machine = class->machine};
  if (class->kind != CS_ASYNC_POOLED) {
    if (!has_room(class, task->flags) || !has_room(class, task->action) ||
        !has_room(class, task->continuation))
      return;
    out.state = (int32_t)half_at(object, task->flags);
    if ((out.state & COMPLETED) != 0) return;
    out.continuation = word_at(object, task->continuation);
    out.has_action = word_at(object, task->action) != 0;
  }
  if (class->context_at != 0 && has_room(class, class->context_at))
    out.context = word_at(object, class->context_at);
  if (class->kind == CS_ASYNC_TASK && class->link_at != 0)
    out.awaits = has_room(class, class->link_at) ? word_at(object, class->link_at) : 0;
  else if (class->kind != CS_ASYNC_TASK && class->by_reference)
    out.awaits = has_room(class, class->machine_at) ? word_at(object, class->machine_at) : 0;
  else if (class->kind != CS_ASYNC_TASK)
    read_machine(class, object, &out);
  // A pooled box that awaits nothing is in its pool.
  if (class->kind == CS_ASYNC_POOLED && out.awaits == 0 && out.end != CS_ASYNC_LEAF_AWAITER) return;
  if (scan->count == CS_ASYNC_MOST_OBJECTS) {
    scan->too_many++;
    return;
  }
  CS_APPEND(scan->objects, scan->count, scan->capacity, out);
}

// ---- The heap ----

// Returns the object's first `len` bytes, or NULL if they cannot be read.
static const uint8_t *view(struct scanner *s, const struct cs_async_heap_part *part, uint64_t at,
                           size_t len) {
  if (at >= s->window_at && at + len <= s->window_at + s->window_len)
    return s->window + (at - s->window_at);
  if (len > WINDOW || part->end - at < len) return NULL;
  s->window_len = part->end - at < WINDOW ? (size_t)(part->end - at) : WINDOW;
  s->window_at = at;
  if (cs_remote_read_large(s->remote, at, s->window, s->window_len)) return s->window;
  s->window_len = 0;
  return NULL;
}

static uint32_t class_of(struct scanner *s, uint64_t id) {
  if (id != s->last_id) s->last_class = cs_async_class_find(s->classes, id);
  s->last_id = id;
  return s->last_class;
}

// Returns where the next object is, if a gap begins here, or 0.
static uint64_t after_gap(struct scanner *s, uint64_t at) {
  const struct cs_async_heap *heap = s->heap;
  while (s->gap < heap->gap_count && heap->gaps[s->gap].begin < at) s->gap++;
  if (s->gap == heap->gap_count || heap->gaps[s->gap].begin != at) return 0;
  return heap->gaps[s->gap].end;
}

// Returns the address after an object that has no class yet: a thread is allocating it, so the
// thread's gap follows it.
static uint64_t after_unborn(const struct scanner *s, const struct cs_async_heap_part *part,
                             uint64_t at) {
  const struct cs_async_heap *heap = s->heap;
  for (size_t i = s->gap; i < heap->gap_count && heap->gaps[i].begin < part->end; i++)
    if (heap->gaps[i].begin > at) return heap->gaps[i].begin;
  return at + 8;
}

// Returns the size of the object, or 0 if it is not as expected. *stop: a collection is in
// progress.
static uint64_t scan_object(struct scanner *s, const struct cs_async_heap_part *part, uint64_t at,
                            bool *stop) {
  const uint8_t *object = view(s, part, at, 16);
  if (object == NULL) return 0;
  uint64_t id = word_at(object, 0);
  if (id == 0) return after_unborn(s, part, at) - at;
  *stop = (id & CLASS_BITS) != 0;
  uint32_t index = *stop ? CS_ASYNC_NO_CLASS : class_of(s, id);
  if (index == CS_ASYNC_NO_CLASS) return 0;
  const struct cs_async_class *class = cs_async_class_at(s->classes, index);
  uint32_t elements = class->element_bytes != 0 ? half_at(object, 8) : 0;
  uint64_t bytes =
      cs_async_heap_object_bytes(class->type.base_bytes, class->element_bytes, elements);
  if (bytes < SMALLEST || bytes > part->end - at) return 0;
  s->scan->seen++;
  if (class->kind == CS_ASYNC_TASK || class->kind == CS_ASYNC_BOX ||
      class->kind == CS_ASYNC_POOLED) {
    object = view(s, part, at, class->type.base_bytes);
    if (object != NULL) keep(s, at, index, object);
  }
  return bytes;
}

// Returns false if a collection is in progress.
static bool scan_part(struct scanner *s, const struct cs_async_heap_part *part) {
  uint64_t at = part->begin;
  bool stop = false;
  for (uint32_t i = 0; at < part->end; i++) {
    if (i % CHECK_CLOCK == 0 && cs_clock_now_ns() > s->deadline) {
      s->scan->late_bytes += part->end - at;
      return true;
    }
    uint64_t next = after_gap(s, at);
    if (next == 0) {
      uint64_t bytes = scan_object(s, part, at, &stop);
      if (stop) return false;
      if (bytes == 0) s->scan->lost_bytes += part->end - at;
      if (bytes == 0) return true;
      next = at + bytes;
    }
    at = next;
  }
  return true;
}

// ---- References ----

// Returns the index of the object at an address, which is usually close to the object `near`.
static uint32_t find_object(const struct cs_async_scan *scan, uint32_t near, uint64_t address) {
  size_t low = near, high = near, step = 1;
  if (scan->count == 0) return CS_ASYNC_NO_OBJECT;
  while (low > 0 && scan->objects[low].address > address) {
    low = low > step ? low - step : 0;
    step *= 2;
  }
  for (step = 1; high + 1 < scan->count && scan->objects[high].address < address; step *= 2)
    high = high + step < scan->count ? high + step : scan->count - 1;
  size_t at = CS_FIRST_NOT(i, low, high, scan->objects[i].address < address);
  return scan->objects[at].address == address ? (uint32_t)at : CS_ASYNC_NO_OBJECT;
}

static bool read_word(const struct scanner *s, uint64_t at, uint64_t *out) {
  return at != 0 && at % 8 == 0 && s->remote != NULL &&
         cs_remote_read(s->remote, at, out, sizeof *out);
}

static uint32_t class_at(struct scanner *s, uint64_t object) {
  uint64_t id;
  return read_word(s, object, &id) ? class_of(s, id) : CS_ASYNC_NO_CLASS;
}

static void add_edge(struct scanner *s, uint32_t to, uint32_t from) {
  struct cs_async_scan *scan = s->scan;
  CS_APPEND(scan->edges, scan->edge_count, scan->edge_capacity, (struct cs_async_edge){to, from});
}

// Follows a task's continuation to the task that it completes, or to a waiting thread. A box
// usually has what it awaits itself; but one with an awaiter of an unknown class awaits the task
// that leads to it.
static void follow(struct scanner *s, uint32_t from, uint64_t at, bool in_list) {
  for (int i = 0; i < MOST_LINKS && at != 0; i++) {
    uint32_t to = find_object(s->scan, from, at), size;
    if (to != CS_ASYNC_NO_OBJECT) {
      struct cs_async_object *object = &s->scan->objects[to];
      if (cs_async_class_at(s->classes, object->class)->kind == CS_ASYNC_TASK)
        add_edge(s, to, from);
      else if (object->end == CS_ASYNC_LEAF_AWAITER)
        object->next = from;
      return;
    }
    uint32_t index = class_at(s, at);
    if (index == CS_ASYNC_NO_CLASS) return;
    const struct cs_async_class *class = cs_async_class_at(s->classes, index);
    uint64_t link_at = at + class->link_at, item;
    if (class->kind == CS_ASYNC_WAIT) s->scan->objects[from].waited_for = true;
    if (class->kind == CS_ASYNC_LIST && !in_list &&
        cs_remote_read(s->remote, at + class->size_at, &size, 4) && read_word(s, link_at, &at)) {
      const uint32_t first = 16;  // of an array's items
      for (uint32_t k = 0; k < size && k < MOST_LIST; k++)
        if (read_word(s, at + first + 8ull * k, &item)) follow(s, from, item, true);
      return;
    }
    if ((class->kind != CS_ASYNC_DELEGATE && class->kind != CS_ASYNC_LINK) ||
        !read_word(s, link_at, &at))
      return;
  }
}

// A state machine that is an object of its own.
static void read_own_machine(struct scanner *s, struct cs_async_object *object) {
  static uint8_t bytes[WINDOW];
  uint64_t machine = object->awaits;
  object->awaits = 0;
  uint32_t index = machine != 0 ? class_at(s, machine) : CS_ASYNC_NO_CLASS;
  if (index == CS_ASYNC_NO_CLASS) return;
  cs_async_lay_out(s->classes, index);
  const struct cs_async_class *class = cs_async_class_at(s->classes, index);
  object->machine = index;
  if (class->type.base_bytes > sizeof bytes ||
      !cs_remote_read(s->remote, machine, bytes, class->type.base_bytes))
    return;
  read_machine(class, bytes, object);
}

static int by_machine(const void *a, const void *b) {
  const struct cs_async_alias *x = a, *y = b;
  return CS_ORDER(x->machine, y->machine);
}

static uint32_t find_alias(const struct cs_async_scan *scan, uint64_t machine) {
  const struct cs_async_alias key = {machine, 0};
  const struct cs_async_alias *found =
      scan->alias_count > 0
          ? bsearch(&key, scan->aliases, scan->alias_count, sizeof key, by_machine)
          : NULL;
  return found != NULL ? found->object : CS_ASYNC_NO_OBJECT;
}

static void find_awaited(struct scanner *s, uint32_t i) {
  struct cs_async_object *object = &s->scan->objects[i];
  uint32_t flags;
  if (object->awaits == 0) return;
  object->next = find_object(s->scan, i, object->awaits);
  if (object->next == CS_ASYNC_NO_OBJECT) object->next = find_alias(s->scan, object->awaits);
  if (object->next != CS_ASYNC_NO_OBJECT) return;
  object->end = CS_ASYNC_LEAF_LATE;
  if (s->remote == NULL) return;
  object->leaf = class_at(s, object->awaits);
  object->end = CS_ASYNC_LEAF_UNKNOWN;
  if (object->leaf == CS_ASYNC_NO_CLASS) return;
  enum cs_async_kind kind = cs_async_class_at(s->classes, object->leaf)->kind;
  object->end = CS_ASYNC_LEAF_OBJECT;
  if ((kind == CS_ASYNC_TASK || kind == CS_ASYNC_BOX) &&
      cs_remote_read(s->remote, object->awaits + cs_async_task(s->classes)->flags, &flags, 4) &&
      (flags & COMPLETED) != 0)
    object->end = CS_ASYNC_LEAF_DONE;
}

static bool is_late(struct scanner *s, size_t i) {
  if (i % CHECK_CLOCK == 0 && cs_clock_now_ns() > s->deadline) s->scan->late = true;
  return s->scan->late;
}

// After the deadline, machines are not read, so what they await stays unknown.
static void read_own_machines(struct scanner *s) {
  struct cs_async_scan *scan = s->scan;
  for (size_t i = 0; i < scan->count; i++) {
    struct cs_async_object *object = &scan->objects[i];
    const struct cs_async_class *class = cs_async_class_at(s->classes, object->class);
    if (class->kind == CS_ASYNC_TASK || !class->by_reference) continue;
    CS_APPEND(scan->aliases, scan->alias_count, scan->alias_capacity,
              (struct cs_async_alias){object->awaits, (uint32_t)i});
    if (!is_late(s, i)) {
      read_own_machine(s, object);
    } else {
      object->awaits = 0;
      object->end = CS_ASYNC_LEAF_LATE;
    }
  }
  cs_sort(scan->aliases, scan->alias_count, sizeof *scan->aliases, by_machine);
}

// An operation that there was no time to read may well have a label.
static void read_contexts(struct scanner *s) {
  struct cs_async_scan *scan = s->scan;
  struct cs_async_contexts *contexts = cs_async_contexts_new(s->remote, s->classes, &scan->labels);
  for (size_t i = 0; i < scan->count; i++) {
    struct cs_async_context found = {CS_ASYNC_CONTEXT_UNREAD, 0};
    if (!is_late(s, i)) found = cs_async_context_read(contexts, scan->objects[i].context);
    scan->objects[i].label = found.label;
    scan->objects[i].began_ns = found.began_ns;
  }
  cs_async_contexts_free(contexts);
}

static void follow_all(struct scanner *s) {
  struct cs_async_scan *scan = s->scan;
  for (; scan->followed < scan->count; scan->followed++) {
    if (s->remote != NULL && is_late(s, scan->followed)) return;
    find_awaited(s, (uint32_t)scan->followed);
    follow(s, (uint32_t)scan->followed, scan->objects[scan->followed].continuation, false);
  }
}

bool cs_async_scan(struct cs_remote *remote, struct cs_async_classes *classes,
                   const struct cs_async_heap *heap, uint64_t deadline_ns, bool contexts,
                   struct cs_async_scan *scan) {
  static uint8_t window[WINDOW];
  *scan = (struct cs_async_scan){.bytes = heap->bytes};
  struct scanner s = {.remote = remote,
                      .classes = classes,
                      .heap = heap,
                      .scan = scan,
                      .deadline = deadline_ns,
                      .last_class = CS_ASYNC_NO_CLASS,
                      .window = window};
  for (size_t i = 0; i < heap->part_count; i++)
    if (!scan_part(&s, &heap->parts[i])) return false;
  read_own_machines(&s);
  if (contexts) read_contexts(&s);
  follow_all(&s);
  return true;
}

void cs_async_scan_finish(struct cs_async_classes *classes, struct cs_async_scan *scan) {
  struct scanner s = {.classes = classes, .scan = scan};
  follow_all(&s);
}

void cs_async_scan_free(struct cs_async_scan *scan) {
  free(scan->objects);
  free(scan->edges);
  free(scan->aliases);
  cs_async_labels_free(&scan->labels);
  *scan = (struct cs_async_scan){.objects = NULL};
}
