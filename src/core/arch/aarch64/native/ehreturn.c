// SPDX-License-Identifier: MIT
// How libgcc continues where a C++ exception is caught. It overwrites the registers that its own
// function has saved, the return address included, with those of the catching frame, and leaves by
// restoring "its caller's". From then on .eh_frame describes a caller that is a mixture of two
// frames, and .eh_frame does not show where that begins. So such a function, which is recognised by
// the registers that it saves, loses its rows, and a walk ends there with a reason. Not for
// handlers.
#include "native/ehreturn.h"

static bool drop(const struct cs_cfi_stats *stats, uint32_t ip) {
  for (uint32_t i = 0; i < stats->eh_returns; i++)
    if (ip >= stats->eh_return[i].ip && ip < stats->eh_return[i].end) return true;
  return false;
}

bool cs_ehreturn_apply(struct cs_process_memory *process, uint64_t begin,
                       const struct cs_cfi_stats *stats, struct cs_rules *rules,
                       struct cs_rows *rows) {
  (void)process;
  (void)begin;
  (void)rules;
  for (uint32_t i = 0; stats->eh_returns != 0 && i < rows->count; i++)
    if (rows->rule[i] != CS_NO_RULE && drop(stats, rows->ip[i])) rows->rule[i] = CS_RULE_NONE;
  return true;
}
