// SPDX-License-Identifier: MIT
// The profilers that have started the library: several of one process may share it (the agent, a
// profiler under the drop-in, one that links the library), each with an ICorProfilerInfo of its
// own. Any thread, under the lock of start.c; not for handlers.
//
// Invariant: cs_library.info is some client's, and that client has not stopped. The runtime deletes
// a profiler's ICorProfilerInfo when it has detached, whatever its reference count.
#include "life/clients.h"

enum { MAX_CLIENTS = 64 };  // the runtime itself has one profiler and 32 that are only notified

static struct client {
  IUnknown *unknown;         // as the client has it. NULL: for walks of native threads only
  ICorProfilerInfo15 *info;  // a reference of ours
} clients[MAX_CLIENTS];
static uint32_t count;

static struct client *find(const IUnknown *unknown) {
  for (uint32_t i = 0; i < count; i++)
    if (clients[i].unknown == unknown) return &clients[i];
  return NULL;
}

bool cs_client_is_known(const IUnknown *unknown) {
  return find(unknown) != NULL;
}

bool cs_client_add(IUnknown *unknown, ICorProfilerInfo15 *info) {
  if (count == MAX_CLIENTS) return false;
  clients[count++] = (struct client){unknown, info};
  return true;
}

bool cs_client_remove(const IUnknown *unknown, ICorProfilerInfo15 **info) {
  struct client *client = find(unknown);
  if (client == NULL) return false;
  *info = client->info;
  *client = clients[--count];
  return true;
}

bool cs_client_any(ICorProfilerInfo15 **info) {
  *info = count > 0 ? clients[0].info : NULL;
  return count > 0;
}
