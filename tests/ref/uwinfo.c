// SPDX-License-Identifier: MIT
// See uwinfo.h. Each operation is undone according to its documentation; nothing is prepared,
// cached or shared. One thread; not for handlers.
#include "ref/uwinfo.h"

struct code {
  uint8_t offset, op, info;
  const uint8_t *operand;
};

static uint32_t u16(const uint8_t *at) {
  return (uint32_t)(at[0] | at[1] << 8);
}
static uint32_t u32(const uint8_t *at) {
  return u16(at) | u16(at + 2) << 16;
}

// The number of slots of a code, including its first one; 0 if there is no such operation.
static unsigned slots(const struct code *c) {
  switch (c->op) {
    case 0:  // PUSH_NONVOL
    case 2:  // ALLOC_SMALL
    case 3:  // SET_FPREG
      return 1;
    case 1:  // ALLOC_LARGE
      return c->info == 0 ? 2 : 3;
    case 4:  // SAVE_NONVOL
    case 8:  // SAVE_XMM128
      return 2;
    case 5:   // SAVE_NONVOL_FAR
    case 9:   // SAVE_XMM128_FAR
    case 11:  // SET_FPREG_LARGE
      return 3;
    default:
      return 0;
  }
}

static void undo(const struct code *c, uint64_t frame, uint64_t fp_less_offset,
                 ref_stack_word *stack, struct ref_registers *regs) {
  switch (c->op) {
    case 0:
      regs->r[c->info] = stack(regs->r[REF_RSP]);
      regs->r[REF_RSP] += 8;
      break;
    case 1:
      regs->r[REF_RSP] += c->info == 0 ? u16(c->operand) * 8 : u32(c->operand);
      break;
    case 2:
      regs->r[REF_RSP] += c->info * 8u + 8;
      break;
    case 3:
    case 11:
      regs->r[REF_RSP] = fp_less_offset;
      break;
    case 4:
      regs->r[c->info] = stack(frame + u16(c->operand) * 8);
      break;
    case 5:
      regs->r[c->info] = stack(frame + u32(c->operand));
      break;
    default:
      break;  // xmm registers
  }
}

bool ref_unwind(const struct ref_pe *pe, const struct ref_function *function, uint32_t executed,
                ref_stack_word *stack, struct ref_registers *regs) {
  uint32_t rva = function->unwind;
  for (int chain = 0; chain < 32; chain++) {
    const uint8_t *info = ref_pe_at(pe, rva, 4);
    if (info == NULL || (info[0] & 7) != 1) return false;
    unsigned count = info[2], fp = info[3] & 15, fp_offset = (info[3] >> 4) * 16u;
    const uint8_t *codes = ref_pe_at(pe, rva + 4, count * 2u);
    if (count != 0 && codes == NULL) return false;
    // Two results of this pass: whether the frame register is set yet, and its offset from rsp.
    bool fp_set = false;
    for (unsigned i = 0, n; i < count; i += n) {
      struct code c = {codes[i * 2], codes[i * 2 + 1] & 15, codes[i * 2 + 1] >> 4,
                       codes + i * 2 + 2};
      n = slots(&c);
      if (n == 0 || i + n > count) return false;
      if (c.op == 11) fp_offset = u32(c.operand) * 16;
      if ((c.op == 3 || c.op == 11) && c.offset <= executed) fp_set = true;
    }
    uint64_t fp_base = regs->r[fp] - fp_offset;
    uint64_t frame = fp_set ? fp_base : regs->r[REF_RSP];
    if (info[0] >> 3 & 4 && fp != 0) frame = fp_base;  // a chained part: its parent has set it
    for (unsigned i = 0, n; i < count; i += n) {
      struct code c = {codes[i * 2], codes[i * 2 + 1] & 15, codes[i * 2 + 1] >> 4,
                       codes + i * 2 + 2};
      n = slots(&c);
      if (c.offset <= executed) undo(&c, frame, fp_base, stack, regs);
    }
    if (!(info[0] >> 3 & 4)) {
      regs->r[REF_RIP] = stack(regs->r[REF_RSP]);
      regs->r[REF_RSP] += 8;
      return true;
    }
    const uint8_t *parent = ref_pe_at(pe, rva + 4 + (count + (count & 1)) * 2, 12);
    if (parent == NULL) return false;
    rva = u32(parent + 8);
    executed = UINT32_MAX;  // the parent's prolog is over
  }
  return false;
}
