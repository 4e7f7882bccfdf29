// SPDX-License-Identifier: MIT
// The sentences about the thread pool. They say what was read and no more. One thread. Signal-safe:
// no.
#include "profile/pool.h"

#include <inttypes.h>

#include "base/print.h"
#include "util/say.h"

void cs_pool_put_cause(const struct cs_facts *f, FILE *out) {
  const struct cs_pool_cause *cause = &f->pool_cause;
  cs_print(out,
           "the pool is starved: %" PRIu32 " of %" PRIu32 " workers %s in %s; %" PRIu64
           " %s queued (at %.1f s)",
           cause->waiting, cause->workers, cause->waiting == 1 ? "waits" : "wait", cause->place,
           cause->queued, cs_plural(cause->queued, "item", "items"), (double)cause->time_ns / 1e9);
}

void cs_pool_put(const struct cs_facts *f, FILE *out) {
  const struct cs_wire_pool *pool = &f->pool;
  cs_print(out, "%" PRIu32, pool->least_workers);
  if (pool->most_workers > pool->least_workers)
    cs_print(out, " to %" PRIu32 " workers (mean %.1f)", pool->most_workers,
             (double)pool->workers_sum / (double)pool->scans);
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
  cs_print(out, " %" PRIu64 " %s", pool->scans, pool->scans == 1 ? "scan" : "scans");
  if (pool->failed > 0) cs_print(out, " (%" PRIu64 " more failed)", pool->failed);
  if (pool->starved > 0 && !cs_pool_has_cause(f))
    cs_print(out, ": clrsnap stack PID shows what its workers wait for");
}
