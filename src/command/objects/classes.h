// SPDX-License-Identifier: MIT
// The classes of another process, and their fields: what the runtime's own structures (MethodTable,
// EEClass, FieldDesc) say of them, with names from the modules' metadata. One thread.
#pragma once

#include "objects/modules.h"

struct cs_heap_class {
  uint64_t id;           // its MethodTable
  uint64_t canonical;    // that of the instantiation which has its description
  uint64_t description;  // its EEClass; 0: the class of free space
  uint64_t parent, module;
  uint32_t flags, base_bytes;
  uint32_t row;  // of TypeDef; of an array 0
};
// Returns false if the address is not a class's. An address counts as a class only if its canonical
// class names itself, as in the runtime's own check of a MethodTable.
bool cs_heap_class_read(const struct cs_world *world, uint64_t id, struct cs_heap_class *out);

// Returns whether the class is an instantiation of a generic one.
bool cs_heap_class_is_generic(const struct cs_heap_class *class);
// Reads a class's generic arguments, as the runtime's TypeHandles: the address of a MethodTable,
// or, for what has none, such as a pointer, another address with one of the lowest bits set.
// Returns their number, or 0 if there is none, or they cannot be read.
enum { CS_HEAP_MOST_ARGUMENTS = 64 };
uint32_t cs_heap_class_arguments(const struct cs_world *world, uint64_t id,
                                 uint64_t arguments[CS_HEAP_MOST_ARGUMENTS]);

// Returns the module of System.Object, or 0 if that is unknown.
uint64_t cs_heap_class_core_module(const struct cs_world *world);

// ---- Fields ----

// A field's type as the runtime keeps it (ELEMENT_TYPE_*).
enum cs_heap_kind {
  CS_HEAP_BOOLEAN = 0x02,
  CS_HEAP_I2 = 0x06,
  CS_HEAP_I4 = 0x08,
  CS_HEAP_U4 = 0x09,
  CS_HEAP_I8 = 0x0A,
  CS_HEAP_U8 = 0x0B,
  CS_HEAP_VALUE = 0x11,   // a struct
  CS_HEAP_OBJECT = 0x12,  // a reference
};
enum cs_heap_place {
  CS_HEAP_IN_OBJECT,
  CS_HEAP_STATIC,
  CS_HEAP_ELSEWHERE,  // one for each thread, or in the module's image
};

enum {
  CS_HEAP_MOST_FIELDS = 4096,
  CS_HEAP_HEADER = 8,  // an object's first word, which its fields follow
};
struct cs_heap_class_field {
  uint32_t row;     // of Field, in the module's metadata
  uint32_t offset;  // from the object's first field
  enum cs_heap_kind kind;
  enum cs_heap_place place;
};
struct cs_heap_class_fields {
  uint32_t count;
  struct cs_heap_class_field item[CS_HEAP_MOST_FIELDS];
};
// The fields that the class itself declares. Returns false if they cannot be read.
bool cs_heap_class_fields(const struct cs_world *world, const struct cs_heap_class *class,
                          struct cs_heap_class_fields *out);
// The one of that name. Returns false if there is none, or it cannot be read.
bool cs_heap_class_field(struct cs_heap_modules *modules, const struct cs_heap_class *class,
                         const char *name, struct cs_heap_class_field *out);
// Where objects of the class have a member that the class or a base of it declares: an offset from
// the object's beginning.
bool cs_heap_class_member(struct cs_heap_modules *modules, const struct cs_heap_class *class,
                          const char *name, uint32_t *offset);
