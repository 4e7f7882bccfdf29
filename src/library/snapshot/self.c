// SPDX-License-Identifier: MIT
// A walk of the calling thread, without a signal. Async-signal-safe: no lock, no call, no
// allocation.
//
// Invariant: the registers are those of cs_regs_of_caller's caller after the call, so the walk
// begins in that function's native frame, which lives on during the walk.
#include "snapshot/self.h"

#include <string.h>

#include "snapshot/complete.h"
#include "threads/bounds.h"
#include "threads/registry.h"
#include "threads/threads.h"

void cs_self_bounds(const struct cs_thread *thread, const struct cs_regs *from,
                    struct cs_stack *stack) {
  uint64_t sp = from->r[CS_SP];
  *stack = (struct cs_stack){0};
  if (thread != NULL && cs_load_acquire(&thread->stack.hi) != 0)
    *stack = thread->stack;
  else
    (void)cs_stack_by_maps(sp, stack);
  stack->alt_lo = stack->alt_hi = 0;
  // In a handler on the alternate stack, the walk continues on the interrupted stack.
  if (sp < stack->lo || sp >= stack->hi) cs_altstack_of_self(stack);
}

// Keeps the records for the next walk of this stack.
static void keep(struct cs_capture *capture) {
  struct cs_again *last = &capture->last;
  if (!capture->resolved || capture->stop != CS_STOP_BASE) last->count = 0;
  if (last->count == 0 || capture->records != capture->memory) return;
  last->start = CS_AGAIN_ROOM;
  memcpy(last->records + last->start, capture->records, last->count * sizeof *last->records);
}

enum cs_request_answer cs_walk_self(struct cs_request *request, const struct cs_regs *regs,
                                    uint64_t clr_thread, const struct cs_regs *seed, bool plain) {
  struct cs_world *world = cs_load_acquire(&cs_signal.world);
  struct cs_capture *capture = &request->capture;
  struct cs_stack stack;
  capture->self = true;
  capture->plain = plain;
  capture->records = capture->memory;
  capture->held = capture->asleep = false;
  capture->count = 0;
  capture->leaf = *regs;
  if (world == NULL) return CS_ANSWER_NOT_READY;
  cs_self_bounds(cs_registry_find(clr_thread), regs, &stack);
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  enum cs_request_answer answer = CS_ANSWER_WALKED;
  if (seed != NULL && cs_is_cooperative(world, clr_thread))
    answer = cs_seed_check(world, seed, &stack);
  else
    seed = NULL;
  capture->seeded = seed != NULL;
  // At a call, only the registers that it preserves are known.
  capture->at_call = seed == NULL && regs->known == CS_REGS_PRESERVED;
  capture->again =
      capture->at_call && plain && cs_threads.max_depth >= CS_AGAIN_ROOM + CS_AGAIN_MAX;
  if (answer == CS_ANSWER_WALKED)
    cs_capture_walk(capture, world, seed != NULL ? seed : regs, &stack, clr_thread,
                    cs_threads.max_depth);
  cs_epoch_leave(&cs_signal.epoch, parity);
  if (answer == CS_ANSWER_WALKED) cs_capture_complete(capture);
  if (answer == CS_ANSWER_WALKED && capture->again) keep(capture);
  return answer;
}
