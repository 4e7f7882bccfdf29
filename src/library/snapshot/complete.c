// SPDX-License-Identifier: MIT
// Looks up what a fast walk has left open: a frame that was stepped over by the rule of its return
// address is known to be managed, but its method is not known yet. Async-signal-safe.
//
// Results for code that never dies are cached, by return address, and together with the method's
// FunctionID once that is resolved: a look-up in the runtime's map costs 60 to 100 ns, one in the
// cache 5. Invariant: readers take no lock; an entry whose key is right before and after it was
// read is consistent.
#include "snapshot/complete.h"

#include <sys/mman.h>

#include "base/hash.h"
#include "life/function.h"

// 512 KiB: call sites near each other are on one page.
enum { PAGE_BITS = 7, PAGES = 1 << PAGE_BITS, LINES = 64, WAYS = 2 };

struct place {
  uint64_t key;  // the ip; 0 free, 1 being written
  uint64_t method_start, function_id;
  uint64_t details;  // see pack_details
};
static _Alignas(4096) struct place places[PAGES][LINES][WAYS];

// Returns the line of an ip.
static struct place *places_of(uint64_t ip) {
  return places[cs_hash_word(ip >> 11, PAGE_BITS)][ip >> 5 & (LINES - 1)];
}

static uint64_t pack_details(const struct cs_record *record) {
  return (uint64_t)record->eh << 8 | (record->dynamic ? 4u : 0u) | (record->resolved ? 2u : 0u) |
         (record->funclet ? 1u : 0u);
}

static void unpack_details(uint64_t details, struct cs_record *record) {
  record->funclet = (details & 1) != 0;
  record->resolved = (details & 2) != 0;
  record->dynamic = (details & 4) != 0;
  record->eh = (uint8_t)(details >> 8);
}

static bool read_place(struct place *place, uint64_t ip, struct cs_record *record) {
  if (cs_load_acquire(&place->key) != ip) return false;
  uint64_t start = cs_load_acquire(&place->method_start);
  uint64_t function = cs_load_acquire(&place->function_id);
  uint64_t details = cs_load_acquire(&place->details);
  if (cs_load_acquire(&place->key) != ip) return false;
  record->method_start = start;
  record->function_id = function;
  unpack_details(details, record);
  record->collectible = false;
  return true;
}

static bool known(uint64_t ip, struct cs_record *record) {
  struct place *line = places_of(ip);
  return read_place(&line[0], ip, record) || read_place(&line[1], ip, record);
}

// Returns the ip's own place, a free one, or that of any other ip.
static struct place *place_for(uint64_t ip) {
  static uint32_t turn;
  struct place *line = places_of(ip);
  uint64_t first = cs_load_relaxed(&line[0].key), second = cs_load_relaxed(&line[1].key);
  if (first == ip || second == ip) return &line[second == ip];
  if (first == 0 || second == 0) return &line[first != 0];
  return &line[cs_add_relaxed(&turn, 1) % WAYS];
}

static void remember(uint64_t ip, const struct cs_record *record) {
  struct place *place = place_for(ip);
  uint64_t old = cs_load_acquire(&place->key);
  if (old == 1 || !cs_cas(&place->key, &old, 1)) return;  // another thread is writing it
  cs_store_release(&place->method_start, record->method_start);
  cs_store_release(&place->function_id, record->function_id);
  cs_store_release(&place->details, pack_details(record));
  cs_store_release(&place->key, ip);
}

static uint64_t key_of(const struct cs_record *record) {
  return cs_record_ip(record) - (record->flags & CS_FRAME_EXACT ? 0 : 1);
}

// Fills in a managed record that has no method yet.
static void complete(const struct cs_world *world, struct cs_record *record) {
  uint64_t ip = key_of(record);
  bool found = known(ip, record);
  struct cs_code code;
  if (found && record->resolved) return;
  if (!found) {
    if (cs_codemap_find_managed(world, ip, &code) != CS_STOP_NONE || !cs_code_is_managed(&code))
      return;
    record->method_start = code.method_start;
    record->function_id = code.function_id;
    record->funclet = code.funclet;
    record->collectible = code.collectible;
    if (code.collectible) return;
  }
  if (cs_function_read(record) || !found) remember(ip, record);
}

// Prefetches for all frames at once, so that their cache misses overlap.
static void prefetch_all(const struct cs_capture *capture) {
  for (uint32_t i = 0; i < capture->fresh; i++) {
    const struct cs_record *record = &capture->records[i];
    if (!cs_record_is_managed(record)) continue;
    __builtin_prefetch(places_of(key_of(record)), 1);
    if (record->method_start != 0) cs_function_look_ahead(record);
  }
}

static void resolve(const struct cs_world *world, struct cs_record *record) {
  if (record->method_start == 0)
    complete(world, record);
  else if (!record->resolved && !record->collectible && cs_function_read(record))
    remember(key_of(record), record);
}

void cs_capture_prepare(void) {
  (void)madvise(places, sizeof places, MADV_POPULATE_WRITE);
}

void cs_capture_complete(struct cs_capture *capture) {
  struct cs_world *world = cs_load_acquire(&cs_signal.world);
  capture->resolved = capture->fresh == 0 && capture->count != 0;  // it was joined to the last walk
  if (world == NULL || capture->resolved) return;
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  bool all = true;
  prefetch_all(capture);
  for (uint32_t i = 0; i < capture->fresh; i++) {
    struct cs_record *record = &capture->records[i];
    if (!cs_record_is_managed(record)) continue;
    resolve(world, record);
    all = all && record->resolved;
    record->may_be_gone = record->collectible && !capture->self && !capture->held;
    record->deaths = (uint16_t)capture->module_deaths;
  }
  capture->resolved = all;
  cs_epoch_leave(&cs_signal.epoch, parity);
}
