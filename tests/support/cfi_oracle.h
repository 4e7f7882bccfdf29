// SPDX-License-Identifier: MIT
// elfutils as an oracle of unwind rows: evaluates its rules of a row over made-up registers and a
// made-up stack, and compares a step with them. The includer defines, for its architecture: `ours`,
// our register of each DWARF column; SP_COLUMN and RA_COLUMN; RA_IS_KEPT, whether a
// return address without a rule is in the register of its column; `preserved`, the columns
// that a call preserves, with both of them. One thread.
#pragma once

enum { COLUMNS = sizeof ours / sizeof ours[0] };

// A stack in which every word has a value of its own, which is aligned, on the stack, and above
// every register.
#define STACK_LO 0x040000000000u
#define STACK_HI 0x700000000000u
#define STACK_SP \
  0x080000000000u  // eight times that is on the stack, too: one CFA is [rsp + r9 * 8 + 8]
static uint64_t word_at(uint64_t address) {
  return 0x300000000000u + ((address * 0x9E3779B97F4A7C15u) >> 20 & ~7ull);
}
static bool made_up(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  (void)mem;
  uint64_t value;
  memset(dst, 0, len);  // not words: code bytes, which look like nothing
  if (len % sizeof value != 0) return true;
  for (size_t at = 0; at < len; at += sizeof value) {
    value = word_at(address + at);
    memcpy((uint8_t *)dst + at, &value, sizeof value);
  }
  return true;
}

struct value {
  bool defined;
  uint64_t v;
};
struct evaluation {
  const struct cs_regs *regs;
  uint64_t cfa;
  uint64_t stack[16];
  unsigned depth;
};

static void push(struct evaluation *e, uint64_t v) {
  assert_true(e->depth < 16);
  e->stack[e->depth++] = v;
}
static uint64_t pop(struct evaluation *e) {
  assert_true(e->depth > 0);
  return e->stack[--e->depth];
}

static void operate(struct evaluation *e, const Dwarf_Op *op) {
  uint64_t b;
  if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
    push(e, op->atom - (uint64_t)DW_OP_lit0);
  } else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
    push(e, e->regs->r[ours[op->atom - DW_OP_breg0]] + op->number);
  } else {
    switch (op->atom) {
      case DW_OP_bregx:
        push(e, e->regs->r[ours[op->number]] + op->number2);
        break;
      case DW_OP_call_frame_cfa:
        push(e, e->cfa);
        break;
      case DW_OP_plus_uconst:
        push(e, pop(e) + op->number);
        break;
      case DW_OP_const8s:
      case DW_OP_const4s:
      case DW_OP_consts:
        push(e, op->number);
        break;
      case DW_OP_deref:
        push(e, word_at(pop(e)));
        break;
      case DW_OP_plus:
        b = pop(e);
        push(e, pop(e) + b);
        break;
      case DW_OP_mul:
        b = pop(e);
        push(e, pop(e) * b);
        break;
      case DW_OP_and:
        b = pop(e);
        push(e, pop(e) & b);
        break;
      case DW_OP_shl:
        b = pop(e);
        push(e, pop(e) << b);
        break;
      case DW_OP_ge:
        b = pop(e);
        push(e, (int64_t)pop(e) >= (int64_t)b);
        break;
      default:
        fail_msg("the oracle uses operation 0x%x, which this test does not know", op->atom);
    }
  }
}

static uint64_t evaluate(struct evaluation *e, const Dwarf_Op *ops, size_t n) {
  e->depth = 0;
  for (size_t i = 0; i < n; i++)
    if (ops[i].atom != DW_OP_stack_value) operate(e, &ops[i]);
  return pop(e);
}

struct oracle {
  struct evaluation e;
  struct value reg[COLUMNS];  // the caller's, by DWARF number
  bool sp_has_rule, odd_cfa, signal_frame;
};

static void ask_register(Dwarf_Frame *frame, int column, struct oracle *o) {
  Dwarf_Op mem[3], *ops;
  size_t n;
  assert_int_equal(dwarf_frame_register(frame, column, mem, &ops, &n), 0);
  struct value *value = &o->reg[column];
  value->defined = true;
  // "Undefined" is also what elfutils says of a register without a rule, as it reads the section
  // without the ABI's own rules: what a call preserves is the same. (No program in these libraries
  // says "undefined" of anything but the return address.)
  if (n == 0 && ops == mem && column == RA_COLUMN && !RA_IS_KEPT)
    value->defined = false;
  else if (n == 0)
    value->v = column == SP_COLUMN ? o->e.cfa : o->e.regs->r[ours[column]];
  else if (n == 1 && ops[0].atom == DW_OP_regx)
    value->v = o->e.regs->r[ours[ops[0].number]];
  else if (n == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
    value->v = o->e.regs->r[ours[ops[0].atom - DW_OP_reg0]];
  else if (ops[n - 1].atom == DW_OP_stack_value)
    value->v = evaluate(&o->e, ops, n);
  else
    value->v = word_at(evaluate(&o->e, ops, n));
  bool is_cfa = n == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_stack_value;
  if (column == SP_COLUMN) o->sp_has_rule = n != 0 && !is_cfa;
}

static bool ask(Dwarf_CFI *cfi, uint64_t address, const struct cs_regs *regs, struct oracle *o,
                uint64_t *begin, uint64_t *end) {
  Dwarf_Frame *frame = NULL;
  if (dwarf_cfi_addrframe(cfi, address, &frame) != 0) return false;
  Dwarf_Op *ops;
  size_t n;
  Dwarf_Addr row_begin, row_end;
  bool signal;
  int ra = dwarf_frame_info(frame, &row_begin, &row_end, &signal);
  assert_int_equal(ra, RA_COLUMN);
  *begin = row_begin;
  *end = row_end;
  memset(o, 0, sizeof *o);
  o->e.regs = regs;
  o->signal_frame = signal;
  assert_int_equal(dwarf_frame_cfa(frame, &ops, &n), 0);
  o->e.cfa = evaluate(&o->e, ops, n);
  for (size_t i = 0; i < n; i++)
    if (ops[i].atom == DW_OP_mul) o->odd_cfa = true;  // rsp + 8 + r9 * 8: a known unsupported form
  for (int column = 0; column < COLUMNS; column++) ask_register(frame, column, o);
  free(frame);
  return true;
}

static void compare_registers(const struct cs_regs *regs, const struct oracle *o,
                              const char *where) {
  for (unsigned i = 0; i < (o->signal_frame ? (unsigned)COLUMNS : CS_COUNT(preserved)); i++) {
    unsigned column = o->signal_frame ? i : preserved[i];
    bool known = (regs->known & CS_REG_BIT(ours[column])) != 0;
    if (known != o->reg[column].defined || (known && regs->r[ours[column]] != o->reg[column].v))
      fail_msg("%s: column %u is %d:%#lx, the oracle says %d:%#lx", where, column, known,
               regs->r[ours[column]], o->reg[column].defined, o->reg[column].v);
  }
}
