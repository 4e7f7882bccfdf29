// SPDX-License-Identifier: MIT
// One step over a managed frame by AMD64 UNWIND_INFO, as CoreCLR's JIT and crossgen write it on
// Unix: the Windows x64 format, version 1, with one more operation. Signal-safe: yes.
//
// The codes describe the prolog backwards, the last action first. For a frame in the middle of the
// stack all of them are undone; for an interrupted frame, those whose instruction has been
// executed. If the ip is in an epilog, the rest of the epilog is carried out instead (epilog.c).
// Invariant: `regs` are the caller's on success, and unchanged on failure.
#include "unwind/managed.h"
#include "unwind/sites.h"

enum op {
  OP_PUSH_NONVOL,
  OP_ALLOC_LARGE,
  OP_ALLOC_SMALL,
  OP_SET_FPREG,
  OP_SAVE_NONVOL,
  OP_SAVE_NONVOL_FAR,
  OP_EPILOG,  // version 2 only
  OP_SPARE,
  OP_SAVE_XMM128,
  OP_SAVE_XMM128_FAR,
  OP_PUSH_MACHFRAME,
  OP_SET_FPREG_LARGE,  // Unix only: a 32-bit frame offset, in units of 16
};
enum {
  MAX_CHAIN = 32,           // the same as in the runtime's own unwinder
  LARGE_FRAME_OFFSET = 15,  // the header's value if there is an OP_SET_FPREG_LARGE
};

CS_ISLAND static enum cs_stop read_unwind_info(const struct cs_reader *reader, uint64_t address,
                                               struct cs_unwind_info *info) {
  uint8_t head[4];
  if (!cs_get(reader, address, head, sizeof head)) return CS_STOP_UNREADABLE;
  info->version = head[0] & 7;
  info->flags = head[0] >> 3;
  info->prolog_size = head[1];
  info->code_count = head[2];
  info->frame_register = head[3] & 15;
  info->frame_offset = head[3] >> 4;
  if (info->version != CS_SUPPORTED_UNWIND_INFO) return CS_STOP_UNWIND_VERSION;
  if (info->code_count != 0 && !cs_get(reader, address + 4, info->codes, info->code_count * 2u))
    return CS_STOP_UNREADABLE;
  return CS_STOP_NONE;
}

// Returns the number of slots of the operation, including itself; 0 if it does not exist.
CS_ISLAND static unsigned slots_of(uint16_t code) {
  unsigned info = code >> 12;
  switch ((enum op)((code >> 8) & 15)) {
    case OP_PUSH_NONVOL:
    case OP_ALLOC_SMALL:
    case OP_SET_FPREG:
    case OP_PUSH_MACHFRAME:
      return 1;
    case OP_ALLOC_LARGE:
      return info == 0 ? 2 : info == 1 ? 3 : 0;
    case OP_SAVE_NONVOL:
    case OP_SAVE_XMM128:
      return 2;
    case OP_SAVE_NONVOL_FAR:
    case OP_SAVE_XMM128_FAR:
    case OP_SET_FPREG_LARGE:
      return 3;
    case OP_EPILOG:
    case OP_SPARE:
      break;
  }
  return 0;
}

CS_ISLAND static uint32_t operand32(const uint16_t *code) {
  return code[1] | ((uint32_t)code[2] << 16);
}

// Returns the distance of the frame register from the rsp that it was set from.
CS_ISLAND static uint64_t frame_offset(const struct cs_unwind_info *info) {
  if (info->frame_offset == LARGE_FRAME_OFFSET) {
    for (unsigned i = 0, n; i < info->code_count; i += n) {
      n = slots_of(info->codes[i]);
      if (n == 0 || i + n > info->code_count) break;
      if (((info->codes[i] >> 8) & 15) == OP_SET_FPREG_LARGE)
        return (uint64_t)operand32(&info->codes[i]) * 16;
    }
  }
  return info->frame_offset * 16u;
}

// Returns the base of SAVE operations: the frame register if it has been set, else rsp.
CS_ISLAND static uint64_t save_base(const struct cs_step *step, const struct cs_unwind_info *info,
                                    unsigned executed) {
  uint64_t rsp = step->regs.r[CS_RSP];
  if (info->frame_register == 0) return rsp;
  if (executed < info->prolog_size && !(info->flags & CS_UNWIND_CHAINED)) {
    bool set = false;
    for (unsigned i = 0, n; i < info->code_count; i += n) {
      unsigned op = (info->codes[i] >> 8) & 15;
      n = slots_of(info->codes[i]);
      if (n == 0) break;
      if ((op == OP_SET_FPREG || op == OP_SET_FPREG_LARGE) && (info->codes[i] & 255) <= executed)
        set = true;
    }
    if (!set) return rsp;
  }
  return step->regs.r[info->frame_register] - frame_offset(info);
}

CS_ISLAND static bool restore(struct cs_step *step, unsigned reg, uint64_t address) {
  uint64_t value;
  if (!cs_stack_u64(&step->world->mem, step->stack, address, &value)) return false;
  step->regs.r[reg] = value;
  step->regs.known |= CS_REG_BIT(reg);
  return true;
}

// Undoes one operation. *machine_frame is set if the operation restored rip and rsp themselves.
CS_ISLAND static enum cs_stop undo(struct cs_step *step, const struct cs_unwind_info *info,
                                   const uint16_t *code, uint64_t base, bool *machine_frame) {
  unsigned arg = *code >> 12;
  uint64_t *rsp = &step->regs.r[CS_RSP];
  bool ok = true;
  switch ((enum op)((*code >> 8) & 15)) {
    case OP_PUSH_NONVOL:
      ok = cs_step_pop(step, arg);
      break;
    case OP_ALLOC_LARGE:
      *rsp += arg == 0 ? code[1] * 8u : operand32(code);
      break;
    case OP_ALLOC_SMALL:
      *rsp += arg * 8 + 8;
      break;
    case OP_SET_FPREG:
    case OP_SET_FPREG_LARGE:
      if (!(step->regs.known & CS_REG_BIT(info->frame_register))) return CS_STOP_BAD_UNWIND;
      *rsp = step->regs.r[info->frame_register] - frame_offset(info);
      break;
    case OP_SAVE_NONVOL:
      ok = restore(step, arg, base + code[1] * 8u);
      break;
    case OP_SAVE_NONVOL_FAR:
      ok = restore(step, arg, base + operand32(code));
      break;
    case OP_SAVE_XMM128:
    case OP_SAVE_XMM128_FAR:
      break;  // no walk needs them
    case OP_PUSH_MACHFRAME: {
      uint64_t frame = *rsp + (arg ? 8 : 0);  // skips the error code
      ok = restore(step, CS_RIP, frame) && restore(step, CS_RSP, frame + 24);
      *machine_frame = true;
      break;
    }
    case OP_EPILOG:
    case OP_SPARE:
      return CS_STOP_BAD_UNWIND;
  }
  return ok ? CS_STOP_NONE : CS_STOP_BAD_SP;
}

// Undoes the operations whose instruction ends at or before `executed`.
CS_ISLAND static enum cs_stop undo_all(struct cs_step *step, const struct cs_unwind_info *info,
                                       unsigned executed, bool *machine_frame) {
  uint64_t base = save_base(step, info, executed);
  for (unsigned i = 0, n; i < info->code_count; i += n) {
    n = slots_of(info->codes[i]);
    if (n == 0 || i + n > info->code_count) return CS_STOP_BAD_UNWIND;
    if ((info->codes[i] & 255u) > executed) continue;
    enum cs_stop stop = undo(step, info, &info->codes[i], base, machine_frame);
    if (stop != CS_STOP_NONE) return stop;
  }
  return CS_STOP_NONE;
}

// Finds the info in which a chained info continues: that of the RUNTIME_FUNCTION after its codes.
CS_ISLAND static bool chained_info(const struct cs_step *step, const struct cs_unwind_info *info,
                                   uint64_t *address) {
  uint64_t parent = *address + 4 + ((info->code_count + 1u) & ~1u) * 2u;
  uint32_t rva;
  if (!cs_get_u32(&step->reader, parent + step->world->layout.runtime_function.unwind_data, &rva))
    return false;
  *address = step->code->base + rva;
  return true;
}

CS_ISLAND static enum cs_stop undo_prolog(struct cs_step *step, bool exact) {
  enum { ALL = 256 };
  uint64_t address = step->code->unwind_info;
  uint64_t offset = step->regs.r[CS_RIP] - step->code->begin;
  bool machine_frame = false;
  struct cs_unwind_info info;
  for (int chain = 0; chain < MAX_CHAIN; chain++) {
    enum cs_stop stop = read_unwind_info(&step->reader, address, &info);
    if (stop != CS_STOP_NONE) return stop;
    unsigned executed = ALL;
    // A return address can be in the prolog as well, which calls a helper to touch the pages of a
    // large frame.
    if (chain == 0 && offset < info.prolog_size) {
      executed = (unsigned)offset;
    } else if (chain == 0 && exact) {
      enum cs_epilog epilog = cs_epilog_step(step, &info);
      if (epilog == CS_EPILOG_BAD_SP) return CS_STOP_BAD_SP;
      if (epilog == CS_EPILOG_DONE) return CS_STOP_NONE;
    }
    stop = undo_all(step, &info, executed, &machine_frame);
    if (stop != CS_STOP_NONE) return stop;
    if (!(info.flags & CS_UNWIND_CHAINED)) {
      if (machine_frame) return CS_STOP_NONE;
      return cs_step_pop(step, CS_RIP) ? CS_STOP_NONE : CS_STOP_BAD_SP;
    }
    if (!chained_info(step, &info, &address)) return CS_STOP_UNREADABLE;
  }
  return CS_STOP_BAD_UNWIND;
}

// The state of deriving a rule. All offsets are relative to one register: once a frame register has
// been set, earlier values of rsp do not matter.
struct shape {
  unsigned base;              // rsp, or the frame register
  int64_t at;                 // the current rsp, relative to the base
  int64_t saved[CS_R15 + 1];  // where each register is saved, relative to the base
  uint32_t is_saved;          // one bit per register
  bool placed;                // `at` is known: always with rsp, else once the frame register is set
};

CS_ISLAND static void shape_save(struct shape *shape, unsigned reg, int64_t at) {
  shape->saved[reg] = at;
  shape->is_saved |= CS_REG_BIT(reg);
}

// The symbolic counterpart of `undo`. Returns false for an operation that a rule cannot express.
CS_ISLAND static bool shape_undo(struct shape *shape, const struct cs_unwind_info *info,
                                 const uint16_t *code) {
  unsigned arg = *code >> 12;
  int64_t frame = info->frame_register != 0 ? -(int64_t)frame_offset(info) : 0;
  switch ((enum op)((*code >> 8) & 15)) {
    case OP_PUSH_NONVOL:
      if (!shape->placed) return false;
      shape_save(shape, arg, shape->at);
      shape->at += 8;
      return true;
    case OP_ALLOC_LARGE:
      shape->at += arg == 0 ? code[1] * 8u : operand32(code);
      return true;
    case OP_ALLOC_SMALL:
      shape->at += arg * 8 + 8;
      return true;
    case OP_SET_FPREG:
    case OP_SET_FPREG_LARGE:
      shape->at = frame;
      shape->placed = true;
      return true;
    case OP_SAVE_NONVOL:
      shape_save(shape, arg, frame + code[1] * 8);
      return true;
    case OP_SAVE_NONVOL_FAR:
      shape_save(shape, arg, frame + operand32(code));
      return true;
    case OP_SAVE_XMM128:
    case OP_SAVE_XMM128_FAR:
      return true;
    case OP_PUSH_MACHFRAME:
    case OP_EPILOG:
    case OP_SPARE:
      break;
  }
  return false;
}

CS_ISLAND static bool rule_from_shape(const struct shape *shape, struct cs_cfi_rule *rule) {
  static const uint8_t reg_of[CS_CFI_SLOTS - 1] = {CS_RBX, CS_RBP, CS_R12, CS_R13, CS_R14, CS_R15};
  int64_t cfa = shape->at + 8;
  if (!shape->placed || cfa != (int32_t)cfa) return false;
  *rule = (struct cs_cfi_rule){
      .cfa_how = CS_CFA_REG, .cfa_reg = (uint8_t)shape->base, .cfa_off = (int32_t)cfa};
  for (unsigned i = 0; i < CS_COUNT(reg_of); i++) {
    if (!(shape->is_saved & CS_REG_BIT(reg_of[i]))) continue;
    rule->slot[i].how = CS_CFI_AT_CFA;
    rule->slot[i].off = (int32_t)(shape->saved[reg_of[i]] - cfa);
  }
  rule->slot[CS_CFI_RA].how = CS_CFI_AT_CFA;
  rule->slot[CS_CFI_RA].off = -8;
  return true;
}

CS_ISLAND bool cs_rule_of_managed(const struct cs_world *world, const struct cs_code *code,
                                  struct cs_near *near, uint64_t ip, struct cs_cfi_rule *rule) {
  struct cs_reader reader = {.mem = &world->mem, .guarded = code->collectible, .near = near};
  struct cs_unwind_info info;
  struct shape shape;  // not cleared, which takes a fifth of this function's time
  if (read_unwind_info(&reader, code->unwind_info, &info) != CS_STOP_NONE) return false;
  if (info.flags & CS_UNWIND_CHAINED) return false;  // cold parts are rare, and decoded each time
  if (ip - code->begin < info.prolog_size) return false;  // a call in the prolog is rare as well
  shape.at = 0;
  shape.is_saved = 0;
  shape.base = info.frame_register != 0 ? info.frame_register : CS_RSP;
  shape.placed = info.frame_register == 0;
  for (unsigned i = 0, n; i < info.code_count; i += n) {
    n = slots_of(info.codes[i]);
    if (n == 0 || i + n > info.code_count || !shape_undo(&shape, &info, &info.codes[i]))
      return false;
  }
  return rule_from_shape(&shape, rule);
}

CS_ISLAND enum cs_stop cs_unwind_managed(const struct cs_world *world, const struct cs_code *code,
                                         const struct cs_stack *stack, bool exact,
                                         struct cs_regs *regs) {
  struct cs_step step = {
      .world = world,
      .stack = stack,
      .code = code,
      .reader = {.mem = &world->mem, .guarded = code->collectible},
      .regs = *regs,
  };
  enum cs_stop stop = undo_prolog(&step, exact);
  if (stop != CS_STOP_NONE) return stop;
  step.regs.known &= CS_REGS_PRESERVED;
  *regs = step.regs;
  return CS_STOP_NONE;
}
