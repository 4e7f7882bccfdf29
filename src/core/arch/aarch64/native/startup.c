// SPDX-License-Identifier: MIT
// _init and _fini are assembled from pieces of every object file (crti.o has their start, crtn.o
// their end), so no compiler describes them. They consist of an optional hint (bti, paciasp); stp
// fp, lr, [sp, -16]!; mov fp, sp; ...; ldp fp, lr, [sp], 16; an optional hint (autiasp); ret.
// Invariant: rows are added only where there were none, and only if the code has that form. Not for
// handlers.
#include "native/startup.h"

#include <string.h>

#include "native/cfi_private.h"
#include "native/dwarf.h"

enum { LONGEST = 16 };  // instructions
enum {
  HINT = 0xD503201F,  // with its number in bits 5 to 11: nop, bti, paciasp, autiasp
  HINT_MASK = 0xFFFFF01F,
  STP = 0xA9BF7BFD,
  MOV = 0x910003FD,
  LDP = 0xA8C17BFD,
  RET = 0xD65F03C0,
};

struct shape {
  uint32_t allocated, freed, end;  // offsets after stp, after ldp, after ret
};

static bool is_hint(uint32_t code) {
  return (code & HINT_MASK) == HINT;
}

static bool is_startup(const uint32_t *code, uint32_t n, struct shape *shape) {
  uint32_t at = n != 0 && is_hint(code[0]) ? 1 : 0;
  if (at + 1 >= n || code[at] != STP || code[at + 1] != MOV) return false;
  shape->allocated = (at + 1) * 4;
  for (at += 2; at + 1 < n; at++) {
    if (code[at] != LDP) continue;
    uint32_t end = is_hint(code[at + 1]) ? at + 2 : at + 1;
    shape->freed = (at + 1) * 4;
    shape->end = (end + 1) * 4;
    return end < n && code[end] == RET;
  }
  return false;
}

static uint16_t rule_of(struct cs_rules *rules, bool allocated) {
  struct cs_cfi_rule rule;
  memset(&rule, 0, sizeof rule);
  rule.cfa_how = CS_CFA_REG;
  rule.cfa_reg = CS_SP;
  cs_dwarf_at_entry(&rule);
  if (allocated) {
    rule.cfa_off = 16;
    rule.slot[CS_CFI_FP].how = rule.slot[CS_CFI_RA].how = CS_CFI_AT_CFA;
    rule.slot[CS_CFI_FP].off = -16;
    rule.slot[CS_CFI_RA].off = -8;
  }
  return cs_rules_intern(rules, &rule);
}

// Returns the index of the first row after an offset.
static uint32_t row_after(const struct cs_rows *rows, uint32_t offset) {
  uint32_t i = 0;
  while (i < rows->count && rows->ip[i] <= offset) i++;
  return i;
}

struct row {
  uint32_t ip;
  uint16_t rule;
};

static bool insert(const struct row *row, uint32_t count, uint32_t after, struct cs_rows *rows) {
  struct cs_rows out = {0};
  bool ok = true;
  for (uint32_t i = 0; ok && i < after; i++) ok = cs_rows_add(&out, rows->ip[i], rows->rule[i]);
  for (uint32_t i = 0; ok && i < count; i++) ok = cs_rows_add(&out, row[i].ip, row[i].rule);
  for (uint32_t i = after; ok && i < rows->count; i++)
    ok = cs_rows_add(&out, rows->ip[i], rows->rule[i]);
  if (!ok) {
    cs_rows_free(&out);
    return false;
  }
  cs_rows_free(rows);
  *rows = out;
  return true;
}

// Reads the start of code that has no rows. Returns the number of instructions, and in *after the
// number of rows before them.
static uint32_t read_unruled(struct cs_process_memory *process,
                             const struct cs_candidate *candidate, uint64_t address,
                             const struct cs_rows *rows, uint32_t code[LONGEST], uint32_t *after) {
  if (rows->count == 0 || address < candidate->begin || address >= candidate->end) return 0;
  uint32_t at = (uint32_t)(address - candidate->begin);
  *after = row_after(rows, at);
  if (*after != 0 && rows->rule[*after - 1] != CS_NO_RULE) return 0;
  uint64_t size = candidate->end - address;
  if (*after < rows->count && size > rows->ip[*after] - at) size = rows->ip[*after] - at;
  if (size > LONGEST * sizeof *code) size = LONGEST * sizeof *code;
  return cs_process_memory_read(process, address, code, (size_t)size) ? (uint32_t)(size / 4) : 0;
}

bool cs_startup_apply(struct cs_process_memory *process, const struct cs_candidate *candidate,
                      uint64_t address, struct cs_rules *rules, struct cs_rows *rows) {
  uint32_t code[LONGEST], after, at = (uint32_t)(address - candidate->begin);
  uint32_t n = read_unruled(process, candidate, address, rows, code, &after);
  struct shape shape;
  if (n == 0 || after == 0 || !is_startup(code, n, &shape)) return true;
  const struct row row[] = {{at, rule_of(rules, false)},
                            {at + shape.allocated, rule_of(rules, true)},
                            {at + shape.freed, rule_of(rules, false)},
                            {at + shape.end, CS_NO_RULE}};
  return insert(row, CS_COUNT(row), after, rows);
}

// mov fp, 0; mov lr, 0; ...; bl abort: nothing has called this code. Debian's crt1.o describes
// that, older ones describe nothing.
bool cs_startup_apply_entry(struct cs_process_memory *process, const struct cs_candidate *candidate,
                            uint64_t address, struct cs_rules *rules, struct cs_rows *rows) {
  enum { NO_FP = 0xD280001D, NO_LR = 0xD280001E };
  uint32_t code[LONGEST], after;
  uint32_t n = read_unruled(process, candidate, address, rows, code, &after);
  uint32_t begin = n != 0 && is_hint(code[0]) ? 1 : 0;
  if (n < begin + 2 || code[begin] != NO_FP || code[begin + 1] != NO_LR) return true;
  struct cs_cfi_rule rule;
  memset(&rule, 0, sizeof rule);
  rule.cfa_how = CS_CFA_REG;
  rule.cfa_reg = CS_SP;
  rule.slot[CS_CFI_RA].how = CS_CFI_UNDEFINED;
  uint32_t at = (uint32_t)(address - candidate->begin);
  const struct row row[] = {{at, cs_rules_intern(rules, &rule)}, {at + n * 4, CS_NO_RULE}};
  return insert(row, CS_COUNT(row), after, rows);
}

// ---- The vDSO ----

// Returns whether a word may be a call, or an instruction that writes sp or lr.
static bool breaks_leaf_rule(uint32_t code) {
  bool on_sp = (code >> 5 & 31) == 31;
  return code >> 26 == 0x25 || (code & 0xFEFFFC1F) == 0xD63F0000 ||  // bl, blr
         (code & 0x3F80001F) == 0x1100001F ||                        // add or sub of a number to sp
         (code & 0x3FE0001F) == 0x0B20001F ||                        // of a register
         ((code & 0x3A800000) == 0x28800000 && on_sp) ||             // stp, ldp with a new sp
         ((code & 0x3B200400) == 0x38000400 && on_sp) ||             // str, ldr with a new sp
         ((code & 31) == 30 && code >> 26 != 5);  // lr in its first operand; not b
}

// Returns the index of the first word after the notes, which the code follows. The build id among
// them may look like any instruction.
static uint32_t words_before_code(const uint32_t *image, uint32_t count) {
  const Elf64_Ehdr *head = (const void *)image;
  uint64_t bytes = count * 4ull, end = sizeof *head;
  if (bytes < sizeof *head || head->e_phoff > bytes) return count;
  for (uint32_t i = 0; i < head->e_phnum; i++) {
    Elf64_Phdr segment;
    uint64_t at = head->e_phoff + i * sizeof segment;
    if (at + sizeof segment > bytes) return count;
    memcpy(&segment, (const uint8_t *)image + at, sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    if (segment.p_offset > bytes || segment.p_filesz > bytes - segment.p_offset) return count;
    if (segment.p_offset + segment.p_filesz > end) end = segment.p_offset + segment.p_filesz;
  }
  return (uint32_t)((end + 3) / 4);
}

// The vDSO of Linux has no unwind data. Its functions are leaves, which do not change sp and keep
// their return address in lr, perhaps signed; if that is so, one rule applies to all. The signal
// trampoline, at the end, has no rule, since walks recognise it by its code; nor has the nop before
// it.
bool cs_startup_apply_vdso(struct cs_process_memory *process, const struct cs_candidate *candidate,
                           struct cs_rules *rules, struct cs_rows *rows) {
  enum { MAX_BYTES = 4096, SIGRETURN = 0xD2801168, SYSCALL = 0xD4000001 };
  uint32_t code[MAX_BYTES / 4];
  uint64_t size = candidate->end - candidate->begin;
  uint32_t n = (uint32_t)(size < MAX_BYTES ? size : MAX_BYTES) / 4, at = 1;
  if (!cs_process_memory_read(process, candidate->begin, code, n * 4ul)) return false;
  while (at + 1 < n && (code[at] != SIGRETURN || code[at + 1] != SYSCALL)) at++;
  if (at + 1 >= n) return false;
  uint32_t begin = words_before_code(code, n);
  if (begin > at) return false;
  for (uint32_t i = begin; i < at; i++)
    if (breaks_leaf_rule(code[i])) return false;
  return cs_rows_add(rows, 0, rule_of(rules, false)) && cs_rows_add(rows, (at - 1) * 4, CS_NO_RULE);
}
