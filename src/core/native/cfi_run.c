// SPDX-License-Identifier: MIT
// Runs call-frame programs (DWARF 5, section 6.4.2, with GNU's additions) and interns a rule for
// each state that applies somewhere. Invariant: no program reads beyond its own bytes, runs longer
// than them, or writes a row outside of its function. A state that no rule can express becomes
// "none", never something similar. Signal-safe: no.
//
// What occurs in 25 images with 73,000 functions: the 15 of .NET 10.0.12, and Debian 12's libc,
// ld.so, libm, libgcc_s, libstdc++, OpenSSL, ICU and zlib. All of it is supported.
//
//   advance_loc       330,973    remember_state  18,265    def_cfa_expression  75
//   def_cfa_offset    216,339    restore_state   18,265    expression          34
//   offset            187,716    advance_loc2    12,493    offset_extended_sf  24
//   def_cfa            66,764    restore         12,137    register            20
//   def_cfa_register   37,979    GNU_args_size    7,135    undefined            3
//   advance_loc1       24,493    advance_loc4         2    same_value           1
//
// The expressions: the PLT's (10), [reg + off] + n (58, OpenSSL), the signal trampoline's (2), and
// [rsp + 8 + r9 * 8] + 8 (3, OpenSSL). In all ELF files of a full Debian 12 desktop, 1,830 with 2.0
// million functions, 20 places have no supported CFA, and none is malformed; they need 5,844 rules,
// and take 70 ns a row.
#include "native/cfi_expression.h"
#include "native/cfi_private.h"
#include "native/cfi_special.h"

enum {  // DW_CFA_*
  CFA_NOP = 0x00,
  CFA_SET_LOC = 0x01,
  CFA_ADVANCE_LOC1 = 0x02,
  CFA_ADVANCE_LOC2 = 0x03,
  CFA_ADVANCE_LOC4 = 0x04,
  CFA_OFFSET_EXTENDED = 0x05,
  CFA_RESTORE_EXTENDED = 0x06,
  CFA_UNDEFINED = 0x07,
  CFA_SAME_VALUE = 0x08,
  CFA_REGISTER = 0x09,
  CFA_REMEMBER_STATE = 0x0A,
  CFA_RESTORE_STATE = 0x0B,
  CFA_DEF_CFA = 0x0C,
  CFA_DEF_CFA_REGISTER = 0x0D,
  CFA_DEF_CFA_OFFSET = 0x0E,
  CFA_DEF_CFA_EXPRESSION = 0x0F,
  CFA_EXPRESSION = 0x10,
  CFA_OFFSET_EXTENDED_SF = 0x11,
  CFA_DEF_CFA_SF = 0x12,
  CFA_DEF_CFA_OFFSET_SF = 0x13,
  CFA_VAL_OFFSET = 0x14,
  CFA_VAL_OFFSET_SF = 0x15,
  CFA_VAL_EXPRESSION = 0x16,
  CFA_MIPS_ADVANCE_LOC8 = 0x1D,
  CFA_GNU_ARGS_SIZE = 0x2E,
  CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2F,
  // with an operand in the low six bits:
  CFA_ADVANCE_LOC = 0x40,
  CFA_OFFSET = 0x80,
  CFA_RESTORE = 0xC0,
};
enum { EH_DATA = (1 << CS_DWARF_EH_COLUMNS) - 1 };
enum { MAX_REMEMBERED = 64 };  // the greatest depth that occurs is 2

struct machine {
  struct cs_cfi_build *build;
  const struct cs_cie *cie;  // of the FDE, or the one whose instructions run
  bool in_cie;
  struct cs_cursor in;
  struct cs_cfi_state now, remembered[MAX_REMEMBERED];
  unsigned depth;
  uint32_t loc, end;    // rows before `loc` have been written; none is written at or after `end`
  int32_t height;       // of the frame in the last row: CFA - rsp, or 0 if that is unknown
  uint32_t first_drop;  // where the frame first becomes smaller, in an epilog; `end` if nowhere
  bool contradicts;     // some row has its CFA below sp, which is impossible
  bool not_called;      // some row has its return address above the CFA, where no call leaves it
  uint8_t eh_data;      // bit i: the i-th of CS_DWARF_EH_COLUMNS is saved
  uint32_t leave_ip;    // if all are: the first ip where cs_dwarf_eh_leaves is true; 0: none
  bool malformed, no_memory, unknown_op;
};

static void set_how(struct machine *m, uint64_t column, uint8_t how, int64_t off) {
  m->now.interned = false;
  if (column == CS_DWARF_SP) {
    m->now.rsp_ruled = true;
    m->now.rsp_in = how == CS_CFI_IN_REG ? (uint8_t)(off + 1) : 0;
    m->now.rsp_at = how == CS_CFI_AT_CFA && cs_cfi_fits(off) ? (int32_t)off : 0;
  }
  if (column >= CS_DWARF_COLUMNS || cs_dwarf_slot[column] == 0) return;
  if (!cs_cfi_fits(off)) {
    how = CS_CFI_UNDEFINED;
    off = 0;
  }
  unsigned slot = cs_dwarf_slot[column] - 1u;
  // A return address that no supported rule finds is not made "undefined", which would mean the
  // stack's base. Without a return address there is no rule at all.
  m->now.rule.slot[slot].how = how;
  m->now.rule.slot[slot].off = (int32_t)off;
}

static void unsupported(struct machine *m, uint64_t column) {
  m->build->stats->unsupported_register++;
  if (column == CS_DWARF_RA)
    set_how(m, column, CS_CFI_SAME, 0);  // intern refuses it
  else
    set_how(m, column, CS_CFI_UNDEFINED, 0);
}

static void set_offset(struct machine *m, uint64_t column, uint8_t how, int64_t factored) {
  if (column < CS_DWARF_EH_COLUMNS) m->eh_data |= (uint8_t)(1u << column);
  int64_t off;
  if (__builtin_mul_overflow(factored, m->cie->data_align, &off))
    unsupported(m, column);
  else
    set_how(m, column, how, off);
}

static void restore(struct machine *m, uint64_t column) {
  m->now.interned = false;
  if (column == CS_DWARF_SP) m->now.rsp_ruled = m->cie->initial.rsp_ruled, m->now.rsp_at = 0;
  if (column >= CS_DWARF_COLUMNS || cs_dwarf_slot[column] == 0) return;
  unsigned slot = cs_dwarf_slot[column] - 1u;
  m->now.rule.slot[slot] = m->cie->initial.rule.slot[slot];
}

static void set_cfa(struct machine *m, uint8_t how, uint64_t reg, int64_t off, uint8_t add) {
  struct cs_cfi_rule *rule = &m->now.rule;
  m->now.interned = false;
  bool supported = reg < CS_DWARF_REGISTERS && cs_cfi_fits(off) && how != CS_CFA_NONE;
  rule->cfa_how = supported ? how : CS_CFA_NONE;
  rule->cfa_reg = supported ? cs_dwarf_register[reg] : 0;
  rule->cfa_off = supported ? (int32_t)off : 0;
  rule->cfa_add = supported ? add : 0;
}

static void set_cfa_register(struct machine *m, uint64_t reg) {
  bool plain = m->now.rule.cfa_how == CS_CFA_REG;
  set_cfa(m, plain ? CS_CFA_REG : CS_CFA_NONE, reg, m->now.rule.cfa_off, 0);
}

static void set_cfa_offset(struct machine *m, int64_t off) {
  m->now.interned = false;
  if (m->now.rule.cfa_how != CS_CFA_REG || !cs_cfi_fits(off))
    m->now.rule.cfa_how = CS_CFA_NONE;
  else
    m->now.rule.cfa_off = (int32_t)off;
}

static void cfa_expression(struct machine *m, struct cs_cursor c) {
  struct cs_cfa_form form = cs_cfa_parse(c);
  set_cfa(m, form.how, form.reg, form.off, form.add);
}

static void register_expression(struct machine *m, uint64_t column, struct cs_cursor c) {
  int64_t off;
  uint8_t how = cs_cfi_register_form(c, &off);
  if (how == CS_CFI_UNDEFINED)
    unsupported(m, column);
  else if (column == CS_DWARF_SP && !m->cie->signal_frame)
    m->now.rsp_ruled = true, m->now.interned = false;
  else if (column != CS_DWARF_SP)
    set_how(m, column, how, off);
}

static struct cs_cursor block(struct machine *m) {
  uint64_t len = cs_cursor_uleb(&m->in);
  struct cs_cursor c = m->in;
  cs_cursor_skip(&m->in, len);
  c.end = m->in.bad ? c.at : m->in.at;
  return c;
}

// Returns whether the state describes the place where longjmp will continue as its caller: sp and
// the return address are in registers, the other registers in memory at what it calls the CFA.
static bool is_jump(const struct cs_cfi_state *state) {
  const struct cs_cfi_rule *rule = &state->rule;
  return state->rsp_ruled && state->rsp_in != 0 && rule->cfa_how == CS_CFA_REG &&
         rule->cfa_off == 0 && rule->slot[CS_CFI_RA].how == CS_CFI_IN_REG;
}

// Interns the state's rule, if it can be expressed as one.
static void intern(struct machine *m) {
  struct cs_cfi_rule *rule = &m->now.rule;
  bool is_above = rule->cfa_how == CS_CFA_REG && rule->slot[CS_CFI_RA].how == CS_CFI_AT_CFA &&
                  rule->slot[CS_CFI_RA].off >= 0;
  bool supported = rule->cfa_how != CS_CFA_NONE && rule->slot[CS_CFI_RA].how != CS_CFI_SAME &&
                   !m->now.rsp_ruled && !is_above && m->cie->return_register == CS_DWARF_RA &&
                   (!m->cie->signal_frame || cs_cfi_is_kernel_frame(rule));
  rule->signal_frame = m->cie->signal_frame;
  struct cs_cfi_rule jump = *rule;
  if (!supported && is_jump(&m->now) && !m->cie->signal_frame) {
    jump.cfa_how = CS_CFA_JUMP;
    jump.cfa_reg = (uint8_t)(m->now.rsp_in - 1);
    jump.cfa_add = rule->cfa_reg;
    supported = true;
  } else if (!supported && cs_cfi_is_ucontext(&m->now) && !m->cie->signal_frame) {
    jump.cfa_how = CS_CFA_UCONTEXT;
    supported = true;
  }
  if (is_above && !supported) m->not_called = true;
  m->now.index = supported ? cs_rules_intern(m->build->rules, &jump) : CS_RULE_NONE;
  m->now.interned = true;
}

static void track_height(struct machine *m) {
  const struct cs_cfi_rule *rule = &m->now.rule;
  bool from_rsp = rule->cfa_how == CS_CFA_REG && rule->cfa_reg == CS_SP;
  int32_t height = from_rsp ? rule->cfa_off : 0;
  if (from_rsp && height < m->height && m->first_drop == m->end) m->first_drop = m->loc;
  if (height < 0) m->contradicts = true;
  m->height = height;
}

// Replaces the rows from `ip` on by one without a rule.
static bool drop_rows(struct machine *m, uint32_t ip) {
  struct cs_rows *rows = m->build->rows;
  while (rows->count != 0 && rows->ip[rows->count - 1] >= ip) rows->count--;
  m->build->stats->distrusted++;
  return cs_rows_add(rows, ip, CS_RULE_NONE);
}

// Hand-written code may have wrong unwind data, which would lead to wrong frames. Such functions
// are detected by contradictions (native/cfi_special.c), and lose rules: prologs and bodies are
// right, and everything from the first epilog on is dropped; a function that is not entered by a
// call gets no rule at all.
static bool check_function(struct machine *m, uint32_t ip, uint32_t last_row, int32_t last_height) {
  m->loc = last_row;
  enum cs_cfi_end end = cs_cfi_check_end(m->build, last_row, m->end, last_height);
  if (end == CS_CFI_END_NOT_CALLED || m->not_called) return drop_rows(m, ip);
  uint32_t epilog = m->first_drop < m->end ? m->first_drop : last_row;
  return (!m->contradicts && end == CS_CFI_END_RIGHT) || drop_rows(m, epilog);
}

// Adds a row for the current state, which applies from `loc` up to `to`.
static void advance_to(struct machine *m, uint64_t to) {
  if (m->in_cie) return;
  if (to > m->end) to = m->end;
  if (to <= m->loc) return;
  if (!m->now.interned) intern(m);
  track_height(m);
  if (m->eh_data == EH_DATA && m->leave_ip == 0 && cs_dwarf_eh_leaves(&m->now.rule))
    m->leave_ip = m->loc;
  if (m->now.index == CS_RULE_NONE) m->build->stats->unsupported_cfa++;
  if (!cs_rows_add(m->build->rows, m->loc, m->now.index)) m->no_memory = true;
  m->loc = (uint32_t)to;
}

static void advance(struct machine *m, uint64_t delta) {
  uint64_t by, to;
  if (__builtin_mul_overflow(delta, m->cie->code_align, &by) ||
      __builtin_add_overflow(m->loc, by, &to))
    to = m->end;
  advance_to(m, to);
}

static void set_loc(struct machine *m) {
  uint64_t address;
  if (!cs_pe_read(m->build->section, &m->in, m->cie->fde_encoding, &address) ||
      address < m->build->text + m->loc)
    m->malformed = true;
  else
    advance_to(m, address - m->build->text);
}

static void remember_state(struct machine *m) {
  if (m->depth == MAX_REMEMBERED)
    m->malformed = true;
  else
    m->remembered[m->depth++] = m->now;
}

static void restore_state(struct machine *m) {
  if (m->depth == 0)
    m->malformed = true;
  else
    m->now = m->remembered[--m->depth];
}

static void do_register(struct machine *m) {
  uint64_t column = cs_cursor_uleb(&m->in), in = cs_cursor_uleb(&m->in);
  if (in < CS_DWARF_REGISTERS)
    set_how(m, column, CS_CFI_IN_REG, cs_dwarf_register[in]);
  else
    unsupported(m, column);
}

// Operations that set the CFA.
static bool step_cfa(struct machine *m, uint8_t op) {
  struct cs_cursor *in = &m->in;
  uint64_t reg;
  int64_t off;
  switch (op) {
    case CFA_DEF_CFA:
      reg = cs_cursor_uleb(in);
      set_cfa(m, CS_CFA_REG, reg, (int64_t)cs_cursor_uleb(in), 0);
      return true;
    case CFA_DEF_CFA_SF:
      reg = cs_cursor_uleb(in);
      if (__builtin_mul_overflow(cs_cursor_sleb(in), m->cie->data_align, &off)) off = INT64_MAX;
      set_cfa(m, CS_CFA_REG, reg, off, 0);
      return true;
    case CFA_DEF_CFA_REGISTER:
      set_cfa_register(m, cs_cursor_uleb(in));
      return true;
    case CFA_DEF_CFA_OFFSET:
      set_cfa_offset(m, (int64_t)cs_cursor_uleb(in));
      return true;
    case CFA_DEF_CFA_OFFSET_SF:
      if (__builtin_mul_overflow(cs_cursor_sleb(in), m->cie->data_align, &off)) off = INT64_MAX;
      set_cfa_offset(m, off);
      return true;
    case CFA_DEF_CFA_EXPRESSION:
      cfa_expression(m, block(m));
      return true;
    default:
      return false;
  }
}

static void same_value(struct machine *m, uint64_t column) {
  set_how(m, column, CS_CFI_SAME, 0);
  if (column == CS_DWARF_RA) cs_dwarf_at_entry(&m->now.rule);
}

// Operations that set the rule of one register.
static bool step_register(struct machine *m, uint8_t op) {
  struct cs_cursor *in = &m->in;
  if (op == CFA_REGISTER) {
    do_register(m);
    return true;
  }
  bool known = (op >= CFA_OFFSET_EXTENDED && op <= CFA_SAME_VALUE) || op == CFA_EXPRESSION ||
               op == CFA_OFFSET_EXTENDED_SF || (op >= CFA_VAL_OFFSET && op <= CFA_VAL_EXPRESSION) ||
               op == CFA_GNU_NEGATIVE_OFFSET_EXTENDED;
  if (!known) return false;
  uint64_t column = cs_cursor_uleb(in);
  if (op == CFA_OFFSET_EXTENDED) set_offset(m, column, CS_CFI_AT_CFA, (int64_t)cs_cursor_uleb(in));
  if (op == CFA_OFFSET_EXTENDED_SF) set_offset(m, column, CS_CFI_AT_CFA, cs_cursor_sleb(in));
  if (op == CFA_GNU_NEGATIVE_OFFSET_EXTENDED)
    set_offset(m, column, CS_CFI_AT_CFA, (int64_t)(0 - cs_cursor_uleb(in)));
  if (op == CFA_VAL_OFFSET) set_offset(m, column, CS_CFI_IS_CFA, (int64_t)cs_cursor_uleb(in));
  if (op == CFA_VAL_OFFSET_SF) set_offset(m, column, CS_CFI_IS_CFA, cs_cursor_sleb(in));
  if (op == CFA_RESTORE_EXTENDED) restore(m, column);
  if (op == CFA_UNDEFINED) set_how(m, column, CS_CFI_UNDEFINED, 0);
  if (op == CFA_SAME_VALUE) same_value(m, column);
  if (op == CFA_EXPRESSION) register_expression(m, column, block(m));
  if (op == CFA_VAL_EXPRESSION) {
    (void)block(m);
    unsupported(m, column);
  }
  return true;
}

static void step(struct machine *m) {
  struct cs_cursor *in = &m->in;
  uint8_t op = cs_cursor_u8(in), low = op & 0x3F;
  switch (op & 0xC0) {
    case CFA_ADVANCE_LOC:
      advance(m, low);
      return;
    case CFA_OFFSET:
      set_offset(m, low, CS_CFI_AT_CFA, (int64_t)cs_cursor_uleb(in));
      return;
    case CFA_RESTORE:
      restore(m, low);
      return;
  }
  if (op == CFA_NOP || step_cfa(m, op) || step_register(m, op)) return;
  if (op == CFA_ADVANCE_LOC1)
    advance(m, cs_cursor_u8(in));
  else if (op == CFA_ADVANCE_LOC2)
    advance(m, cs_cursor_u16(in));
  else if (op == CFA_ADVANCE_LOC4)
    advance(m, cs_cursor_u32(in));
  else if (op == CFA_MIPS_ADVANCE_LOC8)
    advance(m, cs_cursor_u64(in));
  else if (op == CFA_SET_LOC)
    set_loc(m);
  else if (op == CFA_REMEMBER_STATE)
    remember_state(m);
  else if (op == CFA_RESTORE_STATE)
    restore_state(m);
  else if (op == CFA_GNU_ARGS_SIZE)
    (void)cs_cursor_uleb(in);
  else if (!cs_dwarf_is_ignored(op))
    m->unknown_op = true;
}

static bool run(struct machine *m) {
  while (cs_cursor_left(&m->in) != 0 && !m->unknown_op) {
    step(m);
    if (m->in.bad) m->malformed = true;
    if (m->malformed || m->no_memory) return false;
  }
  if (m->unknown_op) set_cfa(m, CS_CFA_NONE, 0, 0, 0);  // the rest cannot be known
  return true;
}

bool cs_cfi_run_cie(struct cs_cfi_build *build, struct cs_cie *cie, struct cs_cursor program) {
  struct machine m = {.build = build, .cie = cie, .in_cie = true, .in = program};
  cs_dwarf_at_entry(&m.now.rule);
  bool ok = run(&m);
  if (ok && !m.now.interned) intern(&m);
  cie->initial = m.now;
  return ok;
}

enum cs_cfi_result cs_cfi_run_fde(struct cs_cfi_build *build, const struct cs_cie *cie, uint32_t ip,
                                  uint32_t ip_end, struct cs_cursor program) {
  struct machine m;  // not cleared as a whole: `remembered` has 4 KiB, and is rarely used
  m.build = build;
  m.cie = cie;
  m.in_cie = false;
  m.in = program;
  m.now = cie->initial;
  m.depth = 0;
  m.loc = ip;
  m.end = m.first_drop = ip_end;
  m.height = 0;
  m.contradicts = m.not_called = false;
  m.eh_data = 0;
  m.leave_ip = 0;
  m.malformed = m.no_memory = m.unknown_op = false;
  bool ok = run(&m);
  uint32_t last_row = m.loc;
  struct cs_cfi_stats *stats = build->stats;
  if (ok) advance_to(&m, ip_end);
  if (m.leave_ip != 0 && stats->eh_returns < CS_CFI_EH_RETURNS) {
    stats->eh_return[stats->eh_returns].ip = ip;
    stats->eh_return[stats->eh_returns].end = ip_end;
    stats->eh_return[stats->eh_returns++].leave_ip = m.leave_ip;
  }
  if (ok && !check_function(&m, ip, last_row, m.height)) m.no_memory = true;
  if (m.no_memory) return CS_CFI_NO_MEMORY;
  return ok ? CS_CFI_OK : CS_CFI_MALFORMED;
}
