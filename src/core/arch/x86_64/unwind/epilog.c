// SPDX-License-Identifier: MIT
// Epilogs of managed code, recognised by their bytes, since version 1 of UNWIND_INFO does not
// describe them. Signal-safe: yes.
//
// The JIT's epilog frees the locals (add rsp / lea rsp), pops the saved registers, and leaves by
// ret or by a tail jump. A frame that is interrupted there has undone part of its prolog already,
// so the rest of the epilog is carried out here. The bytes at the ip must match up to the end;
// otherwise the ip is in the body. On .NET 10 about 3 % of interrupted managed leaves are in an
// epilog. The frame register of the UNWIND_INFO is needed to tell `lea rsp, [frame + n]` from code
// of the body; without it nothing is lost, since body and epilog unwind alike until that
// instruction has run.
#include "unwind/managed.h"

enum { WINDOW = 64 };  // bytes: add/lea (7) + 8 pops (2 each) + prefix + longest jump (9), and more

struct bytes {
  uint8_t b[WINDOW];
  unsigned len, at;
};

CS_ISLAND static int byte_at(const struct bytes *w, unsigned i) {
  return w->at + i < w->len ? w->b[w->at + i] : -1;
}

CS_ISLAND static int32_t imm32(const struct bytes *w, unsigned i) {
  uint32_t v = 0;
  for (unsigned k = 0; k < 4; k++) v |= (uint32_t)w->b[w->at + i + k] << (8 * k);
  return (int32_t)v;
}

CS_ISLAND static bool has_bytes(const struct bytes *w, unsigned n) {
  return w->at + n <= w->len;
}

// Executes `add rsp, n`, `lea rsp, [frame + n]`, or (in hand-written code) `lea rsp, [rsp + n]`, if
// one of them is next.
CS_ISLAND static void free_locals(struct bytes *w, const struct cs_unwind_info *info,
                                  struct cs_regs *regs) {
  int rex = byte_at(w, 0), op = byte_at(w, 1), modrm = byte_at(w, 2);
  if (rex == 0x48 && op == 0x83 && modrm == 0xC4 && has_bytes(w, 4)) {
    regs->r[CS_RSP] += (uint64_t)(int64_t)(int8_t)w->b[w->at + 3];
    w->at += 4;
  } else if (rex == 0x48 && op == 0x81 && modrm == 0xC4 && has_bytes(w, 7)) {
    regs->r[CS_RSP] += (uint64_t)(int64_t)imm32(w, 3);
    w->at += 7;
  } else if (rex == 0x48 && op == 0x8D && modrm == 0x64 && byte_at(w, 3) == 0x24 &&
             has_bytes(w, 5)) {
    regs->r[CS_RSP] += (uint64_t)(int64_t)(int8_t)w->b[w->at + 4];
    w->at += 5;
  } else if (rex == 0x48 && op == 0x8D && modrm == 0xA4 && byte_at(w, 3) == 0x24 &&
             has_bytes(w, 8)) {
    regs->r[CS_RSP] += (uint64_t)(int64_t)imm32(w, 4);
    w->at += 8;
  } else if (info->frame_register != 0 && (rex & ~1) == 0x48 && op == 0x8D &&
             (modrm & 0x38) == 0x20) {
    unsigned base = (unsigned)(modrm & 7) | (rex & 1 ? 8u : 0u);
    if (base != info->frame_register || (modrm & 7) == 4) return;
    if ((modrm >> 6) == 1 && has_bytes(w, 4)) {
      regs->r[CS_RSP] = regs->r[base] + (uint64_t)(int64_t)(int8_t)w->b[w->at + 3];
      w->at += 4;
    } else if ((modrm >> 6) == 2 && has_bytes(w, 7)) {
      regs->r[CS_RSP] = regs->r[base] + (uint64_t)(int64_t)imm32(w, 3);
      w->at += 7;
    }
  }
}

// Executes the pops. Returns false if the stack ends before they do.
CS_ISLAND static bool pop_saved(struct bytes *w, struct cs_step *step) {
  for (;;) {
    int b = byte_at(w, 0), next = byte_at(w, 1);
    if (b >= 0x58 && b <= 0x5F) {
      if (!cs_step_pop(step, (unsigned)b - 0x58)) return false;
      w->at += 1;
    } else if (b >= 0x40 && b <= 0x4F && next >= 0x58 && next <= 0x5F) {
      if (!cs_step_pop(step, (unsigned)next - 0x58 + (b & 1 ? 8u : 0u))) return false;
      w->at += 2;
    } else {
      return true;
    }
  }
}

// Returns whether a jump to `target` leaves the function for good. One to the function's own start
// does: it is a tail call of itself, made after the frame is gone. One to a cold part of the same
// function (an entry whose unwind info is chained) does not: the frame still exists.
CS_ISLAND static bool leaves_function(const struct cs_step *step, const struct cs_unwind_info *info,
                                      uint64_t target) {
  const struct cs_code *code = step->code;
  if (target == code->begin) return !(info->flags & CS_UNWIND_CHAINED);
  if (target >= code->begin && target < code->end) return false;
  struct cs_code other;
  uint8_t flags;
  if (cs_codemap_find_managed(step->world, target, &other) != CS_STOP_NONE) return false;
  if (!cs_code_is_managed(&other)) return true;  // a stub, or code of the runtime
  if (other.begin != target) return false;       // no call goes into the middle of a function
  struct cs_reader reader = {.mem = &step->world->mem, .guarded = other.collectible};
  if (cs_unwind_info_flags(&reader, other.unwind_info, &flags) != CS_STOP_NONE) return false;
  return !(flags & CS_UNWIND_CHAINED);
}

// Returns whether the next instruction is a ret, in one of its forms, or a jump that leaves.
CS_ISLAND static bool is_exit(const struct bytes *w, const struct cs_step *step,
                              const struct cs_unwind_info *info, uint64_t window_ip) {
  unsigned i = byte_at(w, 0) == 0xF2 ? 1 : 0;  // bnd
  int b = byte_at(w, i), next = byte_at(w, i + 1);
  uint64_t at = window_ip + w->at + i;
  if (b == 0xC3 || (b == 0xC2 && has_bytes(w, i + 3)) || (b == 0xF3 && next == 0xC3)) return true;
  if (b == 0xEB && has_bytes(w, i + 2))
    return leaves_function(step, info, at + 2 + (uint64_t)(int64_t)(int8_t)next);
  if (b == 0xE9 && has_bytes(w, i + 5))
    return leaves_function(step, info, at + 5 + (uint64_t)(int64_t)imm32(w, i + 1));
  if (b == 0xFF && next == 0x25) return true;  // jmp [rip + n]
  // A tail jump through a register or memory has REX.W, which the jump of a switch does not.
  return b >= 0x48 && b <= 0x4F && next == 0xFF && (byte_at(w, i + 2) & 0x38) == 0x20 &&
         byte_at(w, i + 2) >= 0;
}

CS_ISLAND enum cs_epilog cs_epilog_step(struct cs_step *step, const struct cs_unwind_info *info) {
  struct bytes w = {.at = 0};
  struct cs_regs before = step->regs;
  uint64_t ip = step->regs.r[CS_RIP];
  w.len = step->code->end - ip < WINDOW ? (unsigned)(step->code->end - ip) : WINDOW;
  if (!cs_get(&step->reader, ip, w.b, w.len)) return CS_EPILOG_NO;
  free_locals(&w, info, &step->regs);
  // A body that looks like the beginning of an epilog is only detected at its end, so the registers
  // are restored in any case.
  bool on_stack = pop_saved(&w, step);
  if (on_stack && is_exit(&w, step, info, ip))
    return cs_step_pop(step, CS_RIP) ? CS_EPILOG_DONE : CS_EPILOG_BAD_SP;
  step->regs = before;
  return CS_EPILOG_NO;
}

CS_ISLAND bool cs_unwind_native_epilog(const struct cs_world *world, const struct cs_code *code,
                                       const struct cs_stack *stack, struct cs_regs *regs) {
  static const struct cs_unwind_info no_frame_register = {.version = 1};
  struct cs_step step = {
      .world = world,
      .stack = stack,
      .code = code,
      .reader = {.mem = &world->mem, .guarded = true},  // the image may be unloaded at any time
      .regs = *regs,
  };
  struct bytes w = {.at = 0};
  uint64_t ip = regs->r[CS_RIP];
  w.len = code->end - ip < WINDOW ? (unsigned)(code->end - ip) : WINDOW;
  if (!cs_get(&step.reader, ip, w.b, w.len)) return false;
  free_locals(&w, &no_frame_register, &step.regs);
  if (!pop_saved(&w, &step) || byte_at(&w, 0) != 0xC3 || !cs_step_pop(&step, CS_RIP)) return false;
  step.regs.known &= CS_REGS_PRESERVED;
  *regs = step.regs;
  return true;
}
