// SPDX-License-Identifier: MIT
// Private to cfi.c (records) and cfi_run.c (programs). Not for handlers.
#ifndef CS_NATIVE_CFI_PRIVATE_H
#define CS_NATIVE_CFI_PRIVATE_H

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
// Reads a pointer as `encoding` says; false for one that an FDE's range cannot have.
bool cs_pe_read(const struct cs_cfi_section *section, struct cs_cursor *c, uint8_t encoding,
                uint64_t *value);

// What the rules are at one place of a program: a rule to be, and what does not fit into one.
struct cs_cfi_state {
  struct cs_cfi_rule rule;
  bool rsp_ruled;  // the program gives the caller's rsp a rule of its own: it is not the CFA
  uint8_t rsp_in;  // and this is the register that has it, plus 1; 0: in none
  int32_t rsp_at;  // or where it is from the CFA; 0: nowhere there
  bool interned;   // `index` is the rule's: remembered with the state, since most states come again
  uint16_t index;
};

struct cs_cie {
  uint32_t offset;  // in the section, 0xFFFFFFFF: an empty place of the cache
  bool usable;      // false: of an augmentation that is not known
  bool signal_frame;
  uint8_t fde_encoding;
  bool has_augmentation_length;
  uint64_t code_align;
  int64_t data_align;
  uint64_t return_register;
  struct cs_cfi_state initial;
};

struct cs_cfi_build {  // one compilation under way
  const struct cs_cfi_section *section;
  struct cs_rules *rules;
  struct cs_rows *rows;
  struct cs_cfi_stats *stats;
  uint64_t text;  // what rows are relative to
};

// Runs a CIE's own instructions: fills cie->initial. False: malformed.
bool cs_cfi_run_cie(struct cs_cfi_build *build, struct cs_cie *cie, struct cs_cursor program);
// Runs an FDE's and appends its rows for [ip, ip_end).
enum cs_cfi_result cs_cfi_run_fde(struct cs_cfi_build *build, const struct cs_cie *cie, uint32_t ip,
                                  uint32_t ip_end, struct cs_cursor program);
// Appends a row unless its rule holds there anyway.
bool cs_rows_add(struct cs_rows *rows, uint32_t ip, uint16_t rule);

#endif
