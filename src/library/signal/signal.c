// SPDX-License-Identifier: MIT
// The state that handlers read, and the epoch. Signal-safe: yes.
//
// Invariant: a walk counts itself before its first read and uncounts itself after its last one. The
// parity of `phase` chooses one of two counters: cs_epoch_wait begins a new phase and waits for the
// old counter, so walks that begin meanwhile do not keep it waiting. The fences here and in
// cs_epoch_wait are a pair: either the walk does not see what was made unreachable before the wait,
// or the wait sees the walk.
#include "signal/signal.h"

struct cs_signal_state cs_signal;

CS_ISLAND uint32_t cs_epoch_enter(struct cs_epoch *epoch) {
  uint32_t parity = cs_load_acquire(&epoch->phase) & 1;
  cs_add_seq(&epoch->active[parity], 1);
  cs_fence_after_rmw();
  return parity;
}

CS_ISLAND void cs_epoch_leave(struct cs_epoch *epoch, uint32_t parity) {
  cs_add_seq(&epoch->active[parity], (uint32_t)-1);
}
