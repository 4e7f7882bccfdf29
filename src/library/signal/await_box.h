// SPDX-License-Identifier: MIT
// await_box: from a stack that has just been walked to the box of its innermost async method, and
// the chain from there. Signal-safe: yes.
#pragma once

#include "signal/awaits.h"
#include "signal/sampled.h"

// Fills in `chain`. `frames`: CS_FRAME_WORD()s, leaf first.
CS_ISLAND void cs_awaits_find(struct cs_awaits *awaits, const struct cs_sampled *from,
                              const uint64_t *frames, uint32_t count, struct cs_await_chain *chain);
