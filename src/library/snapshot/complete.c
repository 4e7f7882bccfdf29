// SPDX-License-Identifier: MIT
// Looks up what a fast walk has left open: a frame that was stepped over by the rule of its return
// address is known to be managed, but not which method it is of. Async-signal-safe.
//
// Results for code that never dies are cached: a look-up in the runtime's map costs 60 to 100 ns,
// one in the cache 5. Invariant: readers take no lock; an entry whose key is right before and after
// it was read is consistent.
#include "snapshot/complete.h"

#include "base/hash.h"

enum { PLACES = 1 << 13 };  // direct-mapped, 32 bytes each: 256 KiB, touched as it fills

struct place {
  uint64_t key;  // the ip; 0 free, 1 being written
  uint64_t method_start, function_id;
  uint64_t funclet;
};
static struct place places[PLACES];

static struct place *place_of(uint64_t ip) {
  return &places[cs_hash_word(ip, 13)];
}

static bool known(uint64_t ip, struct cs_record *record) {
  struct place *place = place_of(ip);
  if (cs_load_acquire(&place->key) != ip) return false;
  uint64_t start = cs_load_acquire(&place->method_start);
  uint64_t function = cs_load_acquire(&place->function_id);
  uint64_t funclet = cs_load_acquire(&place->funclet);
  if (cs_load_acquire(&place->key) != ip) return false;
  record->method_start = start;
  record->function_id = function;
  record->funclet = funclet != 0;
  record->collectible = false;
  return true;
}

static void remember(uint64_t ip, const struct cs_code *code) {
  struct place *place = place_of(ip);
  uint64_t old = cs_load_acquire(&place->key);
  if (old == 1 || !cs_cas(&place->key, &old, 1)) return;  // another thread is writing it
  cs_store_release(&place->method_start, code->method_start);
  cs_store_release(&place->function_id, code->function_id);
  cs_store_release(&place->funclet, (uint64_t)code->funclet);
  cs_store_release(&place->key, ip);
}

// Fills in a managed record that has no method yet.
static void complete(const struct cs_world *world, struct cs_record *record) {
  uint64_t ip = cs_record_ip(record) - (record->flags & CS_FRAME_EXACT ? 0 : 1);
  struct cs_code code;
  if (known(ip, record) || cs_codemap_find_managed(world, ip, &code) != CS_STOP_NONE) return;
  record->method_start = code.method_start;
  record->function_id = code.function_id;
  record->funclet = code.funclet;
  record->collectible = code.collectible;
  if (!code.collectible && cs_code_is_managed(&code)) remember(ip, &code);
}

void cs_capture_complete(struct cs_capture *capture) {
  struct cs_world *world = cs_load_acquire(&cs_signal.world);
  if (world == NULL) return;
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  for (uint32_t i = 0; i < capture->count; i++) {
    struct cs_record *record = &capture->records[i];
    if (!cs_record_is_managed(record)) continue;
    if (record->method_start == 0) complete(world, record);
    record->may_be_gone = record->collectible && !capture->self && !capture->held;
    record->deaths = (uint16_t)capture->module_deaths;
  }
  cs_epoch_leave(&cs_signal.epoch, parity);
}
