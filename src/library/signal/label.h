// SPDX-License-Identifier: MIT
// The slot of a thread's label (base/label.h). Managed code of ours (src/agent/labels) writes it on
// the thread itself; a handler may interrupt the write, and a sleeping thread's slot is read by
// another thread. Slots are never freed. Signal-safe: yes.
#pragma once

#include "base/label.h"

// As struct Slot of src/agent/labels has it. A cache line, so that no two threads write to one.
struct cs_label_slot {
  uint32_t sequence;   // odd while it is being written
  uint32_t recording;  // the number of the recording that it was written in; valid for that only
  struct cs_label label;
  uint32_t tid;  // of its thread; 0: free. Written by the agent
  uint8_t rest[20];
};
_Static_assert(sizeof(struct cs_label_slot) == 64 && offsetof(struct cs_label_slot, label) == 8 &&
                   offsetof(struct cs_label_slot, tid) == 40,
               "managed code writes it");

// Reads the label of the thread `tid` in that recording. Returns false if there is none, or it is
// just being written.
CS_ISLAND static inline bool cs_label_read(const struct cs_label_slot *slot, uint32_t tid,
                                           uint32_t recording, struct cs_label *out) {
  const uint64_t *from = (const uint64_t *)(const void *)&slot->label;
  uint64_t word[4];
  uint32_t sequence = cs_load_acquire(&slot->sequence);
  for (unsigned i = 0; i < 4; i++) word[i] = cs_load_relaxed(&from[i]);
  bool mine = cs_load_relaxed(&slot->recording) == recording && cs_load_relaxed(&slot->tid) == tid;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if ((sequence & 1) != 0 || cs_load_relaxed(&slot->sequence) != sequence || !mine) return false;
  if ((word[0] | word[1] | word[2]) == 0) return false;
  uint64_t *to = (uint64_t *)(void *)out;
  for (unsigned i = 0; i < 4; i++) to[i] = word[i];
  return true;
}
