// SPDX-License-Identifier: MIT
// A second reader of .eh_frame, slow and straight-line, written from DWARF 5 (sections 2.5 and 6.4)
// and the LSB's chapter on .eh_frame, without any of the product's code. Registers have DWARF's
// numbers. One thread; not for handlers.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CFI_RBX = 3, CFI_RBP = 6, CFI_RSP = 7, CFI_RIP = 16, CFI_REGISTERS = 17 };

struct cfi_bytes {
  const uint8_t *at, *end;
};

struct cfi_function {  // an FDE and what its CIE says
  uint64_t begin, end;
  uint64_t code_align;
  int64_t data_align;
  uint64_t return_register;
  uint8_t encoding;
  bool signal_frame;
  struct cfi_bytes cie_program, program;
};

enum cfi_rule_kind {
  CFI_SAME,  // unspecified is the same: of a callee-saved register
  CFI_UNDEFINED,
  CFI_OFFSET,
  CFI_VAL_OFFSET,
  CFI_REGISTER,
  CFI_EXPRESSION,
  CFI_VAL_EXPRESSION,
};
struct cfi_rule {
  enum cfi_rule_kind kind;
  int64_t operand;
  struct cfi_bytes expression;
};
struct cfi_row {
  bool cfa_is_expression;
  uint64_t cfa_register;
  int64_t cfa_offset;
  struct cfi_bytes cfa_expression;
  struct cfi_rule rule[CFI_REGISTERS];
  uint64_t end;  // it holds up to here
};

struct cfi_registers {
  uint64_t r[CFI_REGISTERS];
  bool undefined[CFI_REGISTERS];
};

// Calls `visit` for each FDE of a section that is at `address`. Returns false if the section is
// malformed. Skips an FDE that is empty or whose range the linker has dropped (begin 0).
bool cfi_each(const uint8_t *bytes, size_t size, uint64_t address,
              void (*visit)(const struct cfi_function *function, void *arg), void *arg);
// Finds the row that holds at `ip`. Returns false if the record is malformed.
bool cfi_row_at(const struct cfi_function *function, uint64_t ip, struct cfi_row *row);
// Computes the caller's registers and the CFA. Returns false if the row is malformed or `read`
// fails.
bool cfi_apply(const struct cfi_row *row, const struct cfi_registers *from,
               bool (*read)(uint64_t address, uint64_t *word), struct cfi_registers *to,
               uint64_t *cfa);
