// SPDX-License-Identifier: MIT
// FunctionIDs: which method a managed frame belongs to, and whether it has metadata. Not for
// handlers.
//
// For jitted code the code header names the method; for ReadyToRun code the CLR is asked once per
// method start and the answer kept. Invariant: look-ups in the cache take no lock and make no call,
// so they may be made while a thread is held. All is forgotten when code dies, because starts and
// ids are used again then; so what was found out once is copied into the record, and no two
// look-ups of one frame need agree.
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

static void unpack(uint64_t value, struct cs_record *record) {
  record->function_id = value & ~7ull;
  record->dynamic = (value & 1) != 0;
  record->eh = (uint8_t)(value >> 1 & 3);
  record->resolved = true;
}

bool cs_function_cached(struct cs_record *record) {
  uint64_t value;
  if (record->resolved) return true;
  if (record->method_start == 0 || !look_up(record->method_start, &value)) return false;
  // The code header is the truth: another method may have come to live at this address.
  if (record->function_id != 0 && record->function_id != (value & ~7ull)) return false;
  unpack(value, record);
  return true;
}

// GetFunctionFromIP is preferred to its successors, because it may be called at any time and on any
// thread; its E_FAIL means a method without metadata. Any other failure says nothing of the method.
static bool ask_for_function(const struct cs_record *record, FunctionID *id) {
  ICorProfilerInfo15 *info = cs_core.info;
  *id = (FunctionID)record->function_id;
  if (*id != 0) return true;
  HRESULT hr = info->lpVtbl->GetFunctionFromIP(info, (LPCBYTE)(uintptr_t)record->method_start, id);
  if (hr == E_FAIL) *id = 0;
  return hr == S_OK || hr == E_FAIL;
}

static bool resolve_alive(struct cs_record *record) {
  ICorProfilerInfo15 *info = cs_core.info;
  FunctionID id;
  BOOL dynamic = 1;
  // A start of 0: the code could not be looked up, because the library is being stopped.
  if (record->method_start == 0 || info == NULL || !ask_for_function(record, &id)) return false;
  if (id != 0 && info->lpVtbl->IsFunctionDynamic(info, id, &dynamic) != S_OK) return false;
  enum cs_eh_role role = id != 0 && !dynamic ? cs_eh_role_of(id) : CS_EH_NONE;
  uint64_t value = (uint64_t)id | (uint64_t)role << 1 | (dynamic ? 1 : 0);
  remember(record->method_start, value);
  unpack(value, record);
  return true;
}

// A collectible module may be unloaded between the walk and this, and its FunctionIDs with it.
// Whoever unloads counts the death first and then waits for `resolving` (cs_core_code_died): either
// we see the death here, or it waits for us.
bool cs_function_resolve(struct cs_record *record) {
  if (cs_function_cached(record)) return true;
  if (!record->mortal) return resolve_alive(record);
  cs_add_seq(&cs_core.resolving, 1);
  uint32_t deaths = __atomic_load_n(&cs_core.module_deaths, __ATOMIC_SEQ_CST);
  bool resolved = (uint16_t)deaths == record->deaths && resolve_alive(record);
  cs_add_seq(&cs_core.resolving, (uint32_t)-1);
  return resolved;
}

// An entry that is being written is left to its writer: given away, it could get one writer's key
// and another one's value.
void cs_functions_forget(void) {
  for (uint32_t i = 0; i < CACHE_SIZE; i++) {
    uint64_t key = cs_load_acquire(&cache[i].key);
    if (key > 1) (void)cs_cas(&cache[i].key, &key, 0);
  }
}
