// SPDX-License-Identifier: MIT
// Methods as the wire knows them: one record and one id for each piece of code (method start) that
// a sample has met, and for each method (FunctionID) that was inlined into such code. The CLR is
// asked once for each.
//
// Invariants: an entry for code that can die is good for its generation only, because start and
// FunctionID are used again; what is asked about such code is asked between cs_unload_begin_naming
// and _end_naming. No lock is held over a call (contract: C19). The agent's thread only.
// Signal-safe: no.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "clr_names/names.h"
#include "sampling/agent.h"

struct entry {
  uint64_t
      start;  // or an inlined method's FunctionID: nothing else is there while it lives. 0: free
  uint32_t id;
  uint32_t generation;
  bool collectible;
};
static struct entry *table;  // open addressing; at most half full
static uint32_t table_size, used, last_id;
// Ids of names that are no method's; 0: not sent yet.
enum { STUB_KINDS = 16, UNKNOWN_KINDS = 8 };
static struct {
  uint32_t unloaded;
  uint32_t stubs[STUB_KINDS];
  struct {
    const char *name;
    uint32_t id;
  } unknown[UNKNOWN_KINDS];
} made_up;
static uint32_t dispatch_ids[16], dispatch_count;  // of the runtime's exception dispatch

static uint32_t slot_of(uint64_t start) {
  return (uint32_t)cs_hash_word(start, 32) & (table_size - 1);
}

static struct entry *find(uint64_t start) {
  struct entry *e = &table[slot_of(start)];
  while (e->start != 0 && e->start != start) {
    if (++e == table + table_size) e = table;
  }
  return e;
}

static bool is_of_use(const struct entry *e) {
  return e->start != 0 && !(e->collectible && cs_unload_is_forgotten(e->generation));
}

// A program may make code that dies for as long as it runs: what is of no use is left behind, and
// the table is larger only if more than half of what it may have is.
static bool make_room(void) {
  uint32_t old_size = table_size, size = old_size == 0 ? 1024 : old_size, kept = 0;
  for (uint32_t i = 0; i < old_size; i++) kept += is_of_use(&table[i]);
  if (kept * 4 > old_size && old_size > 0) size = old_size * 2;
  struct entry *old = table, *fresh = calloc(size, sizeof *fresh);
  if (fresh == NULL) return false;
  table = fresh;
  table_size = size;
  used = kept;
  for (uint32_t i = 0; i < old_size; i++)
    if (is_of_use(&old[i])) *find(old[i].start) = old[i];
  free(old);
  return true;
}

size_t cs_known_functions_bytes(void) {
  return table_size * sizeof *table;
}

static bool put(uint32_t id, enum cs_wire_function_kind kind, const struct cs_method_name *name) {
  struct cs_wire_function record = {id, (uint32_t)kind, name->token};
  const char *strings[] = {name->module, name->space, name->type, name->method, name->signature};
  return cs_producer_put(&cs_agent.wire, CS_WIRE_FUNCTION, &record, sizeof record, strings, 5);
}

// A name that is not a method's own.
static bool put_made_up(uint32_t *id, enum cs_wire_function_kind kind, const char *text) {
  static struct cs_method_name name;  // all texts but one stay empty
  if (*id != 0) return true;
  strcpy(name.method, text);
  if (!put(++last_id, kind, &name)) return false;
  *id = last_id;
  return true;
}

bool cs_method_to_wire(const struct cs_method_name *name, uint32_t *id) {
  if (!put(++last_id, CS_WIRE_FN_METHOD, name)) return false;
  *id = last_id;
  return true;
}

bool cs_named_to_wire(const char *type, uint32_t *id) {
  static struct cs_method_name name;  // all texts but one stay empty
  (void)snprintf(name.type, sizeof name.type, "%s", type);
  if (!put(++last_id, CS_WIRE_FN_TYPE, &name)) return false;
  *id = last_id;
  return true;
}

bool cs_unloaded_to_wire(uint32_t *id) {
  if (!put_made_up(&made_up.unloaded, CS_WIRE_FN_UNKNOWN, "[unloaded code]")) return false;
  *id = made_up.unloaded;
  return true;
}

// The runtime's STUB_CODE_BLOCK_* (facts of .NET 8 to 10); 0: a range of stubs, of no kind.
bool cs_stub_to_wire(uint32_t stub_kind, uint32_t *id) {
  static const char *const names[STUB_KINDS] = {
      [0] = "[stub]",         [1] = "[jump stub]",    [3] = "[dynamic helper stub]",
      [4] = "[precode stub]", [5] = "[precode stub]", [6] = "[virtual dispatch stub]",
      [7] = "[resolve stub]", [8] = "[lookup stub]",  [9] = "[vtable call stub]",
  };
  uint32_t kind = stub_kind < STUB_KINDS && names[stub_kind] != NULL ? stub_kind : 0;
  if (!put_made_up(&made_up.stubs[kind], CS_WIRE_FN_STUB, names[kind])) return false;
  *id = made_up.stubs[kind];
  return true;
}

bool cs_unknown_to_wire(uint64_t ip, uint32_t *id) {
  const char *name = cs_unknown_code_name(ip);
  unsigned i = 0;
  *id = 0;
  if (name == NULL) return true;
  while (made_up.unknown[i].name != NULL && strcmp(made_up.unknown[i].name, name) != 0)
    if (++i == UNKNOWN_KINDS) return true;
  if (!put_made_up(&made_up.unknown[i].id, CS_WIRE_FN_STUB, name)) return false;
  made_up.unknown[i].name = name;
  *id = made_up.unknown[i].id;
  return true;
}

void cs_known_functions_free(void) {
  free(table);
  table = NULL;
  table_size = used = last_id = dispatch_count = 0;
  cs_waiters_free();
  memset(&made_up, 0, sizeof made_up);
}

// ReadyToRun code has no header that names its method. GetFunctionFromIP3 knows dynamic methods
// too; where it is not to be had, the oldest form does for this code.
static FunctionID function_at(uint64_t start) {
  ICorProfilerInfo15 *info = cs_agent.info;
  FunctionID function = 0;
  ReJITID rejit = 0;
  LPCBYTE ip = (LPCBYTE)(uintptr_t)start;
  if (info->lpVtbl->GetFunctionFromIP3(info, ip, &function, &rejit) == S_OK) return function;
  if (info->lpVtbl->GetFunctionFromIP(info, ip, &function) == S_OK) return function;
  return 0;
}

static enum cs_wire_function_kind kind_of(enum cs_name_kind kind) {
  switch (kind) {
    case CS_NAME_METHOD:
      return CS_WIRE_FN_METHOD;
    case CS_NAME_DYNAMIC:
      return CS_WIRE_FN_DYNAMIC;
    case CS_NAME_STUB:
      return CS_WIRE_FN_STUB;
    default:
      return CS_WIRE_FN_UNKNOWN;
  }
}

static void note_dispatch(uint32_t id, const struct cs_method_name *name) {
  if (strcmp(name->type, "EH") != 0 || strcmp(name->space, "System.Runtime") != 0) return;
  if (dispatch_count < CS_COUNT(dispatch_ids)) dispatch_ids[dispatch_count++] = id;
}

bool cs_function_is_dispatch(uint32_t id) {
  for (uint32_t i = 0; i < dispatch_count; i++)
    if (dispatch_ids[i] == id) return true;
  return false;
}

// A map that would fill the ring is told to be missing: it must not keep its method's samples out.
static bool put_il_map(uint32_t id, const struct cs_il_map *map) {
  static struct {
    struct cs_wire_il_map head;
    struct cs_wire_il_range ranges[CS_IL_MAP_RANGES];
  } record;
  _Static_assert(sizeof record.ranges[0] == sizeof map->ranges[0], "copied as it is");
  record.head = (struct cs_wire_il_map){id, map->count, map->result};
  size_t size = map->count * sizeof map->ranges[0];
  if (size > cs_agent.wire.capacity / 4) {
    record.head = (struct cs_wire_il_map){id, 0, CS_E_IL_MAP_TOO_LARGE};
    size = 0;
  }
  memcpy(record.ranges, map->ranges, size);
  size += sizeof record.head;
  return cs_producer_put(&cs_agent.wire, CS_WIRE_IL_MAP, &record, size, NULL, 0);
}

static bool put_il(uint32_t id, uint64_t start) {
  static struct cs_il_map map;
  if (!cs_agent.lines) return true;
  cs_il_map_read(cs_agent.info, start, &map);
  return put_il_map(id, &map);
}

// The entry under a key, if it is of what is there now; else *slot is where it belongs.
static bool is_known(uint64_t key, const struct cs_method_at *method, struct entry **slot) {
  struct entry *e = *slot = find(key);
  return e->start != 0 && e->collectible == method->collectible &&
         (!e->collectible || e->generation == method->generation);
}

static void remember(uint64_t key, const struct cs_method_at *method, uint32_t id) {
  struct entry *e = find(key);
  if (e->start == 0) used++;
  *e = (struct entry){key, id, method->generation, method->collectible};
}

static bool is_full(void) {
  return used * 2 >= table_size && !make_room();
}

bool cs_inlinee_to_wire(uint64_t function_id, const struct cs_method_at *into, uint32_t *id) {
  static struct cs_method_name name;
  struct entry *e;
  if (is_full()) return false;
  if (!is_known(function_id, into, &e)) {
    (void)cs_method_name_get(cs_agent.info, function_id, &name);
    if (name.kind == CS_NAME_METHOD && cs_agent.lines && !cs_module_to_wire(&name)) return false;
    if (!put(++last_id, kind_of(name.kind), &name)) return false;
    remember(function_id, into, last_id);
    e = find(function_id);
  }
  *id = e->id;
  return true;
}

// All that there is to be told of a method, before its samples. False: no room.
static bool put_method(const struct cs_method_at *method, uint32_t id) {
  static struct cs_method_name name;
  FunctionID function = method->function_id != 0 ? method->function_id : function_at(method->start);
  (void)cs_method_name_get(cs_agent.info, function, &name);
  if (name.kind == CS_NAME_METHOD && !put_il(id, method->start)) return false;
  if (name.kind == CS_NAME_METHOD && cs_agent.lines && !cs_module_to_wire(&name)) return false;
  if (cs_agent.inlined && !cs_inlines_to_wire(method, id)) return false;
  if (!put(id, kind_of(name.kind), &name)) return false;
  note_dispatch(id, &name);
  cs_waiters_note(id, &name);
  cs_awaits_note_method(id, &name, cs_awaits_box_class(function, &name));
  return true;
}

bool cs_function_to_wire(const struct cs_method_at *method, uint32_t *id) {
  struct entry *e;
  if (is_full()) return false;
  if (is_known(method->start, method, &e)) {
    *id = e->id;
    return true;
  }
  // The code may have died before its name was known.
  if (method->collectible && !cs_unload_begin_naming(method->generation))
    return cs_unloaded_to_wire(id);
  *id = ++last_id;  // never used twice, not even one whose record did not fit
  bool sent = put_method(method, *id);
  if (method->collectible) cs_unload_end_naming();
  if (sent) remember(method->start, method, *id);
  return sent;
}
