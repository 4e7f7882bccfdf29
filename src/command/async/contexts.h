// SPDX-License-Identifier: MIT
// What suspended methods work for: a box keeps the ExecutionContext that its method was suspended
// with, and that has the label of the current Activity, which the startup hook of a recording
// (src/agent/labels) sets there. One thread.
#pragma once

#include "async/classes.h"
#include "base/label.h"

// In place of a label's index.
enum {
  CS_ASYNC_NO_ACTIVITY,     // the context has no Activity, as that of a server's own methods
  CS_ASYNC_NO_LABEL,        // it has one, but no label of this recording
  CS_ASYNC_CONTEXT_UNREAD,  // it is not of a form that is known
  CS_ASYNC_LABELS,          // the first label
};

struct cs_async_route {
  uint32_t number;  // of the recording's endpoint
  char *name;
};
struct cs_async_labels {
  struct cs_label *items;  // the first CS_ASYNC_LABELS are none; `endpoint` has a route's number
  size_t count, capacity;
  struct cs_async_route *routes;
  size_t route_count, route_capacity;
};
void cs_async_labels_free(struct cs_async_labels *labels);

struct cs_async_context {
  uint32_t label;     // its index; 0: none
  uint64_t began_ns;  // when the Activity began (CLOCK_REALTIME); 0: unknown, or there is none
};

struct cs_async_contexts;
// `labels` receives what is found.
struct cs_async_contexts *cs_async_contexts_new(struct cs_remote *remote,
                                                struct cs_async_classes *classes,
                                                struct cs_async_labels *labels);
void cs_async_contexts_free(struct cs_async_contexts *contexts);
// Returns what the ExecutionContext at an address has, or 0 if there is none. The process is
// stopped.
struct cs_async_context cs_async_context_read(struct cs_async_contexts *contexts, uint64_t address);
