// SPDX-License-Identifier: MIT
// One step over a native frame: the row for its ip, in tables made beforehand, describes where the
// caller's registers are. Also the step through the kernel's signal frame. Signal-safe: yes. Reads
// the library's own tables and words of the stack, and (guarded) bytes of code only where there is
// no rule. Invariant: `regs` are the caller's on success, and unchanged on failure.
#include "images/images.h"
#include "unwind/sites.h"

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
static const uint8_t slot_register[CS_CFI_SLOTS] = {CS_RBX, CS_RBP, CS_R12, CS_R13,
                                                    CS_R14, CS_R15, CS_RIP};

struct step {
  const struct cs_mem *mem;
  const struct cs_stack *stack;
  const struct cs_regs *from;  // this frame's
  uint64_t cfa;
};

// Returns the last row at or before `offset`. The block index leaves a few rows to search: 5 on
// average in libcoreclr.
CS_ISLAND static uint32_t find_row(const struct cs_image *image, uint32_t offset) {
  uint32_t block = offset >> image->block_bits;
  if (block >= image->block_count) block = image->block_count - 1;
  uint32_t lo = image->block_row[block];
  uint32_t hi = block + 1 < image->block_count ? image->block_row[block + 1] : image->row_count - 1;
  while (lo < hi) {
    uint32_t mid = hi - (hi - lo) / 2;
    if (image->row_ip[mid] <= offset)
      lo = mid;
    else
      hi = mid - 1;
  }
  return lo;
}

// Returns the rule of the frame, or CS_NO_RULE. A return address is looked up as the call before
// it. The "return address" of a signal handler, though, is the first byte of the trampoline: if one
// begins exactly there, it is looked up as it is.
CS_ISLAND static uint16_t find_rule_id(const struct cs_cfi_rule *rules,
                                       const struct cs_image *image, uint64_t ip, bool exact) {
  uint64_t at = exact ? ip : ip - 1;
  if (at < image->begin || at >= image->end || image->row_count == 0 ||
      at - image->begin > UINT32_MAX)  // rows have 32 bits
    return CS_NO_RULE;
  uint32_t offset = (uint32_t)(at - image->begin), row = find_row(image, offset);
  uint16_t id = image->row_rule[row];
  if (!exact && row + 1 < image->row_count && image->row_ip[row + 1] == offset + 1) {
    uint16_t next = image->row_rule[row + 1];
    if (next != CS_NO_RULE && rules[next].signal_frame) id = next;
  }
  return id;
}

CS_ISLAND static const struct cs_cfi_rule *find_rule(const struct cs_cfi_rule *rules,
                                                     const struct cs_image *image, uint64_t ip,
                                                     bool exact) {
  uint16_t id = find_rule_id(rules, image, ip, exact);
  return id != CS_NO_RULE ? &rules[id] : NULL;
}

// mov rax, 15; syscall: every libc's trampoline; musl's has no unwind data.
CS_ISLAND static bool is_trampoline(const struct cs_mem *mem, uint64_t ip) {
  static const uint8_t code[] = {0x48, 0xC7, 0xC0, 0x0F, 0x00, 0x00, 0x00, 0x0F, 0x05};
  uint8_t at_ip[sizeof code];
  if (!cs_mem_read_guarded(mem, ip, at_ip, sizeof at_ip)) return false;
  for (unsigned i = 0; i < sizeof code; i++)
    if (at_ip[i] != code[i]) return false;
  return true;
}

// Restores all registers that the signal interrupted.
CS_ISLAND static enum cs_stop step_signal(const struct cs_mem *mem, const struct cs_stack *stack,
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

// Reads words that may be on the stack or elsewhere.
CS_ISLAND static bool read_block(const struct cs_mem *mem, const struct cs_stack *stack,
                                 uint64_t at, uint64_t *words, size_t bytes) {
  return (at & 7) == 0 && cs_stack_holds(stack, at, bytes)
             ? cs_mem_read(mem, at, words, bytes)
             : cs_mem_read_guarded(mem, at, words, bytes);
}

// Restores the registers of a ucontext: those that setcontext is about to continue with.
CS_ISLAND static enum cs_stop step_ucontext(const struct cs_mem *mem, const struct cs_stack *stack,
                                            uint64_t ucontext, struct cs_regs *regs) {
  uint64_t words[GREGS];
  struct cs_regs next = {.known = CS_REGS_PRESERVED};
  if (!read_block(mem, stack, ucontext + UCONTEXT_GREGS, words, sizeof words))
    return CS_STOP_UNREADABLE;
  for (unsigned i = 0; i < GREGS; i++) next.r[greg[i]] = words[i];
  if ((next.r[CS_RSP] & 7) != 0 || !cs_stack_holds(stack, next.r[CS_RSP], 8)) return CS_STOP_BAD_SP;
  *regs = next;
  return CS_STOP_NONE;
}

// Restores the registers of a CONTEXT: those that RtlRestoreContext is about to continue with.
CS_ISLAND static enum cs_stop step_context(const struct cs_mem *mem, const struct cs_stack *stack,
                                           uint64_t context, struct cs_regs *regs) {
  enum { FLAGS = 48, RAX = 120, RIP = 248, HAS_CONTROL = 1, BYTES = 256 };
  static const uint8_t wanted[] = {CS_RBX, CS_RSP, CS_RBP, CS_R12, CS_R13, CS_R14, CS_R15};
  uint64_t words[BYTES / 8];
  if (!read_block(mem, stack, context, words, sizeof words)) return CS_STOP_UNREADABLE;
  if (!(words[FLAGS / 8] & HAS_CONTROL)) return CS_STOP_NATIVE_RULE;
  struct cs_regs next = {.known = CS_REGS_PRESERVED};
  for (unsigned i = 0; i < CS_COUNT(wanted); i++) next.r[wanted[i]] = words[RAX / 8 + wanted[i]];
  next.r[CS_RIP] = words[RIP / 8];
  if ((next.r[CS_RSP] & 7) != 0 || !cs_stack_holds(stack, next.r[CS_RSP], 8)) return CS_STOP_BAD_SP;
  *regs = next;
  return CS_STOP_NONE;
}

CS_ISLAND static bool known(const struct cs_regs *regs, unsigned reg) {
  return (regs->known & CS_REG_BIT(reg)) != 0;
}

CS_ISLAND static enum cs_stop find_cfa(const struct step *s, const struct cs_cfi_rule *rule,
                                       uint64_t *cfa) {
  if (rule->cfa_how == CS_CFA_NONE || !known(s->from, rule->cfa_reg)) return CS_STOP_NATIVE_RULE;
  uint64_t at = s->from->r[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_off;
  if (rule->cfa_how == CS_CFA_INDEXED)
    at = s->from->r[CS_RSP] + (uint64_t)(int64_t)rule->cfa_off + s->from->r[rule->cfa_reg] * 8;
  if (rule->cfa_how == CS_CFA_DEREF || rule->cfa_how == CS_CFA_INDEXED) {
    if (!cs_stack_u64(s->mem, s->stack, at, &at)) return CS_STOP_BAD_SP;
    at += rule->cfa_add;
  } else if (rule->cfa_how == CS_CFA_PLT) {
    bool pushed = (s->from->r[CS_RIP] & 15) >= (uint32_t)rule->cfa_off;
    at = s->from->r[CS_RSP] + (pushed ? 16 : 8);
  }
  // vfork keeps its return address in a register, and has nothing on the stack at that time.
  bool above = at > s->from->r[CS_RSP] ||
               (at == s->from->r[CS_RSP] && rule->slot[CS_CFI_RA].how == CS_CFI_IN_REG);
  if ((at & 7) != 0 || !above || !cs_stack_holds(s->stack, at, 0)) return CS_STOP_BAD_SP;
  *cfa = at;
  return CS_STOP_NONE;
}

enum found { FOUND, UNDEFINED, OFF_STACK };

// Finds the caller's value of a slot's register.
CS_ISLAND static inline enum found find_slot(const struct step *s, unsigned how, uint64_t off,
                                             uint64_t *value) {
  bool on_stack = true;
  switch ((enum cs_cfi_how)how) {
    case CS_CFI_AT_CFA:
      on_stack = cs_stack_u64(s->mem, s->stack, s->cfa + off, value);
      break;
    case CS_CFI_AT_RSP:
      on_stack = cs_stack_u64(s->mem, s->stack, s->from->r[CS_RSP] + off, value);
      break;
    case CS_CFI_AT_RBP:
      if (!known(s->from, CS_RBP)) return UNDEFINED;
      on_stack = cs_stack_u64(s->mem, s->stack, s->from->r[CS_RBP] + off, value);
      break;
    case CS_CFI_IS_CFA:
      *value = s->cfa + off;
      break;
    case CS_CFI_IN_REG:
      if (!known(s->from, off & 15)) return UNDEFINED;
      *value = s->from->r[off & 15];
      break;
    case CS_CFI_SAME:
    case CS_CFI_UNDEFINED:
      return UNDEFINED;
  }
  return on_stack ? FOUND : OFF_STACK;
}

// All values are found before any register changes, since some are found through registers, and
// since on failure none may have changed.
CS_ISLAND static enum cs_stop step_rule(const struct step *s, const struct cs_cfi_rule *rule,
                                        struct cs_regs *regs) {
  uint64_t value[CS_CFI_SLOTS];
  uint32_t now_known = s->from->known & CS_REGS_PRESERVED;
  for (unsigned slot = 0; slot < CS_CFI_SLOTS; slot++) {
    unsigned how = rule->slot[slot].how;
    if (how == CS_CFI_SAME) continue;
    uint64_t off = (uint64_t)(int64_t)rule->slot[slot].off;
    enum found found = find_slot(s, how, off, &value[slot]);
    if (found == OFF_STACK) return CS_STOP_BAD_SP;
    now_known |= CS_REG_BIT(slot_register[slot]);
    if (found == FOUND) continue;
    now_known &= ~CS_REG_BIT(slot_register[slot]);
    value[slot] = 0;
  }
  if ((now_known & CS_REG_BIT(CS_RIP)) == 0) return CS_STOP_NATIVE_RULE;
  // No code is called from address 0: it is below a thread's first function.
  if (value[CS_CFI_RA] == 0) return CS_STOP_BASE;
  for (unsigned slot = 0; slot < CS_CFI_SLOTS; slot++)
    if (rule->slot[slot].how != CS_CFI_SAME) regs->r[slot_register[slot]] = value[slot];
  regs->r[CS_RSP] = s->cfa;
  regs->known = now_known;
  return CS_STOP_NONE;
}

// OnHijackTripThread is entered by a return, so its first instruction stands where a return address
// would, but is not a call site. A row that begins at the ip itself is left to the full step.
CS_ISLAND static bool is_function_entry(const struct cs_image *image, uint64_t ip) {
  uint32_t offset = (uint32_t)(ip - image->begin);
  return image->is_coreclr && ip < image->end && image->row_count != 0 &&
         image->row_ip[find_row(image, offset)] == offset;
}

// Continues at another place. Once rsp has that place's value, the saved registers have been
// restored, and the memory that they were saved in may be below rsp; so the registers count.
CS_ISLAND static enum cs_stop step_jump(struct step *s, const struct cs_cfi_rule *rule,
                                        struct cs_regs *regs) {
  struct cs_cfi_rule there = *rule;
  if (!known(regs, rule->cfa_reg) || !known(regs, rule->cfa_add)) return CS_STOP_NATIVE_RULE;
  uint64_t sp = regs->r[rule->cfa_reg];
  if ((sp & 7) != 0 || !cs_stack_holds(s->stack, sp, 8)) return CS_STOP_BAD_SP;
  for (unsigned slot = 0; slot < CS_CFI_RA && sp == regs->r[CS_RSP]; slot++)
    if (there.slot[slot].how == CS_CFI_AT_CFA) there.slot[slot].how = CS_CFI_SAME;
  s->cfa = regs->r[rule->cfa_add];
  enum cs_stop stop = step_rule(s, &there, regs);
  if (stop == CS_STOP_NONE) regs->r[CS_RSP] = sp;
  return stop;
}

// libgcc's struct _Unwind_Context. It has the addresses of the saved registers (in DWARF's order),
// the CFA of the frame below, the ip, and flags: that the struct is the extended form, which it
// always is, and possibly that the frame is a signal's. Without the flags, an array of addresses of
// saved registers could be taken for one.
enum {
  UNWIND_SAVED_RA = 16 * 8,
  UNWIND_CFA = 18 * 8,
  UNWIND_IP = 19 * 8,
  UNWIND_FLAGS = 24 * 8,
  UNWIND_CONTEXT_BYTES = 30 * 8,
};
#define UNWIND_EXTENDED 0x4000000000000000ull
#define UNWIND_SIGNAL 0x8000000000000000ull

// Returns the CFA of the context at `at`, if there is one, of this frame's caller or of a frame
// further up; else 0.
CS_ISLAND static uint64_t unwind_context(const struct step *s, uint64_t at) {
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
CS_ISLAND static uint64_t find_target(const struct step *s, uint64_t sp) {
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

CS_ISLAND static enum cs_stop step_eh_return(const struct step *s, struct cs_regs *regs) {
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

CS_ISLAND uint16_t cs_native_rule(const struct cs_images *images, const struct cs_image *image,
                                  uint64_t ip) {
  return is_function_entry(image, ip) ? CS_NO_RULE : find_rule_id(images->rules, image, ip, false);
}

CS_ISLAND enum cs_stop cs_unwind_native(const struct cs_world *world, const struct cs_code *code,
                                        const struct cs_stack *stack, bool exact,
                                        struct cs_regs *regs, bool *signal_frame) {
  const struct cs_images *images = cs_load_acquire(&world->images);
  *signal_frame = false;
  if (code->image == NULL || images == NULL) return CS_STOP_UNKNOWN_CODE;
  uint64_t ip = regs->r[CS_RIP];
  // The array of rules never moves, even if the table is replaced.
  const struct cs_cfi_rule *rule = find_rule(images->rules, code->image, ip, exact);
  bool trampoline = rule != NULL ? rule->signal_frame != 0 : is_trampoline(&world->mem, ip);
  if (trampoline) {
    enum cs_stop stop = step_signal(&world->mem, stack, regs);
    *signal_frame = stop == CS_STOP_NONE;
    return stop;
  }
  if (rule == NULL) return CS_STOP_NO_NATIVE_RULE;
  if (rule->cfa_how == CS_CFA_CONTEXT || rule->cfa_how == CS_CFA_UCONTEXT) {
    if (!known(regs, rule->cfa_reg)) return CS_STOP_NATIVE_RULE;
    uint64_t at = regs->r[rule->cfa_reg];
    enum cs_stop stop = rule->cfa_how == CS_CFA_CONTEXT
                            ? step_context(&world->mem, stack, at, regs)
                            : step_ucontext(&world->mem, stack, at, regs);
    *signal_frame = stop == CS_STOP_NONE;  // the ip is not a return address
    return stop;
  }
  if (rule->slot[CS_CFI_RA].how == CS_CFI_UNDEFINED) return CS_STOP_BASE;
  if (rule->slot[CS_CFI_RA].how == CS_CFI_SAME) return CS_STOP_NATIVE_RULE;
  struct step s = {.mem = &world->mem, .stack = stack, .from = regs};
  if (rule->cfa_how == CS_CFA_JUMP) {
    enum cs_stop stop = step_jump(&s, rule, regs);
    // The ip that RtlRestoreContext continues at is not a return address; longjmp's is.
    *signal_frame = stop == CS_STOP_NONE && rule->cfa_reg == CS_RSP;
    return stop;
  }
  enum cs_stop stop = find_cfa(&s, rule, &s.cfa);
  if (stop == CS_STOP_NONE)
    stop = rule->cfa_how == CS_CFA_EH_RETURN ? step_eh_return(&s, regs) : step_rule(&s, rule, regs);
  *signal_frame =
      stop == CS_STOP_NONE && (rule->cfa_how == CS_CFA_FAULT || rule->cfa_how == CS_CFA_EH_RETURN);
  return stop;
}
