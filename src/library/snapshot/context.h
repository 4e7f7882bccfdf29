// SPDX-License-Identifier: MIT
// context: a frame's registers as a CONTEXT of the profiling API. Async-signal-safe.
#ifndef CS_SNAPSHOT_CONTEXT_H
#define CS_SNAPSHOT_CONTEXT_H

#include "clrsnap/clrsnap.h"
#include "walk/record.h"

enum { CS_CONTEXT_MIN = 1232 };  // the part of a CONTEXT that all runtimes share
void cs_context_of_regs(BYTE *context, size_t size, const struct cs_regs *regs, uint32_t flags);
void cs_context_of_record(BYTE *context, size_t size, const struct cs_record *record,
                          uint32_t flags);
void cs_context_read(const BYTE *context, struct cs_regs *regs);

#endif
