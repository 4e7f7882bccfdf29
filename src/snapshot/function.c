// SPDX-License-Identifier: MIT
// FunctionIDs: which method a managed frame belongs to, and whether it has metadata. Not for
// handlers.
//
// For jitted code the code header names the method; for ReadyToRun code the CLR is asked once per
// method start and the answer kept. Invariant: look-ups in the cache take no lock and make no call,
// so they may be made while a thread is held. All is forgotten when code dies, because starts and
// ids are used again then.
#include <stdlib.h>

#include "snapshot/snapshot.h"

enum { CACHE_BITS = 16, CACHE_SIZE = 1 << CACHE_BITS, PROBES = 16 };

// key: 0 free, 1 being written, else the method's start.
struct entry {
  uint64_t key;
  uint64_t value;  // FunctionID | enum cs_eh_role << 1 | dynamic; FunctionIDs are aligned to 8
};
static struct entry cache[CACHE_SIZE];

static uint32_t hash(uint64_t key) {
  return (uint32_t)((key * 0x9E3779B97F4A7C15ull) >> (64 - CACHE_BITS));
}

static bool look_up(uint64_t key, uint64_t *value) {
  for (uint32_t i = 0, at = hash(key); i < PROBES; i++, at = (at + 1) % CACHE_SIZE) {
    uint64_t found = cs_load_acquire(&cache[at].key);
    if (found == 0) return false;
    if (found != key) continue;
    *value = cs_load_acquire(&cache[at].value);
    if (cs_load_acquire(&cache[at].key) == key) return true;
  }
  return false;
}

// A full neighbourhood is not remembered: then the CLR is asked again, which is slower, not wrong.
static void remember(uint64_t key, uint64_t value) {
  for (uint32_t i = 0, at = hash(key); i < PROBES; i++, at = (at + 1) % CACHE_SIZE) {
    uint64_t found = 0;
    if (cs_cas(&cache[at].key, &found, 1)) {
      cs_store_release(&cache[at].value, value);
      cs_store_release(&cache[at].key, key);
      return;
    }
    if (found == key) {
      cs_store_release(&cache[at].value, value);
      return;
    }
  }
}

static void unpack(uint64_t value, struct cs_function *out) {
  out->id = value & ~7ull;
  out->dynamic = (value & 1) != 0;
  out->eh = (enum cs_eh_role)(value >> 1 & 3);
}

bool cs_function_cached(const struct cs_record *record, struct cs_function *out) {
  uint64_t value;
  if (record->method_start == 0) {  // its code could not be looked up: never known
    *out = (struct cs_function){0};
    return true;
  }
  if (!look_up(record->method_start, &value)) return false;
  unpack(value, out);
  // The code header is the truth: another method may have come to live at this address.
  return record->function_id == 0 || record->function_id == out->id;
}

// GetFunctionFromIP is preferred to its successors, because it may be called at any time and on any
// thread; it answers E_FAIL for methods without metadata, of which ReadyToRun code has none to
// name.
static FunctionID ask_for_function(const struct cs_record *record) {
  FunctionID id = 0;
  ICorProfilerInfo15 *info = cs_core.info;
  LPCBYTE ip = (LPCBYTE)(uintptr_t)record->method_start;
  if (record->function_id != 0) return (FunctionID)record->function_id;
  if (info == NULL || info->lpVtbl->GetFunctionFromIP(info, ip, &id) != S_OK) return 0;
  return id;
}

bool cs_function_resolve(const struct cs_record *record, struct cs_function *out) {
  if (cs_function_cached(record, out)) return true;
  BOOL dynamic = 0;
  FunctionID id = ask_for_function(record);
  ICorProfilerInfo15 *info = cs_core.info;
  if (id != 0 && info != NULL && info->lpVtbl->IsFunctionDynamic(info, id, &dynamic) != S_OK)
    dynamic = 0;
  enum cs_eh_role role = id != 0 && !dynamic ? cs_eh_role_of(id) : CS_EH_NONE;
  uint64_t value = (uint64_t)id | (uint64_t)role << 1 | (dynamic ? 1 : 0);
  if (id != 0) remember(record->method_start, value);
  unpack(value, out);
  return true;
}

void cs_functions_forget(void) {
  for (uint32_t i = 0; i < CACHE_SIZE; i++) cs_store_release(&cache[i].key, 0);
}
