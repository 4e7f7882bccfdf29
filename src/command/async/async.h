// SPDX-License-Identifier: MIT
// `clrsnap async`: the suspended async operations of another process, from outside: there is no
// agent, and the runtime does nothing. One thread.
#pragma once

#include "async/scan.h"
#include "async/tree.h"
#include "base/error.h"

// How many operations end at a node of the tree with one label. An operation that awaits several
// things at once is divided among them.
struct cs_async_end {
  uint32_t node, label;
  double operations;
};
struct cs_async_ends {
  struct cs_async_end *items;
  size_t count, capacity;
  struct cs_map by_place;  // by node and label
};

struct cs_async {
  int pid;
  char version[CS_REMOTE_VERSION_BYTES];  // of the runtime; "": unknown
  char *command;
  uint64_t taken_ns;    // when (CLOCK_REALTIME)
  uint64_t stopped_ns;  // how long the process was stopped while its heap was read
  uint32_t tries;       // earlier stops without a result, because a collection was in progress
  uint64_t tried_ns;    // the total time of these stops
  uint64_t heap_bytes, seen, late_bytes, lost_bytes, too_many;
  uint64_t suspended;   // async methods that await something
  uint64_t operations;  // chains
  bool cut;             // chains were left out: they fork too often
  bool late;            // not everything was read before the deadline
  struct cs_async_tree tree;
  struct cs_async_ends ends;
  struct cs_async_labels labels;
};

struct cs_async_options {
  double limit_s;  // the longest time for which the process is stopped
  uint32_t tries;  // stops while the collector is at work, at most; 0: hundreds
  bool contexts;   // what the operations work for is read, too
};

// Returns NULL, with the reason in `err`.
struct cs_async *cs_async_take(int pid, const struct cs_async_options *options,
                               struct cs_error *err);
// The same for a process that is read repeatedly: `remote` stays open.
struct cs_async *cs_async_take_from(struct cs_remote *remote, int pid,
                                    const struct cs_async_options *options, struct cs_error *err);
void cs_async_free(struct cs_async *async);

// ---- graph.c ----
// Returns the steps of the tree that stand for objects.
struct cs_async_namer {
  uint32_t (*method)(void *data, const struct cs_async_object *object, const char *note);
  uint32_t (*task)(void *data, const struct cs_async_object *object);
  uint32_t (*leaf)(void *data, const struct cs_async_object *object);
  uint32_t (*thread)(void *data);  // a thread that waits for a task
  bool (*is_method)(void *data, const struct cs_async_object *object);
  void *data;
};
// Merges all chains of the scan into async->tree, and counts them.
void cs_async_merge(const struct cs_async_scan *scan, const struct cs_async_namer *namer,
                    struct cs_async *async);
