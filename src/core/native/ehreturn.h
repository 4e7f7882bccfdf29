// SPDX-License-Identifier: MIT
// Functions that end with __builtin_eh_return, such as libgcc's _Unwind_RaiseException. Not for
// handlers.
#pragma once

#include "native/cfi.h"

// Corrects the rules of such functions where they no longer have their caller's registers. `begin`
// is the first address of the text; stats->eh_return lists the functions. Returns false if it runs
// out of memory.
bool cs_ehreturn_apply(struct cs_process_memory *process, uint64_t begin,
                       const struct cs_cfi_stats *stats, struct cs_rules *rules,
                       struct cs_rows *rows);
