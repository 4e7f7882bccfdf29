// SPDX-License-Identifier: MIT
// See steps.h. capstone decodes the instructions. A frame's state is propagated from the entry
// along jumps until nothing changes. After an instruction that changes rsp in a way that is not
// modelled, rsp is unknown, and only a frame with rbp as its frame pointer shows where the caller
// is. One thread; not for handlers.
#include "ref/steps.h"

#include <capstone/capstone.h>
#include <stdlib.h>
#include <string.h>

const uint8_t step_register[STEP_SAVED] = {3, 5, 12, 13, 14, 15};
enum { RBP = 1 };  // its place among them

static int slot_of(x86_reg reg) {
  static const struct {
    x86_reg reg;
    int slot;
  } names[] = {{X86_REG_RBX, 0},  {X86_REG_EBX, 0}, {X86_REG_BX, 0},   {X86_REG_BL, 0},
               {X86_REG_BH, 0},   {X86_REG_RBP, 1}, {X86_REG_EBP, 1},  {X86_REG_BP, 1},
               {X86_REG_BPL, 1},  {X86_REG_R12, 2}, {X86_REG_R12D, 2}, {X86_REG_R12W, 2},
               {X86_REG_R12B, 2}, {X86_REG_R13, 3}, {X86_REG_R13D, 3}, {X86_REG_R13W, 3},
               {X86_REG_R13B, 3}, {X86_REG_R14, 4}, {X86_REG_R14D, 4}, {X86_REG_R14W, 4},
               {X86_REG_R14B, 4}, {X86_REG_R15, 5}, {X86_REG_R15D, 5}, {X86_REG_R15W, 5},
               {X86_REG_R15B, 5}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].reg == reg) return names[i].slot;
  return -1;
}

static bool is_rsp(x86_reg reg) {
  return reg == X86_REG_RSP || reg == X86_REG_ESP || reg == X86_REG_SP || reg == X86_REG_SPL;
}

static void push(struct step_state *s, const cs_x86_op *op) {
  s->rsp_below += 8;
  int slot = op->type == X86_OP_REG ? slot_of(op->reg) : -1;
  if (s->rsp_known && slot >= 0 && s->own[slot] && s->saved[slot] == 0)
    s->saved[slot] = (uint32_t)s->rsp_below;
}

static void pop(struct step_state *s, const cs_x86_op *op) {
  int slot = op->type == X86_OP_REG ? slot_of(op->reg) : -1;
  bool back = s->rsp_known && slot >= 0 && s->saved[slot] == (uint32_t)s->rsp_below;
  s->rsp_below -= 8;
  if (slot < 0) return;
  s->own[slot] = back;
  if (back) s->saved[slot] = 0;
  if (slot == RBP) s->rbp_is_frame = false;
}

// Sets rsp or rbp to the sum of one of them and a number. Returns false for any other instruction.
static bool moves_frame(struct step_state *s, const cs_insn *insn) {
  const cs_x86 *x = &insn->detail->x86;
  if (x->op_count != 2 || x->operands[0].type != X86_OP_REG) return false;
  x86_reg to = x->operands[0].reg, from = X86_REG_INVALID;
  const cs_x86_op *by = &x->operands[1];
  int64_t distance = 0;
  if (to != X86_REG_RSP && to != X86_REG_RBP) return false;
  if ((insn->id == X86_INS_SUB || insn->id == X86_INS_ADD) && by->type == X86_OP_IMM) {
    from = to;
    distance = insn->id == X86_INS_ADD ? by->imm : -by->imm;
  } else if (insn->id == X86_INS_MOV && by->type == X86_OP_REG) {
    from = by->reg;
  } else if (insn->id == X86_INS_LEA && by->mem.index == X86_REG_INVALID) {
    from = by->mem.base;
    distance = by->mem.disp;
  }
  bool known = from == X86_REG_RSP ? s->rsp_known : from == X86_REG_RBP && s->rbp_is_frame;
  if (!known) return false;
  int32_t below = (from == X86_REG_RSP ? s->rsp_below : s->rbp_below) - (int32_t)distance;
  if (to == X86_REG_RSP) {
    s->rsp_below = below;
    s->rsp_known = true;
  } else {
    s->rbp_below = below;
    s->rbp_is_frame = true;
    s->own[RBP] = false;
  }
  return true;
}

static void execute(csh handle, struct step_state *s, const cs_insn *insn) {
  cs_regs read, written;
  uint8_t read_count, written_count;
  const cs_x86 *x = &insn->detail->x86;
  if (insn->id == X86_INS_PUSH) {
    push(s, &x->operands[0]);
    return;
  }
  if (insn->id == X86_INS_POP) {
    pop(s, &x->operands[0]);
    return;
  }
  if (insn->id == X86_INS_CALL || moves_frame(s, insn)) return;
  if (cs_regs_access(handle, insn, read, &read_count, written, &written_count) != CS_ERR_OK) return;
  for (uint8_t i = 0; i < written_count; i++) {
    int slot = slot_of((x86_reg)written[i]);
    if (is_rsp((x86_reg)written[i])) s->rsp_known = false;
    if (slot >= 0) s->own[slot] = false;
    if (slot == RBP) s->rbp_is_frame = false;
  }
}

static bool same(const struct step_state *a, const struct step_state *b) {
  if (a->rsp_known != b->rsp_known || a->rbp_is_frame != b->rbp_is_frame) return false;
  if (a->rsp_known && a->rsp_below != b->rsp_below) return false;
  if (a->rbp_is_frame && a->rbp_below != b->rbp_below) return false;
  return memcmp(a->saved, b->saved, sizeof a->saved) == 0;
}

// Returns true if the state of that place has changed.
static bool flow(struct step_state *to, const struct step_state *from) {
  if (!to->reached) {
    *to = *from;
    return true;
  }
  if (to->conflict) return false;
  bool changed = from->conflict || !same(to, from);
  if (changed) to->conflict = true;
  for (int i = 0; i < STEP_SAVED; i++) {
    if (!to->own[i] || from->own[i]) continue;
    to->own[i] = false;
    changed = true;
  }
  return changed;
}

static int find(const struct steps *steps, uint64_t offset) {
  int lo = 0, hi = (int)steps->count - 1;
  while (lo <= hi) {
    int mid = (lo + hi) / 2;
    if (steps->list[mid].offset == offset) return mid;
    if (steps->list[mid].offset < offset)
      lo = mid + 1;
    else
      hi = mid - 1;
  }
  return -1;
}

static bool ends(const cs_insn *insn) {
  return insn->id == X86_INS_RET || insn->id == X86_INS_JMP || insn->id == X86_INS_INT3 ||
         insn->id == X86_INS_UD2;
}

static bool follow_once(csh handle, struct steps *steps, const cs_insn *insns) {
  bool changed = false;
  for (uint32_t i = 0; i < steps->count; i++) {
    const cs_insn *insn = &insns[i];
    struct step_state after = steps->list[i].state;
    if (!after.reached) continue;
    execute(handle, &after, insn);
    const cs_x86_op *target = &insn->detail->x86.operands[0];
    if (cs_insn_group(handle, insn, CS_GRP_JUMP) && target->type == X86_OP_IMM) {
      int to = find(steps, (uint64_t)target->imm);
      if (to >= 0) changed |= flow(&steps->list[to].state, &after);
    }
    if (!ends(insn) && i + 1 < steps->count) changed |= flow(&steps->list[i + 1].state, &after);
  }
  return changed;
}

static bool reserve(struct steps *steps, uint32_t count) {
  if (count > steps->capacity) {
    struct step_instruction *list = realloc(steps->list, count * sizeof *list);
    if (list == NULL) return false;
    steps->list = list;
    steps->capacity = count;
  }
  memset(steps->list, 0, count * sizeof *steps->list);
  steps->count = count;
  return true;
}

bool steps_follow(struct steps *steps, const uint8_t *code, uint32_t size) {
  static csh handle;
  cs_insn *insns;
  if (handle == 0) {
    if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK) return false;
    cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
  }
  size_t count = cs_disasm(handle, code, size, 0, 0, &insns);
  if (count == 0) return false;
  bool ok = reserve(steps, (uint32_t)count);
  for (uint32_t i = 0; ok && i < count; i++)
    steps->list[i] = (struct step_instruction){
        .offset = (uint32_t)insns[i].address,
        .size = insns[i].size,
        .call = insns[i].id == X86_INS_CALL,
    };
  if (ok) {
    struct step_state *entry = &steps->list[0].state;
    *entry = (struct step_state){.reached = true, .rsp_known = true, .rsp_below = 8};
    memset(entry->own, 1, sizeof entry->own);
    while (follow_once(handle, steps, insns)) {
    }
  }
  cs_free(insns, count);
  return ok;
}

void steps_free(struct steps *steps) {
  free(steps->list);
  memset(steps, 0, sizeof *steps);
}
