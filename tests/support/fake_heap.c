// SPDX-License-Identifier: MIT
#include "support/fake_heap.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { OBJECT_WORDS = 8 };

static uint64_t *at(uint64_t address) {
  return (uint64_t *)(uintptr_t)address;
}

static uint64_t alloc(struct fake_heap *heap) {
  uint64_t *object = &heap->words[heap->used];
  heap->used += OBJECT_WORDS;
  assert(heap->used <= CS_COUNT(heap->words));
  return (uint64_t)(uintptr_t)object;
}

void fake_heap_init(struct fake_heap *heap) {
  memset(heap, 0, sizeof *heap);
  heap->object_class = fake_class(heap, 0);
  heap->task_class = fake_class(heap, heap->object_class);
  heap->awaits.parent = FAKE_PARENT;
  heap->awaits.canonical = FAKE_CANONICAL;
  heap->awaits.continuation = FAKE_CONTINUATION;
  heap->awaits.target = FAKE_TARGET;
  heap->awaits.task = heap->task_class;
}

uint64_t fake_class(struct fake_heap *heap, uint64_t parent) {
  uint64_t class = alloc(heap);
  fake_set(class, FAKE_PARENT, parent);
  return class;
}

uint64_t fake_instantiation(struct fake_heap *heap, uint64_t parent, uint64_t canonical) {
  uint64_t class = fake_class(heap, parent);
  fake_set(class, FAKE_CANONICAL, canonical | 1);
  return class;
}

uint64_t fake_object(struct fake_heap *heap, uint64_t class) {
  uint64_t object = alloc(heap);
  fake_set(object, 0, class);
  return object;
}

uint64_t fake_class_of(uint64_t object) {
  return *at(object);
}

void fake_set(uint64_t object, uint32_t offset, uint64_t value) {
  at(object)[offset / 8] = value;
}

uint32_t fake_know(struct fake_heap *heap, uint64_t class, uint32_t offset,
                   enum cs_await_kind kind) {
  uint64_t *types = heap->awaits.types;
  uint32_t i = cs_await_slot(class, CS_AWAIT_TYPES);
  while (types[i] != 0 && CS_AWAIT_TYPE_CLASS(types[i]) != class)
    i = (i + 1) & (CS_AWAIT_TYPES - 1);
  types[i] = CS_AWAIT_TYPE(class, offset, kind);
  return i;
}

uint64_t fake_box_class(struct fake_heap *heap) {
  uint64_t class = fake_class(heap, heap->task_class);
  fake_know(heap, class, FAKE_CONTINUATION, CS_AWAIT_BOX);
  return class;
}

void fake_chain(struct fake_heap *heap, uint64_t *objects, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) objects[i] = fake_object(heap, fake_box_class(heap));
  for (uint32_t i = 0; i + 1 < count; i++) fake_set(objects[i], FAKE_CONTINUATION, objects[i + 1]);
}

void fake_check_chain(const struct cs_await_chain *chain, enum cs_await_state want,
                      const uint64_t *objects, uint32_t count) {
  assert_int_equal(chain->state, want);
  assert_int_equal(chain->count, count);
  for (uint32_t i = 0; i < count; i++)
    if (chain->words[i] != fake_class_of(objects[i])) fail_msg("awaiter %u is another one", i);
}
