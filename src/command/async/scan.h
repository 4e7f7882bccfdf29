// SPDX-License-Identifier: MIT
// The async operations on the heap of a stopped process: what each one awaits, and which tasks
// complete others. One thread.
#pragma once

#include "async/contexts.h"
#include "async/heap.h"

// What an object awaits if that is not itself in the list of objects.
enum cs_async_leaf {
  CS_ASYNC_LEAF_NONE,     // it awaits no object, or none was found
  CS_ASYNC_LEAF_OBJECT,   // an object of the class `leaf`, which is not followed
  CS_ASYNC_LEAF_AWAITER,  // an awaiter whose class is not the framework's; `leaf` is its field
  CS_ASYNC_LEAF_DONE,     // a task that has completed: the method has yet to be resumed
  CS_ASYNC_LEAF_UNKNOWN,  // something that could not be read
  CS_ASYNC_LEAF_LATE,     // something that there was no time to read
};

// A box, or a Task that has not completed.
struct cs_async_object {
  uint64_t address, awaits, continuation;
  uint64_t context;   // of a box: what its method was suspended with
  uint64_t began_ns;  // its Activity; 0: unknown
  uint32_t class;     // index
  uint32_t next;      // index of the object that it awaits; CS_ASYNC_NO_OBJECT: see `end`
  uint32_t leaf;      // class of CS_ASYNC_LEAF_OBJECT, or field of CS_ASYNC_LEAF_AWAITER
  int32_t state;      // of a box: the state of its state machine; of another Task: its flags
  uint32_t machine;
  uint32_t label;  // index into `labels`
  uint8_t end;     // enum cs_async_leaf
  bool has_state, has_action, waited_for;
};
#define CS_ASYNC_NO_OBJECT UINT32_MAX

// The completion of the Task `from` is awaited by `to`, a Task that is not a box, such as
// WhenAll's.
struct cs_async_edge {
  uint32_t to, from;
};

// An async iterator is awaited by its state machine, not by its box.
struct cs_async_alias {
  uint64_t machine;
  uint32_t object;
};

struct cs_async_scan {
  struct cs_async_object *objects;  // by address
  size_t count, capacity;
  struct cs_async_edge *edges;
  size_t edge_count, edge_capacity;
  uint64_t seen;                   // objects of any kind
  uint64_t bytes;                  // of the heap
  uint64_t late_bytes;             // that were not read before the deadline
  uint64_t lost_bytes;             // that could not be read as objects
  uint64_t too_many;               // tasks for which there was no room
  bool late;                       // not all tasks were followed before the deadline
  struct cs_async_alias *aliases;  // by machine
  size_t alias_count, alias_capacity;
  struct cs_async_labels labels;
  size_t followed;  // number of objects, from the first one on, whose references were followed
};

enum { CS_ASYNC_MOST_OBJECTS = 1 << 22 };

// Returns false if a collection is in progress, or the stop has interrupted one; the caller frees
// *scan.
bool cs_async_scan(struct cs_remote *remote, struct cs_async_classes *classes,
                   const struct cs_async_heap *heap, uint64_t deadline_ns, bool contexts,
                   struct cs_async_scan *scan);
// To be called when the process runs again: follows the remaining references, as far as that takes
// no further memory of the process.
void cs_async_scan_finish(struct cs_async_classes *classes, struct cs_async_scan *scan);
void cs_async_scan_free(struct cs_async_scan *scan);
