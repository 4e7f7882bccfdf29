// SPDX-License-Identifier: MIT
// The stepper's own call stack. None of it comes from unwind data: an entry is created by a call
// (or by the kernel, for a signal), and ends when the stack pointer has passed its slot
// (machine.h), by whatever instruction: a return, the end of an exception's dispatch, longjmp.
// Invariant: a later entry is further up; when an entry ends, all later ones have ended.
//
// There are two stacks: entries on the alternate signal stack have unrelated addresses, and are
// judged only while the stack pointer is on that stack. When code on the alternate stack has
// switched to the thread's own stack again without returning (the runtime does, to dispatch the
// exception of a null reference), its frames are not callers of the code that runs there, and are
// left out.
#include "shadow.h"

#include <stdio.h>
#include <stdlib.h>

#include "machine.h"

bool shadow_on_alternate(const struct shadow *shadow, uint64_t address) {
  return address >= shadow->alt_lo && address < shadow->alt_hi;
}

void shadow_push(struct shadow *shadow, enum entry_kind kind, uint64_t slot, uint64_t ip) {
  if (shadow->count == SHADOW_MAX) {
    (void)fprintf(stderr, "step: the call stack is deeper than %d\n", SHADOW_MAX);
    exit(2);
  }
  shadow->entry[shadow->count++] = (struct entry){kind, slot, ip};
}

void shadow_settle(struct shadow *shadow, uint64_t sp, uint64_t ip) {
  bool alternate = shadow_on_alternate(shadow, sp);
  for (unsigned i = shadow->count; i-- > 0;) {
    struct entry *entry = &shadow->entry[i];
    if (shadow_on_alternate(shadow, entry->slot) != alternate) continue;
    if (!machine_has_ended(entry, sp, ip)) break;
    shadow->count = i;
  }
}

void shadow_leave(struct shadow *shadow, uint64_t sp) {
  bool alternate = shadow_on_alternate(shadow, sp);
  for (unsigned i = shadow->count; i-- > 0;) {
    struct entry *entry = &shadow->entry[i];
    if (shadow_on_alternate(shadow, entry->slot) != alternate) continue;
    if (entry->slot > sp) break;
    shadow->count = i;
  }
}

void shadow_trip(struct shadow *shadow, uint64_t sp) {
  struct entry *top = &shadow->entry[shadow->count - 1];
  if (top->slot + 8 == sp) top->kind = ENTRY_TRIPPED;
}

void shadow_sigreturn(struct shadow *shadow) {
  for (unsigned i = shadow->count; i-- > 0;) {
    if (shadow->entry[i].kind != ENTRY_INTERRUPTED) continue;
    shadow->count = i;
    return;
  }
}

unsigned shadow_frames(const struct shadow *shadow, uint64_t sp, const struct entry **out,
                       unsigned max) {
  bool alternate = shadow_on_alternate(shadow, sp);
  unsigned n = 0;
  for (unsigned i = shadow->count; i-- > 0 && n < max;) {
    const struct entry *entry = &shadow->entry[i];
    bool entry_alternate = shadow_on_alternate(shadow, entry->slot);
    if (entry_alternate && !alternate) continue;
    alternate = entry_alternate;
    out[n++] = entry;
  }
  return n;
}
