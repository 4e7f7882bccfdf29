// SPDX-License-Identifier: MIT
// The sentence about the thread pool. It says what was read and no more: the place where workers
// wait is not among the numbers. One thread. Signal-safe: no.
#include "profile/pool.h"

#include <inttypes.h>

#include "base/print.h"

void cs_pool_put(const struct cs_wire_pool *pool, FILE *out) {
  cs_print(out, "%" PRIu32, pool->least_workers);
  if (pool->most_workers > pool->least_workers)
    cs_print(out, " to %" PRIu32 " workers (mean %.1f)", pool->most_workers,
             (double)pool->workers_sum / (double)pool->reads);
  else
    cs_print(out, " %s", pool->most_workers == 1 ? "worker" : "workers");
  if (pool->most_queued > 0)
    cs_print(out, ", at most %" PRIu64 " %s queued (at %.1f s)", pool->most_queued,
             pool->most_queued == 1 ? "item" : "items", (double)pool->most_queued_ns / 1e9);
  else
    cs_print(out, ", nothing queued");
  if (pool->starved > 0)
    cs_print(out, "; starved in %" PRIu32 " of", pool->starved);
  else
    cs_print(out, "; not starved in");
  cs_print(out, " %" PRIu64 " %s", pool->reads, pool->reads == 1 ? "look" : "looks");
  if (pool->failed > 0) cs_print(out, " (%" PRIu64 " more failed)", pool->failed);
  if (pool->starved > 0) cs_print(out, ": clrsnap stack PID shows what its workers wait for");
}
