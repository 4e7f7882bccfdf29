// SPDX-License-Identifier: MIT
// From the ring to the wire. The agent's thread only. Not for handlers.
#pragma once

#include "base/error.h"
#include "signal/sample.h"

bool cs_drain_init(struct cs_error *err);
void cs_drain(void);                                   // sends all samples that are in the ring
void cs_drain_end(void);                               // when all samples have been sent
void cs_drain_losses(uint64_t lost[CS_SAMPLE_MODES]);  // samples lost so far, by mode
void cs_drain_free(void);
