// SPDX-License-Identifier: MIT
// A heap of plain words, for tests of await chains: objects, whose first word is a made-up method
// table, and the class information that handlers have.
#pragma once

#include "signal/awaits.h"

enum {
  FAKE_PARENT = 16,        // in a method table
  FAKE_CANONICAL = 24,     // the same
  FAKE_CONTINUATION = 16,  // in a Task
  FAKE_TARGET = 8,         // in a delegate
  FAKE_MEMBER = 24,        // in an object of another class that leads on
};

struct fake_heap {
  struct cs_awaits awaits;
  uint64_t words[1 << 12];
  uint32_t used;
  uint64_t object_class, task_class;  // method tables
};

void fake_heap_init(struct fake_heap *heap);
uint64_t fake_class(struct fake_heap *heap, uint64_t parent);
// A class with shared code: its canonical class is another one.
uint64_t fake_instantiation(struct fake_heap *heap, uint64_t parent, uint64_t canonical);
uint64_t fake_object(struct fake_heap *heap, uint64_t class);
uint64_t fake_class_of(uint64_t object);
void fake_set(uint64_t object, uint32_t offset, uint64_t value);
// Makes a class known to handlers; returns its index in their table.
uint32_t fake_know(struct fake_heap *heap, uint64_t class, uint32_t offset,
                   enum cs_await_kind kind);
// A class of boxes; and `count` boxes, each of a class of its own and awaited by the next one.
uint64_t fake_box_class(struct fake_heap *heap);
void fake_chain(struct fake_heap *heap, uint64_t *objects, uint32_t count);
// Fails the test unless the chain ended in this way and consists of the classes of these objects.
void fake_check_chain(const struct cs_await_chain *chain, enum cs_await_state want,
                      const uint64_t *objects, uint32_t count);
