// SPDX-License-Identifier: MIT
// The shadow stack that shadow.c keeps by hooks, and what is compared with it. The shadow of a
// thread other than the calling one may be read only while that thread stands still.
#pragma once

#include "ours.h"

enum { SHADOW_MAX = 4096, SHADOWS = 256 };
struct shadow_entry {
  FunctionID id;
  UINT_PTR cfa;  // the caller's sp: the frame is gone once the thread's sp is at or above it
  bool filter;   // an exception filter's, pushed and popped by callbacks
};
struct shadow {
  uint32_t tid;
  uint32_t depth;
  uint32_t dispatch;  // exceptions on their way: between ExceptionThrown and its catcher's entry
  UINT_PTR dispatch_cfa;  // of the function that threw the first of them
  uint32_t overflow;      // deeper than SHADOW_MAX: not compared
  UINT_PTR catching;      // in a catcher's frame: it was entered and not left; 0: none
  FunctionID unwinding;   // the function that ExceptionUnwindFunctionEnter named
  bool catcher_found;     // of the exception that was thrown last: a managed frame will catch it
  uint32_t unwound_top;   // entries from depth up to here: unwound, as callbacks say; 0: none
  struct shadow_entry entries[SHADOW_MAX];
  UINT_PTR last_ip;  // of the last snapshot: the leaf, the entries, the frames
  uint32_t last_depth, last_count;
};
struct copy {  // taken in the walk's first callback, while the thread stands still
  struct stack stack;
  struct shadow *source;
  uint32_t depth, dispatch, unwound_top;
  bool taken, catcher_found;
  bool resuming;  // the catch handler has returned, the thread has not resumed
  struct shadow_entry entries[SHADOW_MAX];
  UINT_PTR last_ip;  // of the last snapshot: the leaf, the entries, the frames
  uint32_t last_depth, last_count;
};

struct shadow *shadow_of_self(void);  // NULL: no hook has run on this thread. May run in handlers
StackSnapshotCallback
    shadow_collect;  // client data: a struct copy with its source. May run in handlers
// One thread at a time; not in handlers. Returns false, after reporting it, if it is wrong.
bool shadow_judge(const struct copy *copy);
uint64_t shadow_taken(void);
uint64_t shadow_wanted(void);
void shadow_done(void);

// For foreign.c: the same, with walks that the threads take themselves, in a signal handler that is
// not the library's.
void foreign_prepare(void);  // before the library is started
void *foreign_main(void *unused);
void foreign_report(void);
