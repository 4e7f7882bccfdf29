// SPDX-License-Identifier: MIT
// context: a frame's registers as a CONTEXT of the profiling API. Async-signal-safe.
#pragma once

#include "clrsnap/clrsnap.h"
#include "walk/record.h"

void cs_context_of_regs(BYTE *context, size_t size, const struct cs_regs *regs, uint32_t flags);
static inline void cs_context_of_record(BYTE *context, size_t size, const struct cs_record *record,
                                        uint32_t flags) {
  struct cs_regs regs = {.known = record->known & CS_REGS_PRESERVED};
  for (unsigned i = 0; i < CS_PRESERVED_COUNT; i++)
    regs.r[cs_preserved_register[i]] = record->preserved[i];
  cs_context_of_regs(context, size, &regs, flags);
}
void cs_context_read(const BYTE *context, struct cs_regs *regs);
uint32_t cs_context_flags(const BYTE *context);
void cs_context_set_ip(BYTE *context, uint64_t ip);
// Returns the ContextFlags that CoreCLR's unwinder leaves in a CONTEXT with these, once it has
// unwound a call.
uint32_t cs_context_unwound(uint32_t flags);
// Returns the ContextFlags of the general registers.
uint32_t cs_context_general(void);
