// SPDX-License-Identifier: MIT
// The call stack that the stepper keeps.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum entry_kind {
  ENTRY_CALL,        // a return address
  ENTRY_TRIPPED,     // a return address that was not returned to: the runtime has put its trip wire
                     // over it, and that runs now
  ENTRY_MADE,        // a return address that was written by hand: the runtime's, where it goes over
                     // from the alternate stack to the thread's own
  ENTRY_TRAMPOLINE,  // the return address of a signal handler
  ENTRY_INTERRUPTED,  // what the signal interrupted
};

struct entry {
  enum entry_kind kind;
  uint64_t slot;  // where the return address lies; elsewhere than on x86-64, and if interrupted:
                  // the sp to return with, less 8
  uint64_t ip;    // what is returned to
};

enum { SHADOW_MAX = 65536 };

struct shadow {
  uint64_t alt_lo, alt_hi;  // the thread's alternate stack, if it is known
  unsigned count;
  struct entry entry[SHADOW_MAX];
};

bool shadow_on_alternate(const struct shadow *shadow, uint64_t address);
void shadow_push(struct shadow *shadow, enum entry_kind kind, uint64_t slot, uint64_t ip);
// Called after an instruction, with its stack pointer: entries below it are gone.
void shadow_settle(struct shadow *shadow, uint64_t sp, uint64_t ip);
// The thread goes on with this stack pointer in code that it has not called and not returned to:
// all calls up to there are over, also one whose slot is at the stack pointer.
void shadow_leave(struct shadow *shadow, uint64_t sp);
// A return has left it here, but the runtime had put its trip wire over the return address: the
// call is over when that address has been gone to.
void shadow_trip(struct shadow *shadow, uint64_t sp);
// rt_sigreturn: what the latest signal interrupted goes on.
void shadow_sigreturn(struct shadow *shadow);

// Writes the frames that a walk should find to `out`, the leaf's caller first and at most `max`.
// Returns their number.
unsigned shadow_frames(const struct shadow *shadow, uint64_t sp, const struct entry **out,
                       unsigned max);
