// SPDX-License-Identifier: MIT
// Epoch: how many walks are reading what the runtime may free. Signal-safe: yes.
//
// Invariant: a walk counts itself before its first read and uncounts itself after its last one.
// Two counters, chosen by the parity of `turn`: who waits turns the page and waits for the old
// side, so that walks that begin meanwhile do not keep it waiting (life/epoch.c).
#include "signal/signal.h"

CS_ISLAND uint32_t cs_epoch_enter(struct cs_epoch *epoch) {
  uint32_t parity = cs_load_acquire(&epoch->turn) & 1;
  cs_add_seq(&epoch->active[parity], 1);
  return parity;
}

CS_ISLAND void cs_epoch_leave(struct cs_epoch *epoch, uint32_t parity) {
  cs_add_seq(&epoch->active[parity], (uint32_t)-1);
}
