// SPDX-License-Identifier: MIT
// A stack as reported to a DoStackSnapshot callback, and the comparison of two of them.
#pragma once

#include "machine_context.h"
#include "prof.h"

enum { STACK_MAX = 2048 };

struct stack_frame {
  FunctionID id;  // 0: a run of native frames
  UINT_PTR ip;
  uint32_t context_size;  // 0: none was given
  uint32_t context_flags;
  uint64_t reg[STACK_REGS];
};

struct stack {
  HRESULT hr;
  uint32_t count;
  uint32_t dropped;      // calls beyond STACK_MAX
  uint32_t abort_after;  // != 0: the callback returns S_FALSE at this call
  struct stack_frame frames[STACK_MAX];
};

// The callback; client data is a struct stack that was cleared by stack_clear.
StackSnapshotCallback stack_collect;
void stack_clear(struct stack *stack);
// Copies the registers of a frame into a CONTEXT, with MACHINE_CONTEXT_FLAGS; all others are 0.
void stack_context(const struct stack_frame *frame, MACHINE_CONTEXT *context);
// Takes the calling thread's stack or, where allowed, another thread's, by CoreCLR's own
// DoStackSnapshot.
void stack_by_clr(struct stack *stack, ThreadID thread, ULONG32 flags);

void stack_print(FILE *out, const struct stack *stack, uint32_t first, uint32_t limit);
const char *stack_hresult(HRESULT hr);

// Differences by kind, with an example each.
struct tally;
struct tally *tally_new(void);
// Compares `ours` with `truth` and counts every difference under "where: kind". True: equal.
bool tally_compare(struct tally *tally, const char *where, const struct stack *truth,
                   const struct stack *ours);
uint64_t tally_compared(const struct tally *tally);

// A known kind of difference, with its reason. `where` and `kind` are prefixes; "" matches all.
struct tally_allowed {
  const char *where, *kind, *reason;
};
// Prints everything; returns the number of kinds of difference that are not in the list.
uint32_t tally_report(struct tally *tally, const struct tally_allowed *allowed, size_t count);
