// SPDX-License-Identifier: MIT
// await_box: finds the box of the innermost async method on a stack that has just been walked, and
// follows the chain from there. Signal-safe: yes.
#pragma once

#include "signal/awaits.h"
#include "signal/sampled.h"

// Fills in `chain`. `frames`: CS_FRAME_WORD()s, leaf first.
CS_ISLAND void cs_awaits_find(struct cs_awaits *awaits, const struct cs_sampled *from,
                              const uint64_t *frames, uint32_t count, struct cs_await_chain *chain);
