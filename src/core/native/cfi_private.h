// SPDX-License-Identifier: MIT
// Private to cfi.c (records) and cfi_run.c (programs). Not for handlers.
#pragma once

#include "base/regs.h"
#include "native/cfi.h"
#include "native/cursor.h"

enum {  // pointer encodings, DW_EH_PE_*
  CS_PE_ABSPTR = 0x00,
  CS_PE_ULEB128 = 0x01,
  CS_PE_UDATA2 = 0x02,
  CS_PE_UDATA4 = 0x03,
  CS_PE_UDATA8 = 0x04,
  CS_PE_SLEB128 = 0x09,
  CS_PE_SDATA2 = 0x0A,
  CS_PE_SDATA4 = 0x0B,
  CS_PE_SDATA8 = 0x0C,
  CS_PE_PCREL = 0x10,
  CS_PE_DATAREL = 0x30,
  CS_PE_ALIGNED = 0x50,
  CS_PE_INDIRECT = 0x80,
  CS_PE_OMIT = 0xFF,
};
// Reads a pointer in this encoding. Returns false for an encoding that the range of an FDE cannot
// have.
bool cs_pe_read(const struct cs_cfi_section *section, struct cs_cursor *c, uint8_t encoding,
                uint64_t *value);

// The state of a program at one place: the rule so far, and what a rule cannot express.
struct cs_cfi_state {
  struct cs_cfi_rule rule;
  bool rsp_ruled;  // the program has a rule for the caller's rsp, which then is not the CFA
  uint8_t rsp_in;  // the register that contains it, plus 1; 0: none does
  int32_t rsp_at;  // or its offset from the CFA; 0: it is not saved there
  bool interned;   // `index` is valid. Kept with the state, since most states recur
  uint16_t index;
};

struct cs_cie {
  uint32_t offset;  // in the section, 0xFFFFFFFF: an empty cache entry
  bool usable;      // false: it has an unknown augmentation
  bool signal_frame;
  uint8_t fde_encoding;
  bool has_augmentation_length;
  uint64_t code_align;
  int64_t data_align;
  uint64_t return_register;
  struct cs_cfi_state initial;
};

struct cs_cfi_build {  // a compilation in progress
  const struct cs_cfi_section *section;
  struct cs_rules *rules;
  struct cs_rows *rows;
  struct cs_cfi_stats *stats;
  uint64_t text;  // rows are relative to it
};

// Runs the instructions of a CIE, and sets cie->initial. Returns false if they are malformed.
bool cs_cfi_run_cie(struct cs_cfi_build *build, struct cs_cie *cie, struct cs_cursor program);
// Runs the instructions of an FDE, and appends its rows for [ip, ip_end).
enum cs_cfi_result cs_cfi_run_fde(struct cs_cfi_build *build, const struct cs_cie *cie, uint32_t ip,
                                  uint32_t ip_end, struct cs_cursor program);
// Appends a row, unless its rule holds there already.
bool cs_rows_add(struct cs_rows *rows, uint32_t ip, uint16_t rule);
