// SPDX-License-Identifier: MIT
// Each handler writes into an element of its own, and `end` last. Signal-safe: yes.
#include "signal/handler_times.h"

#include <linux/perf_event.h>

#include "base/hash.h"

// The event's records are PERF_SAMPLE_TIME alone, and there is one at a time: it is disarmed until
// it has been forgotten (signal/perf.c).
CS_ISLAND uint64_t cs_handler_time_overflow_ns(const struct cs_thread *thread) {
  enum { RECORD = 16 };
  const uint8_t *ring = cs_load_acquire(&thread->perf.ring);
  if (ring == NULL) return 0;
  const struct perf_event_mmap_page *page = (const void *)ring;
  uint64_t head = cs_load_acquire(&page->data_head), at = page->data_tail;
  if (head - at != RECORD) return 0;
  const uint64_t *record = (const void *)(ring + CS_PERF_PAGE + (at & (CS_PERF_PAGE - 1)));
  uint64_t mode = record[0] >> 32 & PERF_RECORD_MISC_CPUMODE_MASK;
  bool user = (uint32_t)record[0] == PERF_RECORD_SAMPLE && mode == PERF_RECORD_MISC_USER;
  return user ? record[1] : 0;
}

CS_ISLAND struct cs_handler_time *cs_handler_time_begin(struct cs_handler_times *notes,
                                                        const struct cs_thread *thread,
                                                        uint64_t entry_tsc, bool clocked) {
  if (entry_tsc < thread->cooldown.until) return NULL;
  bool empty = (cs_hash_word(entry_tsc, 1) & 1) != 0;
  uint64_t end = empty ? cs_tsc() : 0;
  uint32_t i = cs_add_relaxed(&notes->used, 1);
  if (i >= CS_HANDLER_TIMES) return NULL;
  struct cs_handler_time *note = &notes->at[i];
  note->overflow_ns =
      clocked ? cs_handler_time_overflow_ns(thread) : 0;  // before it is armed again
  note->entry = entry_tsc;
  note->clocked = clocked;
  note->empty = empty;
  cs_store_release(&note->end, end);
  return note;
}
