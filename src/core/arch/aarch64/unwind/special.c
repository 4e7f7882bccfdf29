// SPDX-License-Identifier: MIT
// The steps over native frames that no row describes: the kernel's signal frame, and the registers
// with which setcontext and RtlRestoreContext are about to continue. Signal-safe: yes. Invariant:
// `regs` are the caller's on success, and unchanged on failure.
#include "unwind/native.h"

enum {
  WORDS = 33,  // x0 to x30, sp, pc: in this order in the kernel's sigcontext and in CONTEXT
  // In the kernel's frame, from the trampoline's sp: siginfo (128 bytes), then the ucontext.
  SIGINFO_BYTES = 128,
  UCONTEXT_REGS = 184,  // of a ucontext: uc_mcontext (at 176) and its fault_address
  CONTEXT_REGS = 8,     // of a CONTEXT: after ContextFlags and Cpsr
  HAS_CONTROL = 1,
};
_Static_assert(CS_SP == 31 && CS_IP == 32 && (int)CS_REG_COUNT == (int)WORDS, "the order of both");

// mov x8, 139; svc 0: every libc's trampoline, and the kernel's own; musl's has no unwind data, and
// the kernel's has it for the first instruction only.
CS_ISLAND bool cs_native_is_trampoline(const struct cs_mem *mem, uint64_t ip) {
  const uint32_t mov = 0xD2801168, svc = 0xD4000001;
  uint32_t code[2];
  if (!cs_mem_read_guarded(mem, ip, code, sizeof code)) return false;
  if (code[0] == mov) return code[1] == svc;
  return code[0] == svc && cs_mem_read_guarded(mem, ip - 4, code, sizeof code) && code[0] == mov;
}

CS_ISLAND static enum cs_stop take(const struct cs_stack *stack, const uint64_t *words,
                                   cs_regmask known, struct cs_regs *regs) {
  if ((words[CS_SP] & 7) != 0 || !cs_stack_holds(stack, words[CS_SP], 0)) return CS_STOP_BAD_SP;
  for (unsigned i = 0; i < WORDS; i++) regs->r[i] = words[i];
  regs->known = known;
  return CS_STOP_NONE;
}

CS_ISLAND enum cs_stop cs_native_step_signal(const struct cs_mem *mem, const struct cs_stack *stack,
                                             struct cs_regs *regs) {
  uint64_t at = regs->r[CS_SP] + SIGINFO_BYTES + UCONTEXT_REGS, words[WORDS];
  for (unsigned i = 0; i < WORDS; i++)
    if (!cs_stack_u64(mem, stack, at + i * 8, &words[i])) return CS_STOP_BAD_SP;
  return take(stack, words, CS_REGS_ALL, regs);
}

CS_ISLAND enum cs_stop cs_native_step_ucontext(const struct cs_mem *mem,
                                               const struct cs_stack *stack, uint64_t ucontext,
                                               struct cs_regs *regs) {
  uint64_t words[WORDS];
  if (!cs_native_read_block(mem, stack, ucontext + UCONTEXT_REGS, words, sizeof words))
    return CS_STOP_UNREADABLE;
  return take(stack, words, CS_REGS_PRESERVED | CS_REG_BIT(CS_LR), regs);
}

CS_ISLAND enum cs_stop cs_native_step_context(const struct cs_mem *mem,
                                              const struct cs_stack *stack, uint64_t context,
                                              struct cs_regs *regs) {
  uint64_t flags, words[WORDS];
  if (!cs_native_read_block(mem, stack, context, &flags, sizeof flags) ||
      !cs_native_read_block(mem, stack, context + CONTEXT_REGS, words, sizeof words))
    return CS_STOP_UNREADABLE;
  if (!(flags & HAS_CONTROL)) return CS_STOP_NATIVE_RULE;
  return take(stack, words, CS_REGS_PRESERVED | CS_REG_BIT(CS_LR), regs);
}

// Functions that end with __builtin_eh_return have no rows on this architecture
// (native/ehreturn.c).
CS_ISLAND enum cs_stop cs_native_step_eh_return(const struct cs_native_step *s,
                                                struct cs_regs *regs) {
  (void)s;
  (void)regs;
  return CS_STOP_NATIVE_RULE;
}

// No rule has this form: a PLT entry does not change sp and lr (walk/stub.c).
CS_ISLAND uint64_t cs_plt_cfa(const struct cs_regs *regs, const struct cs_cfi_rule *rule) {
  (void)rule;
  return regs->r[CS_SP];
}
