// SPDX-License-Identifier: MIT
// The kernel's part of a sample's stack. When an event overflows in the kernel, the kernel writes
// its own call chain into the event's ring. The signal is delivered on the way back to user mode,
// and the handler finds the chain in the ring. Signal-safe: yes; loads, and one store.
//
// Invariants: the chain of the last overflow is believed only if it was written for this thread
// with the user-mode registers that the signal has interrupted (the ip of a system call that is to
// be restarted is moved back by the length of its instruction). Each number of a record is checked
// against the page. The ring is the calling thread's own, and is unmapped only after it has been
// taken out of the entry and the epoch has passed. A forked child has no mapping of it, and does
// not get here (cs_signal.perf_threads).
#include "signal/kernel.h"

#include <linux/perf_event.h>

// A record of PERF_SAMPLE_TID, _CALLCHAIN and _REGS_USER, in words; after `COUNT` its addresses,
// and after these the registers' ABI, sp and ip.
enum { HEAD, TID, COUNT, FIRST, AFTER_ADDRESSES = 3 };

static inline CS_ISLAND uint64_t word_at(const uint8_t *ring, uint64_t at) {
  const uint8_t *word = ring + CS_PERF_PAGE + (at & (CS_PERF_PAGE - 1));
  return *(const uint64_t *)(const void *)word;
}

static inline CS_ISLAND uint64_t size_of(uint64_t head) {
  return head >> 48;  // struct perf_event_header
}

// Finds the beginning of the last sample's record. Returns false if there is none.
CS_ISLAND static bool find_last(const uint8_t *ring, uint64_t *found) {
  const struct perf_event_mmap_page *page = (const void *)ring;
  uint64_t head = cs_load_acquire(&page->data_head), at = page->data_tail;
  bool any = false;
  if (head - at > CS_PERF_PAGE) return false;
  while (at < head) {
    uint64_t first = word_at(ring, at), size = size_of(first);
    if (size < 8 || size % 8 != 0 || size > head - at) break;
    if ((uint32_t)first == PERF_RECORD_SAMPLE) {
      *found = at;
      any = true;
    }
    at += size;
  }
  return any;
}

// Returns whether the record was written where the signal arrived.
CS_ISLAND static bool is_of(const uint8_t *ring, uint64_t registers, const struct cs_regs *regs) {
  uint64_t abi = word_at(ring, registers), sp = word_at(ring, registers + 8),
           ip = word_at(ring, registers + 16);
  return abi == PERF_SAMPLE_REGS_ABI_64 && sp == regs->r[CS_SP] &&
         (ip == regs->r[CS_IP] || ip == regs->r[CS_IP] + CS_SYSCALL_BYTES);
}

CS_ISLAND uint32_t cs_kernel_stack(const struct cs_thread *thread, const struct cs_regs *regs,
                                   uint64_t *out, uint32_t most) {
  const uint8_t *ring = cs_load_acquire(&thread->perf.ring);
  uint64_t at = 0;
  if (ring == NULL || !find_last(ring, &at)) return CS_KERNEL_UNKNOWN;
  uint64_t words = size_of(word_at(ring, at)) / 8, count = word_at(ring, at + COUNT * 8);
  if (words < FIRST + AFTER_ADDRESSES || count > words - FIRST - AFTER_ADDRESSES ||
      word_at(ring, at + TID * 8) >> 32 != thread->tid ||
      !is_of(ring, at + (FIRST + count) * 8, regs))
    return CS_KERNEL_UNKNOWN;
  uint32_t found = 0;
  for (uint64_t i = 0; i < count && found < most; i++) {
    uint64_t address = word_at(ring, at + (FIRST + i) * 8);
    if (address < (uint64_t)PERF_CONTEXT_MAX) out[found++] = address;  // else it is a marker
  }
  return found;
}

CS_ISLAND void cs_kernel_forget(const struct cs_perf_event *event) {
  uint8_t *ring = cs_load_acquire(&event->ring);
  if (ring == NULL) return;
  struct perf_event_mmap_page *page = (void *)ring;
  cs_store_release(&page->data_tail, cs_load_acquire(&page->data_head));
}
