// SPDX-License-Identifier: MIT
// await_chain: follows the chain from an object that is known to be a box, or a Task, to the boxes
// that await it. Signal-safe: yes.
#pragma once

#include "signal/awaits.h"

struct cs_await_reader {
  const struct cs_mem *mem;
  bool guarded;  // objects may be collected meanwhile
};

// Returns the class's entry in struct cs_awaits.types, with its index in *slot; or 0 if it has
// none.
CS_ISLAND uint64_t cs_await_type(const struct cs_awaits *awaits, uint64_t class, uint32_t *slot);
// Records the object's chain, beginning with the object. `runs`: it is a Task whose delegate runs.
CS_ISLAND enum cs_await_state cs_await_follow(const struct cs_awaits *awaits,
                                              const struct cs_await_reader *r, uint64_t object,
                                              bool runs, struct cs_await_chain *chain);
