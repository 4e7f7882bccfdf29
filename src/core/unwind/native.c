// SPDX-License-Identifier: MIT
// One step over a native frame: the row for its ip, in tables made beforehand, describes where the
// caller's registers are. The step through the kernel's signal frame is here, too. Signal-safe:
// yes. Reads the library's own tables and words of the stack, and (guarded) bytes of code only
// where there is no rule. Invariant: `regs` are the caller's on success, and unchanged on failure.
#include "unwind/native.h"
#include "images/images.h"
#include "unwind/sites.h"

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

// Returns the rule of the frame, or CS_NO_RULE. A return address is looked up by the call before
// it. But the "return address" of a signal handler is the first byte of the trampoline: if one
// begins exactly there, the address itself is looked up.
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

CS_ISLAND static enum cs_stop find_cfa(const struct cs_native_step *s,
                                       const struct cs_cfi_rule *rule, uint64_t *cfa) {
  if (rule->cfa_how == CS_CFA_NONE || !cs_native_knows(s->from, rule->cfa_reg))
    return CS_STOP_NATIVE_RULE;
  uint64_t at = s->from->r[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_off;
  if (rule->cfa_how == CS_CFA_INDEXED)
    at = s->from->r[CS_SP] + (uint64_t)(int64_t)rule->cfa_off + s->from->r[rule->cfa_reg] * 8;
  if (rule->cfa_how == CS_CFA_DEREF || rule->cfa_how == CS_CFA_INDEXED) {
    if (!cs_stack_u64(s->mem, s->stack, at, &at)) return CS_STOP_BAD_SP;
    at += rule->cfa_add;
  } else if (rule->cfa_how == CS_CFA_PLT) {
    at = cs_plt_cfa(s->from, rule);
  }
  // vfork keeps its return address in a register, and then has nothing on the stack.
  bool above = at > s->from->r[CS_SP] ||
               (at == s->from->r[CS_SP] && rule->slot[CS_CFI_RA].how == CS_CFI_IN_REG);
  if ((at & 7) != 0 || !above || !cs_stack_holds(s->stack, at, 0)) return CS_STOP_BAD_SP;
  *cfa = at;
  return CS_STOP_NONE;
}

enum found { FOUND, UNDEFINED, OFF_STACK };

// Finds the caller's value of a slot's register.
CS_ISLAND static inline enum found find_slot(const struct cs_native_step *s, unsigned how,
                                             uint64_t off, uint64_t *value) {
  bool on_stack = true;
  switch ((enum cs_cfi_how)how) {
    case CS_CFI_AT_CFA:
      on_stack = cs_stack_u64(s->mem, s->stack, s->cfa + off, value);
      break;
    case CS_CFI_AT_SP:
      on_stack = cs_stack_u64(s->mem, s->stack, s->from->r[CS_SP] + off, value);
      break;
    case CS_CFI_AT_FP:
      if (!cs_native_knows(s->from, CS_FP)) return UNDEFINED;
      on_stack = cs_stack_u64(s->mem, s->stack, s->from->r[CS_FP] + off, value);
      break;
    case CS_CFI_IS_CFA:
      *value = s->cfa + off;
      break;
    case CS_CFI_IN_REG:
      if (off >= CS_REG_COUNT || !cs_native_knows(s->from, (unsigned)off)) return UNDEFINED;
      *value = s->from->r[off];
      break;
    case CS_CFI_SAME:
    case CS_CFI_UNDEFINED:
      return UNDEFINED;
  }
  return on_stack ? FOUND : OFF_STACK;
}

// Finds all values before it changes any register, since some values are found through registers,
// and on failure no register may have changed.
CS_ISLAND static enum cs_stop step_rule(const struct cs_native_step *s,
                                        const struct cs_cfi_rule *rule, struct cs_regs *regs) {
  uint64_t value[CS_CFI_SLOTS];
  cs_regmask now_known = s->from->known & CS_REGS_PRESERVED;
  for (unsigned slot = 0; slot < CS_CFI_SLOTS; slot++) {
    unsigned how = rule->slot[slot].how;
    if (how == CS_CFI_SAME) continue;
    uint64_t off = (uint64_t)(int64_t)rule->slot[slot].off;
    enum found found = find_slot(s, how, off, &value[slot]);
    if (found == OFF_STACK) return CS_STOP_BAD_SP;
    now_known |= CS_REG_BIT(cs_slot_register[slot]);
    if (found == FOUND) continue;
    now_known &= ~CS_REG_BIT(cs_slot_register[slot]);
    value[slot] = 0;
  }
  if ((now_known & CS_REG_BIT(CS_IP)) == 0) return CS_STOP_NATIVE_RULE;
  // No code is called from address 0; a return address of 0 is that of a thread's first function.
  if (value[CS_CFI_RA] == 0) return CS_STOP_BASE;
  value[CS_CFI_RA] = cs_ip_of(value[CS_CFI_RA]);
  for (unsigned slot = 0; slot < CS_CFI_SLOTS; slot++)
    if (rule->slot[slot].how != CS_CFI_SAME) regs->r[cs_slot_register[slot]] = value[slot];
  regs->r[CS_SP] = s->cfa;
  regs->known = now_known;
  return CS_STOP_NONE;
}

// OnHijackTripThread is entered by a return, so the address of its first instruction takes the
// place of a return address without being a call site. An ip at which a row begins is left to the
// full step.
CS_ISLAND static bool is_function_entry(const struct cs_image *image, uint64_t ip) {
  uint32_t offset = (uint32_t)(ip - image->begin);
  return image->is_coreclr && ip < image->end && image->row_count != 0 &&
         image->row_ip[find_row(image, offset)] == offset;
}

// Steps to the place where execution is about to continue. Once rsp has its value there, the saved
// registers have been restored, and the memory in which they were saved may be below rsp, so the
// registers are used instead.
CS_ISLAND static enum cs_stop step_jump(struct cs_native_step *s, const struct cs_cfi_rule *rule,
                                        struct cs_regs *regs) {
  struct cs_cfi_rule there = *rule;
  if (!cs_native_knows(regs, rule->cfa_reg) || !cs_native_knows(regs, rule->cfa_add))
    return CS_STOP_NATIVE_RULE;
  uint64_t sp = regs->r[rule->cfa_reg];
  cs_regmask kept = rule->cfa_how == CS_CFA_RESUME ? regs->known & CS_REGS_RESUMED : 0;
  if ((sp & 7) != 0 || !cs_stack_holds(s->stack, sp, 8)) return CS_STOP_BAD_SP;
  for (unsigned slot = 0; slot < CS_CFI_RA && sp == regs->r[CS_SP]; slot++)
    if (there.slot[slot].how == CS_CFI_AT_CFA) there.slot[slot].how = CS_CFI_SAME;
  s->cfa = regs->r[rule->cfa_add];
  enum cs_stop stop = step_rule(s, &there, regs);
  if (stop == CS_STOP_NONE) {
    regs->r[CS_SP] = sp;
    regs->known |= kept;
  }
  return stop;
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
  uint64_t ip = regs->r[CS_IP];
  // The array of rules never moves, even when the table is replaced.
  const struct cs_cfi_rule *rule = find_rule(images->rules, code->image, ip, exact);
  bool trampoline =
      rule != NULL ? rule->signal_frame != 0 : cs_native_is_trampoline(&world->mem, ip);
  if (trampoline) {
    enum cs_stop stop = cs_native_step_signal(&world->mem, stack, regs);
    *signal_frame = stop == CS_STOP_NONE;
    return stop;
  }
  if (rule == NULL) return CS_STOP_NO_NATIVE_RULE;
  if (rule->cfa_how == CS_CFA_CONTEXT || rule->cfa_how == CS_CFA_UCONTEXT) {
    if (!cs_native_knows(regs, rule->cfa_reg)) return CS_STOP_NATIVE_RULE;
    uint64_t at = regs->r[rule->cfa_reg], context = at + (uint64_t)(int64_t)rule->cfa_off;
    enum cs_stop stop = rule->cfa_how == CS_CFA_CONTEXT
                            ? cs_native_step_context(&world->mem, stack, context, regs)
                            : cs_native_step_ucontext(&world->mem, stack, at, regs);
    *signal_frame = stop == CS_STOP_NONE;  // the ip is not a return address
    return stop;
  }
  if (rule->slot[CS_CFI_RA].how == CS_CFI_UNDEFINED) return CS_STOP_BASE;
  if (rule->slot[CS_CFI_RA].how == CS_CFI_SAME) return CS_STOP_NATIVE_RULE;
  struct cs_native_step s = {.mem = &world->mem, .stack = stack, .from = regs};
  if (rule->cfa_how == CS_CFA_JUMP || rule->cfa_how == CS_CFA_RESUME) {
    enum cs_stop stop = step_jump(&s, rule, regs);
    *signal_frame = stop == CS_STOP_NONE && rule->cfa_how == CS_CFA_RESUME;
    return stop;
  }
  enum cs_stop stop = find_cfa(&s, rule, &s.cfa);
  if (stop == CS_STOP_NONE)
    stop = rule->cfa_how == CS_CFA_EH_RETURN ? cs_native_step_eh_return(&s, regs)
                                             : step_rule(&s, rule, regs);
  *signal_frame =
      stop == CS_STOP_NONE && (rule->cfa_how == CS_CFA_FAULT || rule->cfa_how == CS_CFA_EH_RETURN);
  return stop;
}
