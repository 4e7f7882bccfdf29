// SPDX-License-Identifier: MIT
// From the last samples of a pool's workers to where they wait. Invariant: a thread counts only if
// wall mode saw it asleep shortly before the scan; a worker that has ended does not count for
// longer than that. One thread. Signal-safe: no.
#include "recording/pool_waits.h"

#include <string.h>

#define LEAST_RECENT_NS 1500000000u

void cs_pool_waits_add(struct cs_rec_pool_waits *waits, const struct cs_rec_pool_wait *wait) {
  CS_APPEND(waits->items, waits->count, waits->capacity, *wait);
}

// Samples of several ticks may be missing, as with thousands of threads.
static bool waits_now(const struct cs_recording *rec, const struct cs_rec_thread *thread,
                      uint64_t now_ns) {
  enum { TICKS = 4 };
  uint64_t recent_ns = rec->start.hz > 0 ? TICKS * 1000000000ull / rec->start.hz : 0;
  if (recent_ns < LEAST_RECENT_NS) recent_ns = LEAST_RECENT_NS;
  return strcmp(cs_recording_get(rec, thread->name), CS_POOL_WORKER) == 0 &&
         thread->wall.leaf != 0 && thread->wall.held_ns == 0 &&
         thread->wall.time_ns + recent_ns >= now_ns;
}

void cs_pool_waits_add_scan(struct cs_recording *rec, const struct cs_wire_starved *scan) {
  struct cs_rec_pool_waits *waits = &rec->pool_waits;
  size_t first = waits->count;
  if (first >= CS_POOL_WAITS_MAX) return;
  for (size_t i = 0; i < rec->thread_count; i++) {
    if (!waits_now(rec, &rec->threads[i], scan->time_ns)) continue;
    uint32_t node = rec->threads[i].wall.leaf;
    size_t at = first;
    while (at < waits->count && waits->items[at].node != node) at++;
    if (at == waits->count)
      cs_pool_waits_add(waits, &(struct cs_rec_pool_wait){scan->time_ns, scan->queued,
                                                          scan->workers, node, 0, 0});
    waits->items[at].threads++;
  }
}
