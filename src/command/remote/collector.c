// SPDX-License-Identifier: MIT
// What the runtime's memory shows about collections, beyond its descriptor: which thread holds the
// lock on the list of threads, which code belongs to the collector's interface, and whether a
// background collection is in progress. Invariant: nothing is trusted because of its place alone.
// An entry of the runtime's table for its debugger (g_dacTable) counts only between neighbours that
// the descriptor names, and a word of the ThreadStore only if it agrees with the Thread beside it;
// otherwise the result is unknown. .NET 9 and 10. One thread at a time. Signal-safe: no.
#include <string.h>

#include "contract/supported.h"
#include "remote/private.h"

enum {
  // Words after ThreadStore.DeadCount: the holder's Thread and its OS id.
  HOLDER_AT = 16,
  HOLDER_ID_AT = 24,
  TABLE_ENTRIES = 256,
  // Slots of the interface (IGCHeap), fixed by its contract with standalone collectors.
  GARBAGE_COLLECT = 28,
  ALLOC = 53,
  // The collector's variables for the debugger (GcDacVars): a version, then words.
  VARS_MAJOR = 2,
  VAR_BACKGROUND_STATE = 9,
};

static bool read_word(struct cs_remote *remote, uint64_t at, uint64_t *out) {
  return at != 0 && cs_remote_read(remote, at, out, sizeof *out);
}

bool cs_remote_holder(struct cs_remote *remote, struct cs_remote_holder *holder) {
  const struct cs_layout *l = &remote->world.layout;
  uint64_t store, id;
  uint32_t os_id;
  *holder = (struct cs_remote_holder){.own_tid = 0};
  if (!cs_objects_are_measured(l->runtime_major) ||
      l->thread_store_fields.dead_count == CS_NO_FIELD ||
      !read_word(remote, l->thread_store, &store) || store == 0)
    return false;
  uint64_t at = store + l->thread_store_fields.dead_count;
  if (!read_word(remote, at + HOLDER_AT, &holder->clr_thread) ||
      !read_word(remote, at + HOLDER_ID_AT, &id) || id > INT32_MAX)
    return false;
  holder->own_tid = (int)id;
  if (holder->clr_thread == 0) return true;
  // While a thread takes or releases the lock, there is a moment at which only one of the two words
  // is set.
  return id != 0 && cs_remote_read(remote, holder->clr_thread + l->thread.os_id, &os_id, 4) &&
         os_id == id;
}

// ---- The table for the debugger ----

// The index in the table at which these addresses are adjacent; -1: nowhere, or one of them is not
// known.
static int find_run(const uint64_t *table, const uint64_t *run, int count) {
  for (int i = 0; i < count; i++)
    if (run[i] == 0) return -1;
  for (int i = 0; i + count <= TABLE_ENTRIES; i++)
    if (memcmp(&table[i], run, (size_t)count * sizeof *run) == 0) return i;
  return -1;
}

static bool read_table(struct cs_remote *remote, uint64_t *table) {
  return cs_objects_are_measured(remote->world.layout.runtime_major) && remote->debug_table != 0 &&
         cs_remote_read(remote, remote->debug_table, table, TABLE_ENTRIES * sizeof *table);
}

// The collector's variables come after its kind, between the suspending thread and the domains.
uint64_t cs_remote_gc_variables(struct cs_remote *remote) {
  const struct cs_layout *l = &remote->world.layout;
  const uint64_t before[] = {l->thread_store, l->landmarks.finalizer_thread, l->suspension_thread};
  const uint64_t after[] = {l->landmarks.app_domain, l->landmarks.system_domain};
  uint64_t table[TABLE_ENTRIES], vars;
  uint8_t major;
  if (!read_table(remote, table)) return 0;
  int begin = find_run(table, before, CS_COUNT(before));
  if (begin < 0 || find_run(table, after, CS_COUNT(after)) != begin + 5 ||
      !read_word(remote, table[begin + 4], &vars) || vars == 0 ||
      !cs_remote_read(remote, vars, &major, 1) || major != VARS_MAJOR)
    return 0;
  return vars;
}

enum cs_gc_background cs_remote_gc_background(struct cs_remote *remote) {
  enum { MARKING, SWEEPING, FREE };
  uint64_t vars = cs_remote_gc_variables(remote), at;
  uint32_t state;
  if (remote->world.layout.runtime_major != CS_SUPPORTED_RUNTIME || vars == 0 ||
      !read_word(remote, vars + 8u * VAR_BACKGROUND_STATE, &at) || at == 0 ||
      !cs_remote_read(remote, at, &state, 4) || state > FREE)
    return CS_GC_BACKGROUND_UNKNOWN;
  return state == FREE ? CS_GC_BACKGROUND_NO : CS_GC_BACKGROUND_YES;
}

// The methods of the collector's interface: those of the object just before these in the table.
static bool read_methods(struct cs_remote *remote, uint64_t *methods) {
  const struct cs_layout *l = &remote->world.layout;
  const uint64_t after[] = {l->landmarks.thread_ids, l->landmarks.object_class};
  uint64_t table[TABLE_ENTRIES], object, vtable;
  if (!read_table(remote, table)) return false;
  int next = find_run(table, after, CS_COUNT(after));
  if (next < 1 || !read_word(remote, table[next - 1], &object) ||
      !read_word(remote, object, &vtable) || vtable == 0 ||
      !cs_remote_read(remote, vtable, methods, CS_GC_METHODS * sizeof *methods))
    return false;
  for (int i = 0; i < CS_GC_METHODS; i++)
    if (methods[i] < l->coreclr_begin || methods[i] >= l->coreclr_end) return false;
  return true;
}

// ---- Functions, by the sorted index of the unwind data ----

static bool entry_at(struct cs_remote *remote, uint32_t i, uint64_t *function) {
  int32_t offset;
  if (!cs_remote_read(remote, remote->unwind_index + 12 + 8ull * i, &offset, sizeof offset))
    return false;
  *function = remote->unwind_index + (uint64_t)(int64_t)offset;
  return true;
}

// Returns the beginning of the function that contains the instruction, or 0 if that is unknown.
static uint64_t function_of(struct cs_remote *remote, uint64_t ip) {
  // Version 1; pointers relative to the index, of 4 bytes, sorted.
  static const uint8_t known[] = {1, 0x1B, 0x03, 0x3B};
  uint8_t head[4];
  uint32_t count, low = 0;
  uint64_t at;
  if (remote->unwind_index == 0 || !cs_remote_read(remote, remote->unwind_index, head, 4) ||
      memcmp(head, known, sizeof known) != 0 ||
      !cs_remote_read(remote, remote->unwind_index + 8, &count, 4) || count == 0 ||
      !entry_at(remote, 0, &at) || at > ip)
    return 0;
  for (uint32_t high = count; high - low > 1;) {
    uint32_t middle = low + (high - low) / 2;
    if (!entry_at(remote, middle, &at)) return 0;
    if (at <= ip)
      low = middle;
    else
      high = middle;
  }
  return entry_at(remote, low, &at) ? at : 0;
}

enum cs_gc_method cs_remote_gc_method(struct cs_remote *remote, uint64_t ip) {
  const struct cs_layout *l = &remote->world.layout;
  struct cs_gc_methods *gc = &remote->gc_methods;
  const uint64_t *methods = gc->method;
  if (gc->generation != remote->cache.generation) {
    gc->generation = remote->cache.generation;
    gc->known = read_methods(remote, gc->method);
  }
  if (!gc->known) return CS_GC_METHOD_UNKNOWN;
  if (ip < l->coreclr_begin || ip >= l->coreclr_end) return CS_GC_METHOD_NONE;
  uint64_t function = function_of(remote, ip);
  if (function == 0) return CS_GC_METHOD_UNKNOWN;
  if (function == methods[GARBAGE_COLLECT] || function == methods[ALLOC])
    return CS_GC_METHOD_COLLECT;
  for (int i = 0; i < CS_GC_METHODS; i++)
    if (function == methods[i]) return CS_GC_METHOD_OTHER;
  return CS_GC_METHOD_NONE;
}
