// SPDX-License-Identifier: MIT
// Functions as the wire knows them. Invariants: ids are never reused in a recording; an entry for
// collectible code is valid for its generation only, because starts and FunctionIDs are reused; no
// lock is held over a call into the CLR (contract: C19). The agent's thread only. Signal-safe: no.
#include "reporting/functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "codemap/method.h"
#include "life/library.h"
#include "reporting/modules.h"
#include "reporting/stub_shapes.h"
#include "reporting/unload.h"
#include "state/event_names.h"
#include "state/state.h"

static uint32_t last_id;

// ---- Code that has been named ----

struct entry {
  // A method's start, or an inlined method's FunctionID, which is another address. 0: free.
  uint64_t key;
  uint32_t id;
  uint32_t generation;
  bool collectible;
};
static struct entry *table;  // open addressing; at most half full
static uint32_t table_size, used;

static struct entry *slot_of(uint64_t key) {
  struct entry *e = &table[(uint32_t)cs_hash_word(key, 32) & (table_size - 1)];
  while (e->key != 0 && e->key != key) {
    if (++e == table + table_size) e = table;
  }
  return e;
}

static bool is_valid(const struct entry *e) {
  return e->key != 0 && !(e->collectible && cs_unload_is_forgotten(e->generation));
}

// A program may make collectible code for as long as it runs, so invalid entries are dropped first;
// the table grows only if it would be more than a quarter full without them.
bool cs_function_reserve(void) {
  if (used * 2 < table_size) return true;
  uint32_t old_size = table_size, size = old_size == 0 ? 1024 : old_size, kept = 0;
  for (uint32_t i = 0; i < old_size; i++) kept += is_valid(&table[i]);
  if (kept * 4 > old_size && old_size > 0) size = old_size * 2;
  struct entry *old = table, *fresh = calloc(size, sizeof *fresh);
  if (fresh == NULL) return false;
  table = fresh;
  table_size = size;
  used = kept;
  for (uint32_t i = 0; i < old_size; i++)
    if (is_valid(&old[i])) *slot_of(old[i].key) = old[i];
  free(old);
  return true;
}

bool cs_function_find(uint64_t key, const struct cs_method_at *method, uint32_t *id) {
  const struct entry *e = slot_of(key);
  *id = e->id;
  return e->key != 0 && e->collectible == method->collectible &&
         (!e->collectible || e->generation == method->generation);
}

void cs_function_remember(uint64_t key, const struct cs_method_at *method, uint32_t id) {
  struct entry *e = slot_of(key);
  if (e->key == 0) used++;
  *e = (struct entry){key, id, method->generation, method->collectible};
}

size_t cs_function_table_bytes(void) {
  return table_size * sizeof *table;
}

bool cs_function_name(FunctionID function, struct cs_method_name *out) {
  struct cs_method method;
  bool has_class = cs_method_read(&cs_library.world, function, &method) && !method.dynamic;
  return cs_method_name_get(cs_agent.info, function, has_class ? (ClassID)method.class : 0, out);
}

// ---- Records ----

uint32_t cs_function_new_id(void) {
  return ++last_id;
}

static bool put(uint32_t id, enum cs_wire_function_kind kind, const struct cs_method_name *name) {
  struct cs_wire_function record = {id, (uint32_t)kind, name->token};
  const char *strings[] = {name->module, name->space, name->type, name->method, name->signature};
  return cs_producer_put(&cs_agent.wire, CS_WIRE_FUNCTION, &record, sizeof record, strings, 5);
}

bool cs_function_put(uint32_t id, const struct cs_method_name *name) {
  static const enum cs_wire_function_kind kinds[] = {
      [CS_NAME_METHOD] = CS_WIRE_FN_METHOD,
      [CS_NAME_DYNAMIC] = CS_WIRE_FN_DYNAMIC,
      [CS_NAME_STUB] = CS_WIRE_FN_STUB,
      [CS_NAME_UNKNOWN] = CS_WIRE_FN_UNKNOWN,
  };
  return put(id, kinds[name->kind], name);
}

bool cs_method_to_wire(const struct cs_method_name *name, uint32_t *id) {
  *id = ++last_id;
  return put(*id, CS_WIRE_FN_METHOD, name);
}

bool cs_inlinee_to_wire(uint64_t function_id, const struct cs_method_at *into, uint32_t *id) {
  static struct cs_method_name name;
  if (!cs_function_reserve()) return false;
  if (cs_function_find(function_id, into, id)) return true;
  (void)cs_function_name(function_id, &name);
  if (name.kind == CS_NAME_METHOD && cs_options.lines && !cs_module_to_wire(&name)) return false;
  *id = ++last_id;
  if (!cs_function_put(*id, &name)) return false;
  cs_function_remember(function_id, into, *id);
  return true;
}

// ---- Names of what is not a method ----

enum { STUB_KINDS = 16, SHAPES = 8 };
// Ids; 0: not sent yet.
static struct {
  uint32_t unloaded;
  uint32_t stubs[STUB_KINDS];
  struct {
    const char *name;
    uint32_t id;
  } shapes[SHAPES];
  uint32_t *events;  // by event name
  uint32_t event_capacity;
} ids;

// Sends the name unless *known has its id.
static bool send_name(uint32_t *known, enum cs_wire_function_kind kind, const char *text,
                      uint32_t *id) {
  static struct cs_method_name name;  // all other texts stay empty
  if (*known == 0) {
    name.type[0] = name.method[0] = '\0';
    struct cs_text_out out = kind == CS_WIRE_FN_TYPE
                                 ? cs_text_begin(name.type, sizeof name.type)
                                 : cs_text_begin(name.method, sizeof name.method);
    cs_text_add(&out, text);
    if (!put(++last_id, kind, &name)) return false;
    *known = last_id;
  }
  *id = *known;
  return true;
}

bool cs_unloaded_to_wire(uint32_t *id) {
  return send_name(&ids.unloaded, CS_WIRE_FN_UNKNOWN, "[unloaded code]", id);
}

// The runtime's STUB_CODE_BLOCK_* (.NET 8 to 10); 0: a range of stubs of several kinds.
bool cs_stub_to_wire(uint32_t stub_kind, uint32_t *id) {
  static const char *const names[STUB_KINDS] = {
      [0] = "[stub]",         [1] = "[jump stub]",    [3] = "[dynamic helper stub]",
      [4] = "[precode stub]", [5] = "[precode stub]", [6] = "[virtual dispatch stub]",
      [7] = "[resolve stub]", [8] = "[lookup stub]",  [9] = "[vtable call stub]",
  };
  uint32_t kind = stub_kind < STUB_KINDS && names[stub_kind] != NULL ? stub_kind : 0;
  return send_name(&ids.stubs[kind], CS_WIRE_FN_STUB, names[kind], id);
}

bool cs_unknown_to_wire(uint64_t ip, uint32_t *id) {
  const char *name = cs_stub_shape_name(ip);
  unsigned i = 0;
  *id = 0;
  if (name == NULL) return true;
  while (ids.shapes[i].name != NULL && strcmp(ids.shapes[i].name, name) != 0)
    if (++i == SHAPES) return true;
  ids.shapes[i].name = name;
  return send_name(&ids.shapes[i].id, CS_WIRE_FN_STUB, name, id);
}

bool cs_event_name_to_wire(uint32_t name, uint32_t *id) {
  char text[CS_EVENT_NAME_BYTES] = "";
  if (name >= ids.event_capacity) {
    uint32_t capacity = name < 128 ? 256 : 2 * name;
    uint32_t *larger = realloc(ids.events, capacity * sizeof *larger);
    if (larger == NULL) return false;
    memset(larger + ids.event_capacity, 0, (capacity - ids.event_capacity) * sizeof *larger);
    ids.events = larger;
    ids.event_capacity = capacity;
  }
  if (ids.events[name] == 0) cs_event_name_copy(name, text);
  return send_name(&ids.events[name], CS_WIRE_FN_TYPE, text, id);
}

void cs_function_ids_free(void) {
  free(table);
  table = NULL;
  table_size = used = last_id = 0;
  free(ids.events);
  memset(&ids, 0, sizeof ids);
}
