// SPDX-License-Identifier: MIT
// What a thread waits for, by the methods of the runtime's libraries that lead to the wait: the
// outermost of them that stand together at the stack's leaf. `SemaphoreSlim.Wait` waits by
// `Monitor.Wait`, and is what is told. Named by type, since the methods between are inlined now and
// then. A wait that is made by the runtime's own idle threads says so. The agent's thread only.
// Signal-safe: no.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clr_names/names.h"
#include "sampling/agent.h"

enum { KNOWN = 1024, NAME_BYTES = 64 };  // ids are looked up by their low bits; later ones win

static struct waiter {
  uint32_t id;  // 0: none
  char name[NAME_BYTES];
} waiters[KNOWN];

// Threads of the runtime's own that wait for work.
static const struct {
  const char *type, *name;
} idle[] = {
    {"PortableThreadPool.WorkerThread", "[idle: thread pool's worker]"},
    {"PortableThreadPool.GateThread", "[idle: thread pool's gate]"},
    {"PortableThreadPool.WaitThread", "[thread pool's registered waits]"},
    {"PortableThreadPool.IOCompletionPoller", "[idle: thread pool's poller]"},
    {"TimerQueue", "[idle: timers]"},
};

// Those whose type alone does not say it.
static const struct {
  const char *type, *name;
} others[] = {
    {"Monitor", "Monitor.Wait"},
    {"Thread", "Thread.Join"},
};

// Of those that go on in other code when it is done, and whose names are of no use.
static bool runs_code(const struct cs_method_name *name) {
  return strncmp(name->type, "ThreadPool", 10) == 0 ||
         strcmp(name->type, "ExecutionContext") == 0 || strncmp(name->type, "Thread.", 7) == 0 ||
         strstr(name->method, "Execute") != NULL || strncmp(name->method, "Invoke", 6) == 0 ||
         strcmp(name->method, "StartCallback") == 0 ||
         strstr(name->method, "RunContinuation") != NULL;
}

static bool is_awaiter(const struct cs_method_name *name) {
  return strcmp(name->space, "System.Runtime.CompilerServices") == 0 &&
         strstr(name->type, "Task") != NULL && strncmp(name->method, "Get", 3) == 0;
}

static const char *fixed_name(const char *type) {
  for (unsigned i = 0; i < CS_COUNT(idle); i++)
    if (strcmp(type, idle[i].type) == 0) return idle[i].name;
  for (unsigned i = 0; i < CS_COUNT(others); i++)
    if (strcmp(type, others[i].type) == 0) return others[i].name;
  return NULL;
}

void cs_waiters_note(uint32_t id, const struct cs_method_name *name) {
  struct waiter *w = &waiters[id % KNOWN];
  bool awaiter = is_awaiter(name);
  if (!awaiter && strcmp(name->space, "System.Threading") != 0 &&
      strcmp(name->space, "System.Threading.Tasks") != 0)
    return;
  if (runs_code(name)) return;
  const char *fixed = fixed_name(name->type);
  if (strcmp(name->type, "Monitor") == 0 && strstr(name->method, "Enter") != NULL)
    fixed = "Monitor.Enter";  // a lock that is held: mode lock has it, too
  int len = (int)strcspn(name->type, "<");
  w->id = id;
  if (awaiter || strncmp(name->type, "Task<", 5) == 0)
    (void)snprintf(w->name, sizeof w->name, "Task");
  else if (fixed != NULL)
    (void)snprintf(w->name, sizeof w->name, "%s", fixed);
  else
    (void)snprintf(w->name, sizeof w->name, "%.*s", len, name->type);
}

bool cs_function_waits(uint32_t id, const char **name) {
  const struct waiter *w = &waiters[id % KNOWN];
  if (w->id != id) return false;
  *name = w->name;
  return true;
}

void cs_waiters_free(void) {
  memset(waiters, 0, sizeof waiters);
}
