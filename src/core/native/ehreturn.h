// SPDX-License-Identifier: MIT
// Functions that end by __builtin_eh_return: libgcc's _Unwind_RaiseException and its like. Not for
// handlers.
#ifndef CS_NATIVE_EHRETURN_H
#define CS_NATIVE_EHRETURN_H

#include "native/cfi.h"

// Corrects the rules from where such functions no longer have their caller's registers: `begin` is
// the text's first address, stats->eh_return names the functions. False: no memory.
bool cs_ehreturn_apply(struct cs_process_memory *process, uint64_t begin,
                       const struct cs_cfi_stats *stats, struct cs_rules *rules,
                       struct cs_rows *rows);

#endif
