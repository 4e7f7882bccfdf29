// SPDX-License-Identifier: MIT
// A walk of the calling thread, without a signal. Async-signal-safe: no lock, no call, no
// allocation.
//
// Invariant: the registers are those of cs_regs_of_caller's caller after the call, so the walk
// begins in that function's native frame, which lives on during the walk.
#include "snapshot/self.h"

#include "snapshot/complete.h"
#include "threads/bounds.h"
#include "threads/registry.h"
#include "threads/threads.h"

// In assembly, since no C function knows its caller's registers: the callee-saved ones are still
// untouched, the return address is at the top of the stack, and the caller's sp above it.
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl cs_regs_of_caller\n"
    ".hidden cs_regs_of_caller\n"
    ".type cs_regs_of_caller, @function\n"
    "cs_regs_of_caller:\n"
    "  .cfi_startproc\n"
    "  movq %rbx, 3*8(%rdi)\n"
    "  leaq 8(%rsp), %rax\n"
    "  movq %rax, 4*8(%rdi)\n"
    "  movq %rbp, 5*8(%rdi)\n"
    "  movq %r12, 12*8(%rdi)\n"
    "  movq %r13, 13*8(%rdi)\n"
    "  movq %r14, 14*8(%rdi)\n"
    "  movq %r15, 15*8(%rdi)\n"
    "  movq (%rsp), %rax\n"
    "  movq %rax, 16*8(%rdi)\n"
    "  movl $0x1f038, 17*8(%rdi)\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size cs_regs_of_caller, .-cs_regs_of_caller\n");
_Static_assert(CS_RBX == 3 && CS_RSP == 4 && CS_RBP == 5 && CS_R12 == 12 && CS_RIP == 16, "regs");
_Static_assert(offsetof(struct cs_regs, known) == 17 * 8, "regs");
_Static_assert(CS_REGS_PRESERVED == 0x1f038, "regs");

void cs_self_bounds(const struct cs_thread *thread, const struct cs_regs *from,
                    struct cs_stack *stack) {
  uint64_t sp = from->r[CS_RSP];
  *stack = (struct cs_stack){0};
  if (thread != NULL && cs_load_acquire(&thread->stack.hi) != 0)
    *stack = thread->stack;
  else
    (void)cs_stack_by_maps(sp, stack);
  stack->alt_lo = stack->alt_hi = 0;
  // A handler on the alternate stack: the walk crosses to where the signal has interrupted.
  if (sp < stack->lo || sp >= stack->hi) cs_altstack_of_self(stack);
}

enum cs_request_answer cs_walk_self(struct cs_request *request, const struct cs_regs *regs,
                                    uint64_t clr_thread, const struct cs_regs *seed, bool plain) {
  struct cs_world *world = cs_load_acquire(&cs_signal.world);
  struct cs_capture *capture = &request->capture;
  struct cs_stack stack;
  capture->self = true;
  capture->plain = plain;
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
  if (answer == CS_ANSWER_WALKED)
    cs_capture_walk(capture, world, seed != NULL ? seed : regs, &stack, clr_thread,
                    cs_threads.max_depth);
  cs_epoch_leave(&cs_signal.epoch, parity);
  if (answer == CS_ANSWER_WALKED) cs_capture_complete(capture);
  return answer;
}
