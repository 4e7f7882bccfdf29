// SPDX-License-Identifier: MIT
// What a thread waits for, by the methods of the runtime's libraries that lead to the wait: the
// outermost in the run of such methods at the leaf. `SemaphoreSlim.Wait`, for example, waits by
// `Monitor.Wait`, and is shown. The name is the type's, because methods in between are sometimes
// inlined. A wait of the runtime's own idle threads has a name that says so. Invariant: no method
// is forgotten while the recording lasts. The agent's thread only. Signal-safe: no.
#include "reporting/wait_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/grow.h"
#include "base/prefix.h"

enum { NAME_BYTES = 64 };

static struct waiter {
  uint32_t id;
  char name[NAME_BYTES];  // empty: a stub
} * waiters;              // by id, ascending
static size_t waiter_count, waiter_capacity;

static const char no_wait[] = "[no wait]";  // what sends no event

// The runtime's own threads that wait for work.
static const struct {
  const char *type, *name;
} idle[] = {
    {"PortableThreadPool.WorkerThread", "[idle: thread pool's worker]"},
    {"PortableThreadPool.GateThread", "[idle: thread pool's gate]"},
    {"PortableThreadPool.WaitThread", "[thread pool's registered waits]"},
    {"PortableThreadPool.IOCompletionPoller", "[idle: thread pool's poller]"},
    {"TimerQueue", "[idle: timers]"},
};

// Types whose name alone does not show what is waited for.
static const struct {
  const char *type, *name;
} others[] = {
    {"Monitor", "Monitor.Wait"},
    {"Thread", "Thread.Join"},
};

// Types of which the waiting method says more. For a WaitHandle, neither the stack nor the event
// shows whether it is an event, a mutex or a semaphore. `method` is a prefix.
static const struct {
  const char *space, *type, *method, *name;
} by_method[] = {
    {"System.Threading", "Thread", "Sleep", no_wait},
    {"System.Threading", "Monitor", "Enter",
     "Monitor.Enter"},  // a lock that is held: in lock mode, too
    {"System.Threading", "Monitor", "TryEnter", "Monitor.Enter"},
    {"System.Threading", "Monitor", "ReliableEnter", "Monitor.Enter"},
    {"System.Threading", "WaitHandle", "WaitOne", "WaitHandle.WaitOne"},
    {"System.Threading", "WaitHandle", "WaitAll", "WaitHandle.WaitAll"},
    {"System.Threading", "WaitHandle", "WaitAnyMultiple", "WaitHandle.WaitAny"},
    {"System.Threading", "WaitHandle", "WaitAny", "WaitHandle.WaitAny"},
    // WaitAny ends in a tail call of WaitMultiple, and WaitAll may be inlined into its caller.
    {"System.Threading", "WaitHandle", "WaitMultiple", "WaitHandle.WaitAny or WaitAll"},
    {"System.Diagnostics", "Process", "WaitForExit", "Process.WaitForExit"},
    {"System.Diagnostics", "ProcessWaitState", "WaitForExit", "Process.WaitForExit"},
};

// Returns whether the method calls the program's code, so that its name says nothing about the
// wait.
static bool runs_code(const struct cs_method_name *name) {
  return cs_has_prefix(name->type, "ThreadPool") || strcmp(name->type, "ExecutionContext") == 0 ||
         cs_has_prefix(name->type, "Thread.") || strstr(name->method, "Execute") != NULL ||
         cs_has_prefix(name->method, "Invoke") || strcmp(name->method, "StartCallback") == 0 ||
         strstr(name->method, "RunContinuation") != NULL;
}

static bool is_awaiter(const struct cs_method_name *name) {
  return strcmp(name->space, "System.Runtime.CompilerServices") == 0 &&
         strstr(name->type, "Task") != NULL && cs_has_prefix(name->method, "Get");
}

static const char *name_by_method(const struct cs_method_name *name) {
  for (unsigned i = 0; i < CS_COUNT(by_method); i++)
    if (strcmp(name->space, by_method[i].space) == 0 &&
        strcmp(name->type, by_method[i].type) == 0 &&
        cs_has_prefix(name->method, by_method[i].method))
      return by_method[i].name;
  return NULL;
}

static const char *name_by_type(const char *type) {
  for (unsigned i = 0; i < CS_COUNT(idle); i++)
    if (strcmp(type, idle[i].type) == 0) return idle[i].name;
  for (unsigned i = 0; i < CS_COUNT(others); i++)
    if (strcmp(type, others[i].type) == 0) return others[i].name;
  return NULL;
}

static struct waiter *add(uint32_t id) {
  struct waiter *all = cs_grow_or_not(waiters, waiter_count, &waiter_capacity, sizeof *all);
  if (all == NULL) return NULL;
  waiters = all;
  waiters[waiter_count].id = id;
  return &waiters[waiter_count++];
}

// Where Monitor.Wait, or another method that calls the runtime, was inlined, the leaf is the stub
// that it calls.
static bool note_stub(uint32_t id) {
  struct waiter *w = add(id);
  if (w != NULL) w->name[0] = '\0';
  return w != NULL;
}

bool cs_wait_name_note(uint32_t id, const struct cs_method_name *name) {
  if (name->kind == CS_NAME_STUB) return note_stub(id);
  bool awaiter = is_awaiter(name);
  const char *fixed = name_by_method(name);
  if (!awaiter && fixed == NULL && strcmp(name->space, "System.Threading") != 0 &&
      strcmp(name->space, "System.Threading.Tasks") != 0)
    return true;
  if (runs_code(name)) return true;
  if (fixed == NULL) fixed = name_by_type(name->type);
  int len = (int)strcspn(name->type, "<");
  struct waiter *w = add(id);
  if (w == NULL) return false;
  if (awaiter || cs_has_prefix(name->type, "Task<"))
    (void)snprintf(w->name, sizeof w->name, "Task");
  else if (fixed != NULL)
    (void)snprintf(w->name, sizeof w->name, "%s", fixed);
  else
    (void)snprintf(w->name, sizeof w->name, "%.*s", len, name->type);
  return true;
}

static int compare_ids(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = ((const struct waiter *)b)->id;
  return (x > y) - (x < y);
}

bool cs_wait_name_of(uint32_t id, const char **name) {
  const struct waiter *w =
      waiter_count > 0 ? bsearch(&id, waiters, waiter_count, sizeof *waiters, compare_ids) : NULL;
  if (w == NULL) return false;
  if (w->name[0] == '\0') return *name == NULL;
  *name = w->name;
  return true;
}

bool cs_wait_name_is_a_wait(const char *name) {
  return strcmp(name, no_wait) != 0;
}

void cs_wait_names_free(void) {
  free(waiters);
  waiters = NULL;
  waiter_count = waiter_capacity = 0;
}
