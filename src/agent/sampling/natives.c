// SPDX-License-Identifier: MIT
// The threads that the runtime does not know, from scan to scan. Invariant: a thread that has ended
// counts only if two scans have found it and it has not become a managed one: a single scan may
// find a managed thread before the runtime has reported it, or after the runtime has reported its
// end. `now` belongs to the agent's thread; the rest is accessed with the list's lock held.
// Signal-safe: no.
#include <stdlib.h>

#include "base/grow.h"
#include "sampling/thread_life.h"

struct native {
  uint32_t tid;
  bool again;  // a scan before the last one found it, too
  bool managed;
};

struct scan {
  struct native *at;  // in `last`: ascending
  size_t count, capacity;
};

static struct scan last, now;
static uint32_t ended;

static int by_tid(const void *a, const void *b) {
  uint32_t x = ((const struct native *)a)->tid, y = ((const struct native *)b)->tid;
  return (x > y) - (x < y);
}

void cs_natives_begin(void) {
  now.count = 0;
}

bool cs_natives_found(uint32_t tid) {
  struct native *at = cs_grow_or_not(now.at, now.count, &now.capacity, sizeof *at);
  if (at == NULL) return false;
  now.at = at;
  now.at[now.count++] = (struct native){.tid = tid};
  return true;
}

static struct native *find(const struct scan *scan, uint32_t tid) {
  struct native key = {.tid = tid};
  return scan->count != 0 ? bsearch(&key, scan->at, scan->count, sizeof key, by_tid) : NULL;
}

void cs_natives_managed(uint32_t tid) {
  struct native *native = find(&last, tid);
  if (native != NULL) native->managed = true;
}

void cs_natives_end(void) {
  if (now.count != 0) qsort(now.at, now.count, sizeof *now.at, by_tid);
  for (size_t i = 0; i < last.count; i++) {
    struct native *still = find(&now, last.at[i].tid);
    if (still != NULL) {
      still->again = true;
      still->managed = last.at[i].managed;
    } else if (last.at[i].again && !last.at[i].managed) {
      ended++;
    }
  }
  struct scan before = last;
  last = now;
  now = before;
}

uint32_t cs_natives_count(void) {
  uint32_t living = 0;
  for (size_t i = 0; i < last.count; i++) living += !last.at[i].managed;
  return living + ended;
}

void cs_natives_reset(void) {
  free(last.at);
  free(now.at);
  last = now = (struct scan){.at = NULL};
  ended = 0;
}
