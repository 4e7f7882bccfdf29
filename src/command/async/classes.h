// SPDX-License-Identifier: MIT
// The classes of a stopped process's objects, as far as chains of awaits need them: which part an
// object of the class has in a chain, and where its members are. One thread.
#pragma once

#include "objects/classes.h"
#include "util/map.h"

enum cs_async_kind {
  CS_ASYNC_NOTHING,
  CS_ASYNC_TASK,      // a Task that is no async method's
  CS_ASYNC_BOX,       // an async method's Task
  CS_ASYNC_POOLED,    // an async method's box that is no Task
  CS_ASYNC_DELEGATE,  // leads to its target
  CS_ASYNC_LINK,      // a continuation that refers to another object
  CS_ASYNC_LIST,      // continuations
  CS_ASYNC_WAIT,      // a thread's wait for a Task
};

// Where a state machine keeps what it awaits.
struct cs_async_awaiter {
  uint32_t begin, end;  // from the object's beginning
  uint32_t reference;   // to what is awaited; 0: there is none
  uint32_t field;       // its row, in the machine's module
  bool is_known;        // the framework's own, or a reference itself: `reference` is what it awaits
};

struct cs_async_class {
  struct cs_heap_class type;
  uint32_t element_bytes;
  uint32_t module;  // number
  uint32_t parent;  // index, or CS_ASYNC_NO_CLASS
  enum cs_async_kind kind;
  bool is_value, has_references;
  const char *core_name;  // as in the source; NULL: it is not the framework's core library's
  uint32_t link_at;       // offset of the reference to the next object, 0: none; LIST: to its array
  uint32_t size_at;       // LIST: offset of the number of items
  uint32_t context_at;    // a box: offset of its ExecutionContext; 0: unknown
  // A box: its method's state machine, which is in the box, or an object of its own.
  uint32_t machine;     // its class; CS_ASYNC_NO_CLASS: of an unknown class
  uint32_t machine_at;  // where it is, or the reference to it
  bool by_reference;
  // A state machine of its own, or a box with one inside: offsets from the object's beginning.
  bool laid_out, has_state;
  uint32_t state_at;
  struct cs_async_awaiter *awaiters;
  uint32_t awaiter_count;
};
#define CS_ASYNC_NO_CLASS UINT32_MAX

struct cs_async_classes;
// Reads what does not change: the process need not be stopped yet. Returns NULL, with the reason in
// *err.
struct cs_async_classes *cs_async_classes_new(struct cs_remote *remote, struct cs_error *err);
void cs_async_classes_free(struct cs_async_classes *classes);

// Returns the index of a class by its MethodTable, or CS_ASYNC_NO_CLASS if there is none. The
// process is stopped.
uint32_t cs_async_class_find(struct cs_async_classes *classes, uint64_t id);
// Valid until the next class is looked for.
const struct cs_async_class *cs_async_class_at(const struct cs_async_classes *classes,
                                               uint32_t index);
// Where an object has a member of this class or of a base: an offset from the object's beginning.
bool cs_async_class_member(struct cs_async_classes *classes, uint32_t index, const char *name,
                           uint32_t *offset);
// Fills in the state and the awaiters of a state machine that is an object of its own.
void cs_async_lay_out(struct cs_async_classes *classes, uint32_t index);
// Members of Task, in an object.
struct cs_async_task_members {
  uint32_t flags, action, continuation;
};
const struct cs_async_task_members *cs_async_task(const struct cs_async_classes *classes);

// ---- Names and lines (names.c). The process runs again ----
// "Namespace.Type" as in the source. Returns false if it cannot be found out.
bool cs_async_class_name(struct cs_async_classes *classes, uint32_t index, char *text, size_t cap);
// The class of a machine's awaiter, which its field is declared with.
bool cs_async_awaiter_name(struct cs_async_classes *classes, uint32_t machine, uint32_t field,
                           char *text, size_t cap);
// The name of a state machine's method, and the line of the await that is its state's.
bool cs_async_method_name(struct cs_async_classes *classes, uint32_t machine, char *text,
                          size_t cap);
bool cs_async_line(struct cs_async_classes *classes, struct cs_lines *lines, uint32_t machine,
                   int32_t state, struct cs_line *out);
// The IL offset at which the method's code sets a state. Returns false if it does so nowhere, or at
// several places.
bool cs_async_find_state(const uint8_t *code, size_t size, int32_t state, uint32_t *il);

// Returns the modules, of which classes have numbers.
struct cs_heap_modules *cs_async_modules_of(struct cs_async_classes *classes);
