// SPDX-License-Identifier: MIT
// FunctionIDs: which method a managed frame belongs to, and whether it has metadata. Signal-safe up
// to cs_function_read; the rest is not.
//
// The code header of jitted code names the method, and the entry points of its image do for
// ReadyToRun code (codemap/method.h); its MethodDesc has the rest. The CLR is asked only if that
// memory cannot be read. Results are cached per method start. Invariant: look-ups in the cache take
// no lock and make no call, so they are allowed while a thread is held. The cache is emptied when
// code dies, because starts and ids are reused; so two look-ups of one frame may differ, and the
// result is copied into the record.
#include "life/function.h"

#include <unistd.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/log.h"
#include "codemap/method.h"
#include "life/eh.h"
#include "life/epoch.h"
#include "life/library.h"
#include "life/permanent.h"

enum { CACHE_BITS = 16, CACHE_SIZE = 1 << CACHE_BITS, PROBES = 16 };

// key: 0 free, 1 being written, else the method's start.
struct entry {
  uint64_t key;
  uint64_t value;  // FunctionID | enum cs_eh_role << 1 | dynamic; FunctionIDs are aligned to 8
};
static struct entry cache[CACHE_SIZE];

// Methods near each other share a page of the cache, since the first use of a page takes long.
static uint32_t place_of(uint64_t key) {
  enum { IN_PAGE = 8 };
  uint32_t page = (uint32_t)cs_hash_word(key >> 13, CACHE_BITS - IN_PAGE);
  return page << IN_PAGE | (uint32_t)(key >> 5 & ((1 << IN_PAGE) - 1));
}

static bool look_up(uint64_t key, uint64_t *value) {
  for (uint32_t i = 0, at = place_of(key); i < PROBES; i++, at = (at + 1) % CACHE_SIZE) {
    uint64_t found = cs_load_acquire(&cache[at].key);
    if (found == 0) return false;
    if (found != key) continue;
    *value = cs_load_acquire(&cache[at].value);
    if (cs_load_acquire(&cache[at].key) == key) return true;
  }
  return false;
}

// If all probed entries are taken, nothing is remembered, and the next look-up is slower.
static void remember(uint64_t key, uint64_t value) {
  for (uint32_t i = 0, at = place_of(key); i < PROBES; i++, at = (at + 1) % CACHE_SIZE) {
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

static bool cached(struct cs_record *record) {
  uint64_t value;
  if (record->method_start == 0 || !look_up(record->method_start, &value)) return false;
  // The code header decides: another method may be at this address by now.
  if (record->function_id != 0 && record->function_id != (value & ~7ull)) return false;
  unpack(value, record);
  return true;
}

static uint64_t pack(uint64_t function_id, enum cs_eh_role role, bool dynamic) {
  return function_id | (uint64_t)role << 1 | (dynamic ? 1 : 0);
}

// Whether what is read in the runtime's memory agrees with the CLR (cs_function_check).
enum { OPEN, TRUSTED, DISTRUSTED };
static uint32_t memory;

static bool read_method(const struct cs_record *record, uint64_t *value) {
  const struct cs_world *world = &cs_library.world;
  uint64_t id = record->function_id, start;
  struct cs_method method;
  if (record->method_start == 0) return false;
  if (id == 0 &&
      (record->kind != CS_CODE_R2R || !cs_method_of_r2r(world, record->method_start, &id, &start)))
    return false;
  // In trusted memory, what is never unloaded needs no guarded reads, each of which is a system
  // call.
  if (!(record->collectible ? cs_method_read : cs_method_read_permanent)(world, id, &method))
    return false;
  enum cs_eh_role role = method.dynamic ? CS_EH_NONE : cs_eh_role_of(method.module, method.token);
  *value = pack(id, role, method.dynamic);
  return true;
}

void cs_function_look_ahead(const struct cs_record *record) {
  if (record->function_id != 0)
    __builtin_prefetch((const void *)(uintptr_t)record->function_id);
  else
    __builtin_prefetch(&cache[place_of(record->method_start)]);
}

bool cs_function_read(struct cs_record *record) {
  uint64_t value;
  if (record->resolved) return true;
  bool trusted = cs_load_acquire(&memory) == TRUSTED;
  // Permanent jitted code names its MethodDesc, which has the rest, as quickly as the cache.
  bool named = trusted && record->kind == CS_CODE_JIT && record->function_id != 0 &&
               record->method_start != 0 && !record->collectible;
  if (!named && cached(record)) return true;
  if (record->may_be_gone || !trusted || !read_method(record, &value)) return false;
  if (!named) remember(record->method_start, value);
  unpack(value, record);
  return true;
}

// GetFunctionFromIP is preferred to its successors, because it may be called at any time and on any
// thread. Its E_FAIL means a method without metadata; other failures say nothing about the method.
static bool ask_for_function(const struct cs_record *record, FunctionID *id) {
  ICorProfilerInfo15 *info = cs_library.info;
  *id = (FunctionID)record->function_id;
  if (*id != 0) return true;
  HRESULT hr = info->lpVtbl->GetFunctionFromIP(info, (LPCBYTE)(uintptr_t)record->method_start, id);
  if (hr == E_FAIL) *id = 0;
  return hr == S_OK || hr == E_FAIL;
}

static bool ask_for_method(const struct cs_record *record, uint64_t *value) {
  ICorProfilerInfo15 *info = cs_library.info;
  FunctionID id;
  ClassID class_id;
  ModuleID module;
  mdToken token;
  BOOL dynamic = 1;
  enum cs_eh_role role = CS_EH_NONE;
  // A start of 0 means that the code was not looked up, because the library is being stopped.
  if (record->method_start == 0 || info == NULL || !ask_for_function(record, &id)) return false;
  if (id != 0 && info->lpVtbl->IsFunctionDynamic(info, id, &dynamic) != S_OK) return false;
  if (id != 0 && !dynamic &&
      info->lpVtbl->GetFunctionInfo(info, id, &class_id, &module, &token) == S_OK)
    role = cs_eh_role_of(module, token);
  *value = pack(id, role, dynamic != 0);
  return true;
}

static bool resolve_alive(struct cs_record *record) {
  uint64_t value;
  bool known = cs_load_acquire(&memory) == TRUSTED && read_method(record, &value);
  if (!known && !ask_for_method(record, &value)) return false;
  remember(record->method_start, value);
  unpack(value, record);
  return true;
}

// ---- Code that dies ----

static uint32_t module_deaths;  // modules whose unloading has begun
static uint32_t resolving;      // calls into the CLR under way about code that can be unloaded

uint32_t cs_module_deaths(void) {
  return __atomic_load_n(&module_deaths, __ATOMIC_SEQ_CST);
}

void cs_unloading_hold(void) {
  cs_add_seq(&resolving, 1);
}

void cs_unloading_release(void) {
  cs_add_seq(&resolving, (uint32_t)-1);
}

// A collectible module may be unloaded between the walk and this, and its FunctionIDs with it.
// cs_library_code_died counts the death first and then waits for `resolving`: either the death is
// seen here, or the unloading thread waits for this one.
bool cs_function_resolve(struct cs_record *record) {
  if (cs_function_read(record)) return true;
  if (!record->may_be_gone) return resolve_alive(record);
  cs_unloading_hold();
  bool resolved = (uint16_t)cs_module_deaths() == record->deaths && resolve_alive(record);
  cs_unloading_release();
  return resolved;
}

// An entry that is being written is left to its writer: if it were freed, it could get one writer's
// key and another one's value.
void cs_functions_forget(void) {
  for (uint32_t i = 0; i < CACHE_SIZE; i++) {
    uint64_t key = cs_load_acquire(&cache[i].key);
    if (key > 1) (void)cs_cas(&cache[i].key, &key, 0);
  }
}

void cs_functions_rest(void) {
  cs_pages_zero(cache, sizeof cache);
}

// The wait is bounded, since a resolver may wait in the CLR for a lock that our caller holds.
static void wait_for_resolvers(void) {
  enum { TRIES = 10000, NAP_US = 100 };
  for (int i = 0; i < TRIES; i++) {
    if (__atomic_load_n(&resolving, __ATOMIC_SEQ_CST) == 0) return;
    (void)usleep(NAP_US);
  }
  cs_log("a module is unloaded although a call about such code has not returned for 1 s");
}

void cs_library_deaths_are_reported(bool reported) {
  // Code may have died uncounted since the last time.
  if (reported) cs_add_seq(&cs_library.world.code_generation, 1);
  cs_library.world.unloads_are_reported = reported;
}

// The call sites are kept, since those of code that can die are valid for one generation only.
// Emptying them as well took 14 % of the time of a program in which 4,000 dynamic methods died per
// second.
void cs_library_code_died(bool module) {
  if (!cs_load_acquire(&cs_library.running)) return;
  if (module) cs_add_seq(&module_deaths, 1);
  (void)cs_epoch_wait();
  if (module) {
    wait_for_resolvers();
    cs_functions_forget();
  }
  cs_add_seq(&cs_library.world.code_generation, 1);
}

// ---- Of a capture ----

void cs_capture_read_functions(struct cs_capture *capture) {
  if (capture->resolved) return;
  for (uint32_t i = 0; i < capture->count; i++) {
    struct cs_record *record = &capture->records[i];
    if (cs_record_is_managed(record)) (void)cs_function_read(record);
  }
}

bool cs_capture_resolve(struct cs_capture *capture) {
  bool all = true;
  if (capture->resolved) return true;
  for (uint32_t i = 0; i < capture->count; i++) {
    struct cs_record *record = &capture->records[i];
    if (cs_record_is_managed(record) && !cs_function_resolve(record)) all = false;
  }
  return all;
}

// ---- The check ----

enum verdict { AGREES, DISAGREES, HAS_NONE };

// Compares a MethodDesc with what the CLR reports of the method, which may be nothing yet.
static enum verdict compare_method(ICorProfilerInfo15 *info, FunctionID id) {
  ClassID class_id;
  ModuleID module;
  mdToken token;
  BOOL dynamic;
  struct cs_method method;
  if (info->lpVtbl->GetFunctionInfo(info, id, &class_id, &module, &token) != S_OK ||
      info->lpVtbl->IsFunctionDynamic(info, id, &dynamic) != S_OK)
    return HAS_NONE;
  bool same = cs_method_read(&cs_library.world, id, &method) && method.dynamic == (dynamic != 0) &&
              (method.dynamic || (method.module == module && method.token == token));
  return same ? AGREES : DISAGREES;
}

// The same for a ReadyToRun method's entry point.
static enum verdict compare_entry_point(ICorProfilerInfo15 *info, uint64_t entry_point) {
  FunctionID id = 0;
  uint64_t read, start;
  if (info->lpVtbl->GetFunctionFromIP(info, (LPCBYTE)(uintptr_t)entry_point, &id) != S_OK)
    return HAS_NONE;
  if (!cs_method_of_r2r(&cs_library.world, entry_point, &read, &start) || read != id ||
      start != entry_point)
    return DISAGREES;
  return compare_method(info, id);
}

struct ballot {
  uint32_t agreed;
  bool refuted;
};
static void vote(struct ballot *ballot, enum verdict verdict) {
  ballot->agreed += verdict == AGREES;
  ballot->refuted = ballot->refuted || verdict == DISAGREES;
}

// Checks some methods of the image that contains `ip`.
static void check_image(ICorProfilerInfo15 *info, uint64_t ip, struct ballot *ballot) {
  enum { WANTED = 32 };
  uint64_t entry_points[WANTED];
  uint32_t n = cs_method_some_of_r2r(&cs_library.world, ip, entry_points, WANTED);
  for (uint32_t i = 0; i < n; i++) vote(ballot, compare_entry_point(info, entry_points[i]));
}

static void check_jitted(ICorProfilerInfo15 *info, uint64_t start, struct ballot *ballot) {
  FunctionID id = 0;
  if (info->lpVtbl->GetFunctionFromIP(info, (LPCBYTE)(uintptr_t)start, &id) == S_OK)
    vote(ballot, compare_method(info, id));
}

bool cs_function_checked(void) {
  return cs_load_acquire(&memory) != OPEN;
}

// All questions are about permanent code, so no id can have become invalid.
bool cs_function_check(void) {
  ICorProfilerInfo15 *info = cs_library.info;
  struct cs_permanent code;
  struct ballot ballot = {0};
  if (cs_load_acquire(&memory) != OPEN || info == NULL) return true;
  cs_permanent_code(&cs_library.world.layout, &code);
  for (uint32_t i = 0; i < code.modules; i++) check_image(info, code.image[i], &ballot);
  for (uint32_t i = 0; i < code.starts; i++) check_jitted(info, code.start[i], &ballot);
  if (ballot.refuted) {
    cs_log_important("methods are resolved by calls into the CLR: its memory is not as expected");
    cs_store_release(&memory, DISTRUSTED);
  } else if (ballot.agreed > 0) {
    cs_store_release(&memory, TRUSTED);
  }
  return cs_load_acquire(&memory) != OPEN;
}
