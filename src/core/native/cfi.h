// SPDX-License-Identifier: MIT
// Compiles .eh_frame into rows, each with the rule that applies from its ip on. Not for handlers.
#pragma once

#include "base/error.h"
#include "native/maps.h"
#include "native/rules.h"

// A copy of an image's .eh_frame, and the addresses that its pointers are relative to. `size` may
// exceed the section, whose end is in no program header: the section ends with a zero length, or,
// after `fde_count` FDEs, where the bytes are no longer records.
struct cs_cfi_section {
  const uint8_t *bytes;
  size_t size;
  uint64_t address;                   // of bytes[0] in the process
  uint64_t data_base;                 // DW_EH_PE_datarel: .eh_frame_hdr
  uint32_t fde_count;                 // the minimum number of FDEs; 0: unknown
  struct cs_process_memory *process;  // to read a function's last instruction; NULL: it is not read
};

struct cs_rows {  // sorted by ip, neighbours differ in their rule; ip is relative to the text
  uint32_t *ip;
  uint16_t *rule;
  uint32_t count, capacity;
};

enum { CS_CFI_EH_RETURNS = 8 };  // libgcc_s has 4
struct cs_cfi_stats {
  uint32_t fdes;                  // compiled
  uint32_t skipped;               // their CIE cannot be read (unknown augmentation)
  uint32_t unsupported_cfa;       // places whose CFA has no supported form: CS_RULE_NONE
  uint32_t distrusted;            // functions whose .eh_frame is wrong: no rule there
  uint32_t unsupported_register;  // registers whose rule has no supported form: CS_CFI_UNDEFINED
  struct {
    uint32_t ip, leave_ip, end;    // relative to the text; from leave_ip on the CFA is in rcx
  } eh_return[CS_CFI_EH_RETURNS];  // functions that end with __builtin_eh_return (ehreturn.h)
  uint32_t eh_returns;
};

enum cs_cfi_result { CS_CFI_OK, CS_CFI_MALFORMED, CS_CFI_NO_MEMORY };

// Appends the rows for the text [begin, end). If .eh_frame is malformed, `err` says where.
enum cs_cfi_result cs_cfi_compile(const struct cs_cfi_section *section, uint64_t begin,
                                  uint64_t end, struct cs_rules *rules, struct cs_rows *rows,
                                  struct cs_cfi_stats *stats, struct cs_error *err);
// Makes room for so many rows. Returns false if there is no memory.
bool cs_rows_reserve(struct cs_rows *rows, uint32_t capacity);
void cs_rows_free(struct cs_rows *rows);
