// SPDX-License-Identifier: MIT
// The async operations on the heap of a stopped process: what each awaits, and which tasks lead to
// which others when they complete. One thread.
#ifndef CS_ASYNC_SCAN_H
#define CS_ASYNC_SCAN_H

#include "async/classes.h"
#include "async/heap.h"

// What an object awaits that is none of the others.
enum cs_async_leaf {
  CS_ASYNC_LEAF_NONE,     // it awaits no object, or none was found
  CS_ASYNC_LEAF_OBJECT,   // an object of `leaf`, which is not followed
  CS_ASYNC_LEAF_AWAITER,  // an awaiter whose class is not the framework's; `leaf` is its field
  CS_ASYNC_LEAF_DONE,     // a task that has completed: the method has yet to be resumed
  CS_ASYNC_LEAF_UNKNOWN,  // something that could not be read
  CS_ASYNC_LEAF_LATE,     // something that there was no time to read
};

// A box, or a Task that has not completed.
struct cs_async_object {
  uint64_t address, awaits, continuation;
  uint32_t class;  // index
  uint32_t next;   // the object that it awaits; CS_ASYNC_NO_OBJECT: see `end`
  uint32_t leaf;   // class of CS_ASYNC_LEAF_OBJECT, or field of CS_ASYNC_LEAF_AWAITER
  int32_t state;   // of a box's state machine; of another Task its flags
  uint32_t machine;
  uint8_t end;  // enum cs_async_leaf
  bool has_state, has_action, waited_for;
};
#define CS_ASYNC_NO_OBJECT UINT32_MAX

// When `from`, a Task, completes, `to` learns of it, which is no box: WhenAll's Task, for instance.
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
  uint64_t late_bytes;             // that were not looked at before the time was over
  uint64_t lost_bytes;             // that were not as expected
  uint64_t too_many;               // tasks for which there was no room
  bool late;                       // not all tasks were followed, either
  struct cs_async_alias *aliases;  // by machine
  size_t alias_count, alias_capacity;
  size_t followed;  // the first so many objects' references are
};

enum { CS_ASYNC_MOST_OBJECTS = 1 << 22 };

// False: the collector is at work, or has been interrupted by the stop; *scan is to be freed.
bool cs_async_scan(struct cs_remote *remote, struct cs_async_classes *classes,
                   const struct cs_async_heap *heap, uint64_t deadline_ns,
                   struct cs_async_scan *scan);
// To be called when the process runs again: follows what references can be followed without its
// memory.
void cs_async_scan_finish(struct cs_async_classes *classes, struct cs_async_scan *scan);
void cs_async_scan_free(struct cs_async_scan *scan);

#endif
