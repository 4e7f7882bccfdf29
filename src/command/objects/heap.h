// SPDX-License-Identifier: MIT
// Objects of the core library in another process: static fields, and the fields of objects, by the
// names that they have in the source. Their places are the runtime's own, from its memory. Nothing
// is guessed: a name, a type or a kind that does not fit makes a function return false. While a
// collection moves objects, a result means nothing: the caller must not ask then. One thread.
#pragma once

#include "base/error.h"
#include "objects/classes.h"

// Names of types and fields are literals: they are known by their addresses when they are used
// again.
struct cs_heap;

// `modules` must live longer. The process need not be stopped. Returns NULL on failure; *err says
// why objects cannot be read.
struct cs_heap *cs_heap_new(struct cs_heap_modules *modules, struct cs_error *err);
void cs_heap_free(struct cs_heap *heap);

// The object in a static field.
enum cs_heap_static {
  CS_HEAP_UNKNOWN,
  CS_HEAP_UNUSED,  // the program has not used the class yet
  CS_HEAP_FOUND,
};
enum cs_heap_static cs_heap_static(struct cs_heap *heap, const char *space, const char *type,
                                   const char *field, uint64_t *object);

// Returns whether the object is of exactly that class; for a generic one, of any instantiation.
bool cs_heap_is(struct cs_heap *heap, uint64_t object, const char *space, const char *type);
bool cs_heap_class_is(struct cs_heap *heap, uint64_t class, const char *space, const char *type);
// The address of a field that the object's own class declares.
bool cs_heap_field(struct cs_heap *heap, uint64_t object, const char *field, enum cs_heap_kind kind,
                   uint64_t *at);
// Reads such a field, other than a struct; `out` has room for its kind.
bool cs_heap_get(struct cs_heap *heap, uint64_t object, const char *field, enum cs_heap_kind kind,
                 void *out);
// The address of a field of the struct at `at`.
bool cs_heap_struct_field(struct cs_heap *heap, uint64_t at, const char *space, const char *type,
                          const char *field, enum cs_heap_kind kind, uint64_t *out);
// The elements of an array of references, `count` words from `at` on.
bool cs_heap_array(struct cs_heap *heap, uint64_t array, uint64_t *at, uint32_t *count);

bool cs_heap_read(const struct cs_heap *heap, uint64_t at, void *out, size_t size);
