// SPDX-License-Identifier: MIT
// One step over a managed frame by ARM64 unwind codes (codes.c). Signal-safe: yes.
//
// For a frame in the middle of the stack all codes of the prolog are undone; for an interrupted
// frame, those whose instruction has been executed, or, in an epilog, those whose instruction has
// not. The return address is in lr until it has been saved, and again after it has been restored;
// a function that never saves it is a leaf. Invariant: `regs` are the caller's on success, and
// unchanged on failure.
#include "unwind/codes.h"
#include "unwind/sites.h"

enum { MAX_NEXT = 8 };  // pairs that follow one another; ten registers can be saved

// A step in progress: the registers so far, and what it may read.
struct step {
  const struct cs_world *world;
  const struct cs_stack *stack;
  struct cs_regs regs;
};

CS_ISLAND static bool restore(struct step *step, unsigned reg, uint64_t address) {
  uint64_t value;
  if (reg > CS_LR || !cs_stack_u64(&step->world->mem, step->stack, address, &value)) return false;
  step->regs.r[reg] = value;
  step->regs.known |= CS_REG_BIT(reg);
  return true;
}

// Undoes one code. `next`: the number of further pairs that it saves.
CS_ISLAND static enum cs_stop undo(struct step *step, const struct cs_unwind_code *c,
                                   unsigned next) {
  uint64_t *sp = &step->regs.r[CS_SP];
  switch ((enum cs_code_op)c->op) {
    case CS_OP_NOP:
    case CS_OP_NEXT:
    case CS_OP_END:
    case CS_OP_END_C:
      return CS_STOP_NONE;
    case CS_OP_ALLOC:
      *sp += c->off;
      return CS_STOP_NONE;
    case CS_OP_FLOATS:
      *sp += c->push;
      return CS_STOP_NONE;
    case CS_OP_SAVE:
      for (unsigned i = 0; i < c->count + 2 * next; i++)
        if (!restore(step, c->reg + i, *sp + c->off + i * 8)) return CS_STOP_BAD_SP;
      if (c->with_lr && !restore(step, CS_LR, *sp + c->off + 8)) return CS_STOP_BAD_SP;
      *sp += c->push;
      return CS_STOP_NONE;
    case CS_OP_SET_FP:
      if (!(step->regs.known & CS_REG_BIT(CS_FP))) return CS_STOP_BAD_UNWIND;
      *sp = step->regs.r[CS_FP] - c->off;
      return CS_STOP_NONE;
    case CS_OP_BAD:
      break;
  }
  return CS_STOP_BAD_UNWIND;
}

// Counts further pairs in *next. Returns false if there are too many, or if the code does not save
// a pair.
CS_ISLAND static bool count_next(unsigned *next, const struct cs_unwind_code *c) {
  if (c->op == CS_OP_NEXT) return ++*next <= MAX_NEXT;
  return *next == 0 || ((c->op == CS_OP_SAVE || c->op == CS_OP_FLOATS) && c->count == 2);
}

CS_ISLAND static enum cs_stop undo_all(struct step *step, struct cs_unwind_codes *codes,
                                       uint32_t at) {
  struct cs_unwind_code c;
  for (unsigned next = 0;; at += c.bytes) {
    if (!cs_codes_read(codes, at, &c) || !count_next(&next, &c)) return CS_STOP_BAD_UNWIND;
    if (c.op == CS_OP_END) return CS_STOP_NONE;
    if (c.op == CS_OP_NEXT) continue;
    enum cs_stop stop = undo(step, &c, next);
    if (stop != CS_STOP_NONE) return stop;
    next = 0;
  }
}

CS_ISLAND enum cs_stop cs_unwind_managed(const struct cs_world *world, const struct cs_code *code,
                                         const struct cs_stack *stack, bool exact,
                                         struct cs_regs *regs) {
  struct cs_reader reader = {.mem = &world->mem, .guarded = code->collectible};
  struct cs_unwind_codes codes;
  struct step step = {.world = world, .stack = stack, .regs = *regs};
  uint64_t offset = regs->r[CS_IP] - code->begin;
  uint32_t at;
  if (offset % 4 != 0) return CS_STOP_BAD_UNWIND;
  if (!exact) step.regs.known &= CS_REGS_PRESERVED;
  enum cs_stop stop = cs_codes_open(&codes, &reader, code);
  if (stop == CS_STOP_NONE) stop = cs_codes_start(&codes, (uint32_t)(offset / 4), exact, &at);
  if (stop == CS_STOP_NONE) stop = undo_all(&step, &codes, at);
  if (stop != CS_STOP_NONE) return stop;
  if (!(step.regs.known & CS_REG_BIT(CS_LR))) return CS_STOP_BAD_UNWIND;
  step.regs.r[CS_IP] = cs_ip_of(step.regs.r[CS_LR]);
  step.regs.known = (step.regs.known | CS_REG_BIT(CS_IP)) & CS_REGS_PRESERVED;
  *regs = step.regs;
  return CS_STOP_NONE;
}

// ---- The rule of a call site ----

// The state of deriving a rule. All offsets are relative to one register: once fp has been set,
// earlier values of sp do not matter.
struct shape {
  unsigned base;  // sp, or fp
  int64_t at;     // the current sp, relative to the base
  int64_t saved[CS_LR + 1];
  cs_regmask is_saved;
};

CS_ISLAND static bool shape_save(struct shape *shape, unsigned reg, int64_t at) {
  if (reg > CS_LR) return false;
  shape->saved[reg] = at;
  shape->is_saved |= CS_REG_BIT(reg);
  return true;
}

// The symbolic counterpart of `undo`. Returns false for what a rule cannot express.
CS_ISLAND static bool shape_undo(struct shape *shape, const struct cs_unwind_code *c,
                                 unsigned next) {
  switch ((enum cs_code_op)c->op) {
    case CS_OP_ALLOC:
      shape->at += c->off;
      return true;
    case CS_OP_SAVE:
      for (unsigned i = 0; i < c->count + 2 * next; i++)
        if (!shape_save(shape, c->reg + i, shape->at + c->off + i * 8)) return false;
      if (c->with_lr) (void)shape_save(shape, CS_LR, shape->at + c->off + 8);
      shape->at += c->push;
      return true;
    case CS_OP_FLOATS:
      shape->at += c->push;
      return true;
    case CS_OP_SET_FP:
      // What has been found is relative to sp, or to an fp that has been restored, not to this fp.
      if (shape->is_saved != 0) return false;
      shape->base = CS_FP;
      shape->at = -(int64_t)c->off;
      return true;
    case CS_OP_NOP:
    case CS_OP_END_C:
      return true;
    case CS_OP_NEXT:
    case CS_OP_END:
    case CS_OP_BAD:
      break;
  }
  return false;
}

CS_ISLAND static bool rule_from_shape(const struct shape *shape, struct cs_cfi_rule *rule) {
  if (shape->at != (int32_t)shape->at || !(shape->is_saved & CS_REG_BIT(CS_LR))) return false;
  *rule = (struct cs_cfi_rule){
      .cfa_how = CS_CFA_REG, .cfa_reg = (uint8_t)shape->base, .cfa_off = (int32_t)shape->at};
  for (unsigned i = 0; i < CS_CFI_SLOTS; i++) {
    unsigned reg = i == CS_CFI_RA ? (unsigned)CS_LR : cs_slot_register[i];
    if (!(shape->is_saved & CS_REG_BIT(reg))) continue;
    rule->slot[i].how = CS_CFI_AT_CFA;
    rule->slot[i].off = (int32_t)(shape->saved[reg] - shape->at);
  }
  return true;
}

CS_ISLAND bool cs_rule_of_managed(const struct cs_world *world, const struct cs_code *code,
                                  struct cs_near *near, uint64_t ip, struct cs_cfi_rule *rule) {
  struct cs_reader reader = {.mem = &world->mem, .guarded = code->collectible, .near = near};
  struct cs_unwind_codes codes;
  struct cs_unwind_code c;
  struct shape shape = {.base = CS_SP};
  uint32_t at, executed = (uint32_t)((ip - code->begin) / 4);
  if (cs_codes_open(&codes, &reader, code) != CS_STOP_NONE ||
      cs_codes_start(&codes, executed, false, &at) != CS_STOP_NONE || at != 0)
    return false;  // a call in the prolog is rare, and decoded each time
  for (unsigned next = 0;; at += c.bytes) {
    if (!cs_codes_read(&codes, at, &c) || !count_next(&next, &c)) return false;
    if (c.op == CS_OP_END) return rule_from_shape(&shape, rule);
    if (c.op == CS_OP_NEXT) continue;
    if (!shape_undo(&shape, &c, next)) return false;
    next = 0;
  }
}

// On this architecture no rows are dropped for wrong epilogs.
CS_ISLAND bool cs_unwind_native_epilog(const struct cs_world *world, const struct cs_code *code,
                                       const struct cs_stack *stack, struct cs_regs *regs) {
  (void)world;
  (void)code;
  (void)stack;
  (void)regs;
  return false;
}
