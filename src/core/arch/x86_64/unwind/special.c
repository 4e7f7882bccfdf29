// SPDX-License-Identifier: MIT
// The steps over native frames that no row describes: the kernel's signal frame, the registers with
// which setcontext and RtlRestoreContext are about to continue, the frame that catches a C++
// exception, PLT entries. Signal-safe: yes. Invariant: `regs` are the caller's on success, and
// unchanged on failure.
#include "unwind/native.h"

enum {
  UCONTEXT_GREGS =
      40,      // offset of uc_mcontext.gregs; at the trampoline, rsp points to the ucontext
  GREGS = 17,  // r8 to rip: those that a walk carries
};

// The order of gregs (sys/ucontext.h).
static const uint8_t greg[GREGS] = {
    CS_R8,  CS_R9,  CS_R10, CS_R11, CS_R12, CS_R13, CS_R14, CS_R15, CS_RDI,
    CS_RSI, CS_RBP, CS_RBX, CS_RDX, CS_RAX, CS_RCX, CS_RSP, CS_RIP,
};
// mov rax, 15; syscall: every libc's trampoline; musl's has no unwind data.
CS_ISLAND bool cs_native_is_trampoline(const struct cs_mem *mem, uint64_t ip) {
  static const uint8_t code[] = {0x48, 0xC7, 0xC0, 0x0F, 0x00, 0x00, 0x00, 0x0F, 0x05};
  uint8_t at_ip[sizeof code];
  if (!cs_mem_read_guarded(mem, ip, at_ip, sizeof at_ip)) return false;
  for (unsigned i = 0; i < sizeof code; i++)
    if (at_ip[i] != code[i]) return false;
  return true;
}

// Restores all registers that the signal interrupted.
CS_ISLAND enum cs_stop cs_native_step_signal(const struct cs_mem *mem, const struct cs_stack *stack,
                                             struct cs_regs *regs) {
  uint64_t gregs = regs->r[CS_RSP] + UCONTEXT_GREGS;
  struct cs_regs next;
  next.known = CS_REGS_ALL;
  for (unsigned i = 0; i < GREGS; i++)
    if (!cs_stack_u64(mem, stack, gregs + i * 8, &next.r[greg[i]])) return CS_STOP_BAD_SP;
  if ((next.r[CS_RSP] & 7) != 0 || !cs_stack_holds(stack, next.r[CS_RSP], 0)) return CS_STOP_BAD_SP;
  *regs = next;
  return CS_STOP_NONE;
}

// Restores the registers of the ucontext with which setcontext is about to continue.
CS_ISLAND enum cs_stop cs_native_step_ucontext(const struct cs_mem *mem,
                                               const struct cs_stack *stack, uint64_t ucontext,
                                               struct cs_regs *regs) {
  uint64_t words[GREGS];
  struct cs_regs next = {.known = CS_REGS_PRESERVED};
  if (!cs_native_read_block(mem, stack, ucontext + UCONTEXT_GREGS, words, sizeof words))
    return CS_STOP_UNREADABLE;
  for (unsigned i = 0; i < GREGS; i++) next.r[greg[i]] = words[i];
  if ((next.r[CS_RSP] & 7) != 0 || !cs_stack_holds(stack, next.r[CS_RSP], 8)) return CS_STOP_BAD_SP;
  *regs = next;
  return CS_STOP_NONE;
}

// Restores the registers of the CONTEXT with which RtlRestoreContext is about to continue.
CS_ISLAND enum cs_stop cs_native_step_context(const struct cs_mem *mem,
                                              const struct cs_stack *stack, uint64_t context,
                                              struct cs_regs *regs) {
  enum { FLAGS = 48, RAX = 120, RIP = 248, HAS_CONTROL = 1, BYTES = 256 };
  static const uint8_t wanted[] = {CS_RBX, CS_RSP, CS_RBP, CS_R12, CS_R13, CS_R14, CS_R15};
  uint64_t words[BYTES / 8];
  if (!cs_native_read_block(mem, stack, context, words, sizeof words)) return CS_STOP_UNREADABLE;
  if (!(words[FLAGS / 8] & HAS_CONTROL)) return CS_STOP_NATIVE_RULE;
  struct cs_regs next = {.known = CS_REGS_PRESERVED};
  for (unsigned i = 0; i < CS_COUNT(wanted); i++) next.r[wanted[i]] = words[RAX / 8 + wanted[i]];
  next.r[CS_RIP] = words[RIP / 8];
  if ((next.r[CS_RSP] & 7) != 0 || !cs_stack_holds(stack, next.r[CS_RSP], 8)) return CS_STOP_BAD_SP;
  *regs = next;
  return CS_STOP_NONE;
}

CS_ISLAND uint64_t cs_plt_cfa(const struct cs_regs *regs, const struct cs_cfi_rule *rule) {
  bool pushed = (regs->r[CS_RIP] & 15) >= (uint32_t)rule->cfa_off;
  return regs->r[CS_RSP] + (pushed ? 16 : 8);
}

// libgcc's struct _Unwind_Context. It has the addresses of the saved registers (in DWARF's order),
// the CFA of the frame below, the ip, and flags, which say that the struct has the extended form
// (it always has), and possibly that the frame is a signal's. Without checking the flags, an array
// of addresses of saved registers could be mistaken for a context.
enum {
  UNWIND_SAVED_RA = 16 * 8,
  UNWIND_CFA = 18 * 8,
  UNWIND_IP = 19 * 8,
  UNWIND_FLAGS = 24 * 8,
  UNWIND_CONTEXT_BYTES = 30 * 8,
};
#define UNWIND_EXTENDED 0x4000000000000000ull
#define UNWIND_SIGNAL 0x8000000000000000ull

// Returns the CFA of the context at `at`, if there is one and it is that of this frame's caller or
// of a frame further up, or else 0.
CS_ISLAND static uint64_t unwind_context(const struct cs_native_step *s, uint64_t at) {
  uint64_t cfa, saved_ra, flags;
  if (!cs_stack_u64(s->mem, s->stack, at + UNWIND_CFA, &cfa) || cfa < s->cfa || (cfa & 7) != 0 ||
      !cs_stack_holds(s->stack, cfa, 8) ||
      !cs_stack_u64(s->mem, s->stack, at + UNWIND_SAVED_RA, &saved_ra) || saved_ra != cfa - 8 ||
      !cs_stack_u64(s->mem, s->stack, at + UNWIND_FLAGS, &flags))
    return 0;
  return (flags & ~UNWIND_SIGNAL) == UNWIND_EXTENDED ? cfa : 0;
}

// Finds the context of the frame that catches an exception, when libgcc is about to continue there.
// Its function has two contexts among its locals: that of its caller, and that of the catching
// frame. Both may be of the same frame, but then they differ in the ip. Returns 0 if it is not
// found.
CS_ISLAND static uint64_t find_target(const struct cs_native_step *s, uint64_t sp) {
  enum { MAX_BYTES = 4096 };
  uint64_t ip, own_ip, target = 0;
  unsigned found = 0;
  if (s->cfa - sp > MAX_BYTES || !cs_stack_u64(s->mem, s->stack, s->cfa - 8, &own_ip)) return 0;
  for (uint64_t at = sp; at + UNWIND_CONTEXT_BYTES <= s->cfa; at += 8) {
    uint64_t cfa = unwind_context(s, at);
    if (cfa == 0) continue;
    found++;
    if (!cs_stack_u64(s->mem, s->stack, at + UNWIND_IP, &ip)) return 0;
    if (cfa > s->cfa || (found == 2 && target == 0 && ip != own_ip)) target = at;
  }
  return found == 2 ? target : 0;
}

CS_ISLAND enum cs_stop cs_native_step_eh_return(const struct cs_native_step *s,
                                                struct cs_regs *regs) {
  static const uint8_t saved[] = {CS_RBX, CS_RBP, CS_R12, CS_R13, CS_R14, CS_R15};
  static const uint8_t column[] = {3, 6, 12, 13, 14, 15};
  uint64_t target = find_target(s, regs->r[CS_RSP]);
  if (target == 0) return CS_STOP_NATIVE_RULE;
  struct cs_regs next = {.known = CS_REG_BIT(CS_RIP) | CS_REG_BIT(CS_RSP)};
  next.r[CS_RSP] = unwind_context(s, target);
  if (!cs_stack_u64(s->mem, s->stack, target + UNWIND_IP, &next.r[CS_RIP])) return CS_STOP_BAD_SP;
  for (unsigned i = 0; i < CS_COUNT(saved); i++) {
    uint64_t where;
    if (cs_stack_u64(s->mem, s->stack, target + column[i] * 8u, &where) &&
        cs_stack_u64(s->mem, s->stack, where, &next.r[saved[i]]))
      next.known |= CS_REG_BIT(saved[i]);
  }
  *regs = next;
  return CS_STOP_NONE;
}
