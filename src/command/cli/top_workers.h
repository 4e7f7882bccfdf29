// SPDX-License-Identifier: MIT
// Where the workers of a starved pool wait, for `clrsnap top`: a process of the command's own scans
// their stacks as `clrsnap stack` does, once when the pool is found to be starved, and then
// every ten seconds at most while it stays so. One thread.
#pragma once

#include "top/top.h"

struct cs_top_workers {
  pid_t observer;  // 0: none
  int from;        // its pipe
  uint64_t scanned_ns, next_ns;
  struct cs_top_cause cause;  // of the last scan
};

// Takes in what a scan has found, begins one if the pool is starved and it is time for one, and
// sets pool->cause. Never waits.
void cs_top_workers_see(struct cs_top_workers *workers, pid_t pid, uint64_t now_ns,
                        struct cs_top_pool *pool);
// Ends a scan, also in its middle.
void cs_top_workers_end(struct cs_top_workers *workers);
