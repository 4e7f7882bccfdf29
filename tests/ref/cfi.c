// SPDX-License-Identifier: MIT
// Records and programs of .eh_frame: cfi.h. Each row is found by running the CIE's and the FDE's
// programs from their beginning, so that no state is carried from one row to the next. Invariant:
// no program is read beyond its end; an operation that is not known makes the record malformed.
#include "ref/cfi.h"

#include <string.h>

#include "ref/expression.h"

struct run {
  const struct cfi_function *function;
  struct cfi_bytes in;
  struct cfi_row now, initial;
  struct {
    struct cfi_row row[32];
    unsigned depth;
  } kept;
  uint64_t loc, ip;
  bool done, bad;
};

// ---- records ----
static bool pointer(struct cfi_bytes *in, uint8_t encoding, uint64_t section, const uint8_t *base,
                    uint64_t *value) {
  uint64_t here = section + (uint64_t)(in->at - base);
  switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
      *value = cfi_fixed(in, 8);
      break;
    case 0x01:
      *value = cfi_uleb(in);
      break;
    case 0x02:
      *value = cfi_fixed(in, 2);
      break;
    case 0x03:
      *value = cfi_fixed(in, 4);
      break;
    case 0x09:
      *value = (uint64_t)cfi_sleb(in);
      break;
    case 0x0a:
      *value = (uint64_t)(int16_t)cfi_fixed(in, 2);
      break;
    case 0x0b:
      *value = (uint64_t)(int32_t)cfi_fixed(in, 4);
      break;
    default:
      return false;
  }
  if ((encoding & 0x70) == 0x10) *value += here;
  return (encoding & 0x70) <= 0x10;
}

static bool augmentation(struct cfi_function *f, const char *text, struct cfi_bytes data) {
  uint64_t ignored;
  for (; *text != '\0'; text++) {
    if (*text == 'R') {
      f->encoding = (uint8_t)cfi_fixed(&data, 1);
    } else if (*text == 'S') {
      f->signal_frame = true;
    } else if (*text == 'L') {
      (void)cfi_fixed(&data, 1);
    } else if (*text == 'P') {
      uint8_t encoding = (uint8_t)cfi_fixed(&data, 1);
      if (!pointer(&data, encoding & 0x0f, 0, data.at, &ignored)) return false;
    } else {
      return false;
    }
  }
  return true;
}

static bool read_cie(struct cfi_bytes in, struct cfi_function *f) {
  memset(f, 0, sizeof *f);
  uint64_t version = cfi_fixed(&in, 1);
  if (version != 1 && version != 3) return false;
  const char *text = (const char *)in.at;
  while (cfi_fixed(&in, 1) != 0)
    if (in.at == in.end) return false;
  f->code_align = cfi_uleb(&in);
  f->data_align = cfi_sleb(&in);
  f->return_register = version == 1 ? cfi_fixed(&in, 1) : cfi_uleb(&in);
  if (*text == 'z') {
    uint64_t size = cfi_uleb(&in);
    if (size > (uint64_t)(in.end - in.at)) return false;
    if (!augmentation(f, text + 1, (struct cfi_bytes){in.at, in.at + size})) return false;
    in.at += size;
  } else if (*text != '\0') {
    return false;
  }
  f->cie_program = in;
  return true;
}

static bool read_fde(struct cfi_bytes in, uint64_t address, const uint8_t *base,
                     struct cfi_function *f) {
  uint64_t length;
  if (!pointer(&in, f->encoding, address, base, &f->begin)) return false;
  if (!pointer(&in, f->encoding & 0x0f, 0, in.at, &length)) return false;
  f->end = f->begin + length;
  uint64_t size = cfi_uleb(&in);  // every CIE that occurs has 'z'
  if (size > (uint64_t)(in.end - in.at)) return false;
  f->program = (struct cfi_bytes){in.at + size, in.end};
  return true;
}

bool cfi_each(const uint8_t *bytes, size_t size, uint64_t address,
              void (*visit)(const struct cfi_function *function, void *arg), void *arg) {
  struct cfi_bytes all = {bytes, bytes + size};
  while (all.end - all.at >= 4) {
    uint64_t length = cfi_fixed(&all, 4);
    if (length == 0) return true;
    if (length < 4 || length == 0xffffffff || length > (uint64_t)(all.end - all.at)) return false;
    struct cfi_bytes record = {all.at, all.at + length};
    const uint8_t *id_at = record.at;
    uint64_t id = cfi_fixed(&record, 4);
    all.at += length;
    if (id == 0) continue;
    if (id > (uint64_t)(id_at - bytes)) return false;
    struct cfi_bytes cie = {id_at - id, bytes + size};
    uint64_t cie_length = cfi_fixed(&cie, 4);
    if (cie_length < 4 || cie_length > (uint64_t)(cie.end - cie.at)) return false;
    cie.end = cie.at + cie_length;
    struct cfi_function f;
    if (cfi_fixed(&cie, 4) != 0 || !read_cie(cie, &f) || !read_fde(record, address, bytes, &f))
      return false;
    if (f.begin != f.end) visit(&f, arg);
  }
  return true;
}

// ---- programs ----
static struct cfi_rule *rule_of(struct run *run, uint64_t column) {
  static struct cfi_rule nobody;  // of a register that no walk carries (xmm and the like)
  return column < CFI_REGISTERS ? &run->now.rule[column] : &nobody;
}

static struct cfi_bytes block(struct run *run) {
  uint64_t size = cfi_uleb(&run->in);
  if (size > (uint64_t)(run->in.end - run->in.at)) {
    run->bad = true;
    size = 0;
  }
  struct cfi_bytes block = {run->in.at, run->in.at + size};
  run->in.at += size;
  return block;
}

static void set(struct run *run, uint64_t column, enum cfi_rule_kind kind, int64_t operand) {
  *rule_of(run, column) = (struct cfi_rule){.kind = kind, .operand = operand};
}

static void set_expression(struct run *run, enum cfi_rule_kind kind) {
  uint64_t column = cfi_uleb(&run->in);
  *rule_of(run, column) = (struct cfi_rule){.kind = kind, .expression = block(run)};
}

static void restore(struct run *run, uint64_t column) {
  if (column < CFI_REGISTERS) run->now.rule[column] = run->initial.rule[column];
}

static void advance(struct run *run, uint64_t to) {
  if (to > run->ip) {  // the row that holds at ip ends there
    run->now.end = to;
    run->done = true;
  }
  run->loc = to;
}

static void keep(struct run *run, bool back) {
  if (!back && run->kept.depth < 32) {
    run->kept.row[run->kept.depth++] = run->now;
  } else if (back && run->kept.depth > 0) {
    run->now = run->kept.row[--run->kept.depth];
  } else {
    run->bad = true;
  }
}

static void def_cfa(struct run *run, uint64_t reg, int64_t offset) {
  run->now.cfa_is_expression = false;
  run->now.cfa_register = reg;
  run->now.cfa_offset = offset;
}

static void extended(struct run *run, unsigned op) {
  struct cfi_bytes *in = &run->in;
  int64_t align = run->function->data_align;
  uint64_t reg;
  switch (op) {
    case 0x00:  // nop
      break;
    case 0x02:
    case 0x03:
    case 0x04:  // advance_loc1, 2, 4
      advance(run, run->loc + cfi_fixed(in, 1u << (op - 2)) * run->function->code_align);
      break;
    case 0x05:  // offset_extended
      reg = cfi_uleb(in);
      set(run, reg, CFI_OFFSET, (int64_t)cfi_uleb(in) * align);
      break;
    case 0x06:  // restore_extended
      restore(run, cfi_uleb(in));
      break;
    case 0x07:
      set(run, cfi_uleb(in), CFI_UNDEFINED, 0);
      break;
    case 0x08:
      set(run, cfi_uleb(in), CFI_SAME, 0);
      break;
    case 0x09:  // register
      reg = cfi_uleb(in);
      set(run, reg, CFI_REGISTER, (int64_t)cfi_uleb(in));
      break;
    case 0x0a:
    case 0x0b:  // remember_state, restore_state
      keep(run, op == 0x0b);
      break;
    case 0x0c:  // def_cfa
      reg = cfi_uleb(in);
      def_cfa(run, reg, (int64_t)cfi_uleb(in));
      break;
    case 0x0d:  // def_cfa_register
      run->bad |= run->now.cfa_is_expression;
      run->now.cfa_register = cfi_uleb(in);
      break;
    case 0x0e:  // def_cfa_offset
      run->bad |= run->now.cfa_is_expression;
      run->now.cfa_offset = (int64_t)cfi_uleb(in);
      break;
    case 0x0f:  // def_cfa_expression
      run->now.cfa_is_expression = true;
      run->now.cfa_expression = block(run);
      break;
    case 0x10:
      set_expression(run, CFI_EXPRESSION);
      break;
    case 0x11:  // offset_extended_sf
      reg = cfi_uleb(in);
      set(run, reg, CFI_OFFSET, cfi_sleb(in) * align);
      break;
    case 0x12:  // def_cfa_sf
      reg = cfi_uleb(in);
      def_cfa(run, reg, cfi_sleb(in) * align);
      break;
    case 0x13:  // def_cfa_offset_sf
      run->now.cfa_offset = cfi_sleb(in) * align;
      break;
    case 0x14:  // val_offset
      reg = cfi_uleb(in);
      set(run, reg, CFI_VAL_OFFSET, (int64_t)cfi_uleb(in) * align);
      break;
    case 0x15:  // val_offset_sf
      reg = cfi_uleb(in);
      set(run, reg, CFI_VAL_OFFSET, cfi_sleb(in) * align);
      break;
    case 0x16:
      set_expression(run, CFI_VAL_EXPRESSION);
      break;
    case 0x2e:  // GNU_args_size: of no consequence to a frame
      (void)cfi_uleb(in);
      break;
    case 0x2f:  // GNU_negative_offset_extended
      reg = cfi_uleb(in);
      set(run, reg, CFI_OFFSET, -(int64_t)cfi_uleb(in) * align);
      break;
    default:  // set_loc (0x01) does not occur
      run->bad = true;
  }
}

static void run_program(struct run *run, struct cfi_bytes program) {
  run->in = program;
  while (run->in.at < run->in.end && !run->done && !run->bad) {
    unsigned op = (unsigned)cfi_fixed(&run->in, 1), low = op & 0x3f;
    if (op >> 6 == 1)
      advance(run, run->loc + low * run->function->code_align);
    else if (op >> 6 == 2)
      set(run, low, CFI_OFFSET, (int64_t)cfi_uleb(&run->in) * run->function->data_align);
    else if (op >> 6 == 3)
      restore(run, low);
    else
      extended(run, op);
  }
}

bool cfi_row_at(const struct cfi_function *function, uint64_t ip, struct cfi_row *row) {
  static struct run run;  // large: what is kept is not cleared
  memset(&run.now, 0, sizeof run.now);
  run.kept.depth = 0;
  run.loc = 0;
  run.done = run.bad = false;
  run.function = function;
  run.ip = UINT64_MAX;
  run_program(&run, function->cie_program);
  run.initial = run.now;
  run.loc = function->begin;
  run.ip = ip;
  if (!run.bad) run_program(&run, function->program);
  if (!run.done || run.now.end > function->end) run.now.end = function->end;
  *row = run.now;
  return !run.bad && row->end > ip;
}

// ---- rows ----
bool cfi_apply(const struct cfi_row *row, const struct cfi_registers *from,
               bool (*read)(uint64_t address, uint64_t *word), struct cfi_registers *to,
               uint64_t *cfa) {
  struct expression e = {.registers = from->r, .read = read};
  uint64_t value = 0;
  if (row->cfa_is_expression) {
    if (!expression_value(&e, row->cfa_expression, NULL, cfa)) return false;
  } else if (row->cfa_register >= CFI_REGISTERS) {
    return false;
  } else {
    *cfa = from->r[row->cfa_register] + (uint64_t)row->cfa_offset;
  }
  *to = *from;
  to->r[CFI_RSP] = *cfa;  // unless a rule says otherwise
  for (unsigned i = 0; i < CFI_REGISTERS; i++) {
    const struct cfi_rule *rule = &row->rule[i];
    if (rule->kind == CFI_SAME) continue;
    if (rule->kind == CFI_UNDEFINED) {
      to->undefined[i] = true;
      continue;
    }
    bool ok = true;
    if (rule->kind == CFI_EXPRESSION || rule->kind == CFI_VAL_EXPRESSION)
      ok = expression_value(&e, rule->expression, cfa, &value);
    else if (rule->kind == CFI_REGISTER && (uint64_t)rule->operand < CFI_REGISTERS)
      value = from->r[rule->operand];
    else
      value = *cfa + (uint64_t)rule->operand;
    if (rule->kind == CFI_OFFSET || rule->kind == CFI_EXPRESSION) ok = ok && read(value, &value);
    if (!ok) return false;
    to->r[i] = value;
  }
  return true;
}
