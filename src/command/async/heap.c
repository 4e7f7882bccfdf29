// SPDX-License-Identifier: MIT
// Finds the parts of the managed heap: regions, or segments of a collector that has none, from the
// collector's variables for the debugger. Invariants: a list is followed no further than it can be
// long; a part has a plausible place and size, or the heap counts as unknown; while the collector
// says that its structures are not valid, nothing is read of them. One thread at a time.
// Signal-safe: no.
#include "async/heap.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "util/map.h"

enum {
  // The collector's variables (GcDacVars): words. The first has the version, the next two are
  // values, all others are addresses.
  GENERATION_SIZE = 1,
  GENERATIONS = 2,
  GENERATION_TABLE = 6,
  EPHEMERAL_SEGMENT = 10,
  ALLOC_ALLOCATED = 15,
  HEAP_COUNT = 22,
  HEAPS = 23,
  INVALID_COUNT = 24,
  HEAP_FIELDS = 30,
  GENERATION_FIELDS = 31,
  VARS = 32,
  // Indices of the tables of offsets, of 4 bytes each.
  FIELD_CONTEXT = 0,
  FIELD_SEGMENT = 1,
  FIELD_ALLOC_ALLOCATED = 0,
  FIELD_EPHEMERAL = 1,
  FIELD_GENERATIONS = 18,
  HEAP_FIELD_COUNT = 19,
  // Words of a segment, or region.
  SEGMENT_ALLOCATED = 0,
  SEGMENT_RESERVED = 2,
  SEGMENT_MEM = 4,
  SEGMENT_NEXT = 6,
  SEGMENT_WORDS = 7,
  MOST_GENERATIONS = 16,
  MOST_GENERATION_BYTES = 4096,
  MOST_HEAPS = 1024,
  MOST_SEGMENTS = 1 << 20,
  MOST_THREADS = 1 << 16,
  SMALLEST_OBJECT = 24,  // one follows each gap, so that something has the gap's end
};

struct source {
  struct cs_remote *remote;
  struct cs_async_heap *heap;
  uint64_t vars[VARS];
  int32_t context_at, segment_at;
  uint32_t segments;  // that were seen
};

static bool read_word(const struct source *s, uint64_t at, uint64_t *out) {
  return at != 0 && cs_remote_read(s->remote, at, out, sizeof *out);
}

static void add_gap(struct cs_async_heap *heap, uint64_t begin, uint64_t limit) {
  if (begin == 0 || limit < begin) return;
  CS_APPEND(heap->gaps, heap->gap_count, heap->gap_capacity,
            (struct cs_async_heap_gap){begin, limit + SMALLEST_OBJECT});
}

static bool add_part(struct cs_async_heap *heap, uint64_t begin, uint64_t end) {
  if (end < begin || begin == 0 || begin % 8 != 0 || end >> CS_ADDRESS_BITS != 0) return false;
  if (end == begin) return true;
  CS_APPEND(heap->parts, heap->part_count, heap->part_capacity,
            (struct cs_async_heap_part){begin, end});
  return true;
}

// `ephemeral`: the segment that new objects go to, up to `allocated`.
static bool add_segments(struct source *s, uint64_t at, uint64_t ephemeral, uint64_t allocated) {
  uint64_t segment[SEGMENT_WORDS];
  for (; at != 0; at = segment[SEGMENT_NEXT]) {
    if (s->segments++ == MOST_SEGMENTS || at % 8 != 0 ||
        !cs_remote_read(s->remote, at, segment, sizeof segment))
      return false;
    uint64_t end = at == ephemeral ? allocated : segment[SEGMENT_ALLOCATED];
    if (end > segment[SEGMENT_RESERVED] || !add_part(s->heap, segment[SEGMENT_MEM], end))
      return false;
  }
  return true;
}

static bool add_generations(struct source *s, uint64_t table, uint64_t ephemeral,
                            uint64_t allocated) {
  for (uint64_t i = 0; i < s->vars[GENERATIONS]; i++) {
    uint64_t generation = table + i * s->vars[GENERATION_SIZE], context[2], first;
    if (!cs_remote_read(s->remote, generation + (uint32_t)s->context_at, context, sizeof context) ||
        !read_word(s, generation + (uint32_t)s->segment_at, &first) ||
        !add_segments(s, first, ephemeral, allocated))
      return false;
    add_gap(s->heap, context[0], context[1]);
  }
  return true;
}

static bool add_workstation(struct source *s) {
  uint64_t ephemeral, allocated;
  return read_word(s, s->vars[EPHEMERAL_SEGMENT], &ephemeral) &&
         read_word(s, s->vars[ALLOC_ALLOCATED], &allocated) &&
         add_generations(s, s->vars[GENERATION_TABLE], ephemeral, allocated);
}

static bool add_server(struct source *s, uint32_t heaps) {
  int32_t fields[HEAP_FIELD_COUNT];
  uint64_t list, heap, ephemeral, allocated;
  if (!cs_remote_read(s->remote, s->vars[HEAP_FIELDS], fields, sizeof fields) ||
      fields[FIELD_ALLOC_ALLOCATED] < 0 || fields[FIELD_EPHEMERAL] < 0 ||
      fields[FIELD_GENERATIONS] < 0 || !read_word(s, s->vars[HEAPS], &list))
    return false;
  for (uint32_t i = 0; i < heaps; i++)
    if (!read_word(s, list + 8ull * i, &heap) ||
        !read_word(s, heap + (uint32_t)fields[FIELD_EPHEMERAL], &ephemeral) ||
        !read_word(s, heap + (uint32_t)fields[FIELD_ALLOC_ALLOCATED], &allocated) ||
        !add_generations(s, heap + (uint32_t)fields[FIELD_GENERATIONS], ephemeral, allocated))
      return false;
  return true;
}

// Each thread has a stretch of the heap to itself, of which it has used the beginning.
static bool add_threads(struct source *s) {
  const struct cs_layout *l = &cs_remote_world(s->remote)->layout;
  uint64_t store, link, locals, context[2];
  if (!read_word(s, l->thread_store, &store) ||
      !read_word(s, store + l->thread_store_fields.first_link, &link))
    return false;
  for (int i = 0; i < MOST_THREADS && link != 0; i++) {
    uint64_t thread = link - l->thread.link_next;
    if (!cs_remote_read(s->remote, thread + l->thread.locals, &locals, 8)) return false;
    uint64_t at = locals + l->allocation.context + l->allocation.gc_context;
    if (locals != 0 &&
        cs_remote_read(s->remote, at + l->allocation.pointer, &context[0], sizeof context[0]) &&
        cs_remote_read(s->remote, at + l->allocation.limit, &context[1], sizeof context[1]))
      add_gap(s->heap, context[0], context[1]);
    if (!cs_remote_read(s->remote, link, &link, 8)) return false;
  }
  return link == 0;
}

static int by_begin(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return CS_ORDER(x, y);
}

// Segments, unlike regions, are shared by generations, and are then in several lists.
static bool put_in_order(struct cs_async_heap *heap) {
  size_t kept = 0;
  cs_sort(heap->parts, heap->part_count, sizeof *heap->parts, by_begin);
  cs_sort(heap->gaps, heap->gap_count, sizeof *heap->gaps, by_begin);
  for (size_t i = 0; i < heap->part_count; i++) {
    if (kept > 0 && heap->parts[i].begin == heap->parts[kept - 1].begin) continue;
    if (kept > 0 && heap->parts[i].begin < heap->parts[kept - 1].end) return false;
    heap->parts[kept++] = heap->parts[i];
    heap->bytes += heap->parts[i].end - heap->parts[i].begin;
  }
  heap->part_count = kept;
  return true;
}

static bool has_fields(const struct cs_layout *l) {
  return l->thread.locals != CS_NO_FIELD && l->allocation.context != CS_NO_FIELD &&
         l->allocation.gc_context != CS_NO_FIELD && l->allocation.pointer != CS_NO_FIELD &&
         l->allocation.limit != CS_NO_FIELD;
}

static bool read_source(struct source *s, uint32_t *heaps) {
  int32_t fields[FIELD_SEGMENT + 1];
  uint64_t vars = cs_remote_gc_variables(s->remote);
  uint64_t list = 0;
  *heaps = 0;
  if (vars == 0 || !has_fields(&cs_remote_world(s->remote)->layout) ||
      !cs_remote_read(s->remote, vars, s->vars, sizeof s->vars) ||
      !cs_remote_read(s->remote, s->vars[GENERATION_FIELDS], fields, sizeof fields))
    return false;
  s->context_at = fields[FIELD_CONTEXT];
  s->segment_at = fields[FIELD_SEGMENT];
  // Only a collector with several heaps has this list.
  if (s->vars[HEAPS] != 0 && !read_word(s, s->vars[HEAPS], &list)) return false;
  if (list != 0 && (!cs_remote_read(s->remote, s->vars[HEAP_COUNT], heaps, 4) || *heaps == 0 ||
                    *heaps > MOST_HEAPS))
    return false;
  return s->context_at >= 0 && s->segment_at >= 0 && s->vars[GENERATIONS] > 0 &&
         s->vars[GENERATIONS] <= MOST_GENERATIONS &&
         s->vars[GENERATION_SIZE] <= MOST_GENERATION_BYTES;
}

enum cs_async_heap_state cs_async_heap_find(struct cs_remote *remote, struct cs_async_heap *heap,
                                            struct cs_error *err) {
  static const char unknown[] =
      "the heap of process %d is not described as those of .NET 9 and 10 are";
  struct source s = {.remote = remote, .heap = heap};
  uint32_t heaps;
  int32_t invalid;
  heap->part_count = heap->gap_count = 0;
  heap->bytes = 0;
  if (!read_source(&s, &heaps) ||
      !cs_remote_read(remote, s.vars[INVALID_COUNT], &invalid, sizeof invalid)) {
    (void)cs_error_set(err, unknown, cs_remote_world(remote)->mem.pid);
    return CS_ASYNC_HEAP_UNKNOWN;
  }
  if (invalid != 0) return CS_ASYNC_HEAP_COLLECTED;
  if ((heaps > 0 ? add_server(&s, heaps) : add_workstation(&s)) && add_threads(&s) &&
      put_in_order(heap))
    return CS_ASYNC_HEAP_FOUND;
  (void)cs_error_set(err, unknown, cs_remote_world(remote)->mem.pid);
  return CS_ASYNC_HEAP_UNKNOWN;
}

void cs_async_heap_free(struct cs_async_heap *heap) {
  free(heap->parts);
  free(heap->gaps);
  *heap = (struct cs_async_heap){.parts = NULL};
}
