// SPDX-License-Identifier: MIT
// .eh_frame to rows: which rule holds from which address on. Not for handlers.
#ifndef CS_NATIVE_CFI_H
#define CS_NATIVE_CFI_H

#include "base/error.h"
#include "native/maps.h"
#include "native/rules.h"

// A copy of an image's .eh_frame, and the addresses that its pointers are relative to. `size` may
// reach beyond the section's end, which no program header tells: the section ends with a zero
// length, or where records stop to make sense after the last of `fde_count`.
struct cs_cfi_section {
  const uint8_t *bytes;
  size_t size;
  uint64_t address;    // of bytes[0] in the process
  uint64_t data_base;  // DW_EH_PE_datarel: .eh_frame_hdr
  uint32_t fde_count;  // at least so many there should be; 0 if not known
  struct cs_process_memory
      *process;  // to look at a function's last instruction; NULL: not looked at
};

struct cs_rows {  // sorted by ip, no two neighbours with the same rule; ip is relative to the text
  uint32_t *ip;
  uint16_t *rule;
  uint32_t count, capacity;
};

enum { CS_CFI_EH_RETURNS = 8 };  // libgcc_s has 4
struct cs_cfi_stats {
  uint32_t fdes;                  // compiled
  uint32_t skipped;               // of a CIE that cannot be read (unknown augmentation)
  uint32_t unsupported_cfa;       // places whose CFA has no supported form: CS_RULE_NONE
  uint32_t distrusted;            // functions that describe themselves wrongly: no rule there
  uint32_t unsupported_register;  // registers whose rule has none: CS_CFI_UNDEFINED
  struct {
    uint32_t ip, leaves, end;      // relative to the text; from `leaves` on rcx has the CFA
  } eh_return[CS_CFI_EH_RETURNS];  // functions that end by __builtin_eh_return (ehreturn.h)
  uint32_t eh_returns;
};

enum cs_cfi_result { CS_CFI_OK, CS_CFI_MALFORMED, CS_CFI_NO_MEMORY };

// Appends the rows for the text [begin, end). `err` says what is malformed.
enum cs_cfi_result cs_cfi_compile(const struct cs_cfi_section *section, uint64_t begin,
                                  uint64_t end, struct cs_rules *rules, struct cs_rows *rows,
                                  struct cs_cfi_stats *stats, struct cs_error *err);
void cs_rows_free(struct cs_rows *rows);

#endif
