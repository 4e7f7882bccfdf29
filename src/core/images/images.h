// SPDX-License-Identifier: MIT
// images: what a walk needs to know about ELF images: text ranges, and .eh_frame compiled into
// sorted rows. The component native builds these tables in the library's own memory, before any
// handler needs them. Signal-safe: yes.
#pragma once

#include "images/loader.h"
#include "images/slots.h"
#include "mem/mem.h"

// How a register of the caller is found.
enum cs_cfi_how {
  CS_CFI_SAME,       // unchanged: the function has not touched it
  CS_CFI_AT_CFA,     // at [cfa + off]
  CS_CFI_AT_SP,      // at [rsp + off]      (DW_CFA_expression: breg7 off; signal trampolines)
  CS_CFI_AT_FP,      // at [rbp + off]      (DW_CFA_expression: breg6 off; realigned stacks)
  CS_CFI_IS_CFA,     // is cfa + off        (DW_CFA_val_offset)
  CS_CFI_IN_REG,     // in register `off`   (DW_CFA_register)
  CS_CFI_UNDEFINED,  // lost; for the return address: this is the stack's base
};

// clang-format off
enum cs_cfa_how {
  CS_CFA_NONE,       // no rule, or one of a form that is not supported: the step fails
  CS_CFA_REG,        // reg + off
  CS_CFA_DEREF,      // [reg + off] + cfa_add
  CS_CFA_INDEXED,    // [rsp + off + reg * 8] + cfa_add (OpenSSL's Montgomery multiplication)
  CS_CFA_UCONTEXT,   // no CFA: the registers are those that a call preserves in the ucontext that
                     // `cfa_reg` points to (setcontext)
  CS_CFA_CONTEXT,    // no CFA: the registers are those of the CONTEXT at reg + off
  CS_CFA_FAULT,      // reg + off, and the caller was interrupted by a fault, so it is not at a call
  CS_CFA_JUMP,       // no CFA: execution is about to continue elsewhere for good (longjmp). There
                     // rsp is the value of `cfa_reg`; what is saved "at the CFA" is at register
                     // `cfa_add` + off
  CS_CFA_RESUME,     // like JUMP, and the ip there is not a return address
  CS_CFA_EH_RETURN,  // like REG, but the caller is gone: the registers are those of the frame that
                     // catches an exception, which libgcc's locals describe (native/ehreturn.c)
  CS_CFA_PLT,        // rsp + 8 + ((rip & 15) >= off ? 8 : 0): a PLT entry that has pushed its index
};
// clang-format on

struct cs_cfi_rule {  // interned: a process has a few thousand
  uint8_t cfa_how, cfa_reg, signal_frame, cfa_add;
  int32_t cfa_off;
  struct {
    int32_t off;
    uint8_t how, pad[3];
  } slot[CS_CFI_SLOTS];  // pad is 0, since rules are compared as bytes
};

enum { CS_BUILD_ID_MAX = 20 };  // of a longer one only these bytes are compared

struct cs_image {
  uint64_t begin, end;  // executable range, [begin, end)
  uint64_t bias;        // load bias: address = bias + virtual address in the file
  uint32_t row_count;
  uint32_t block_count;       // the number of blocks up to the last row
  uint8_t block_bits;         // a block is 1 << block_bits bytes: 256, or more if rows are few
  const uint32_t *row_ip;     // sorted; row i applies from begin + row_ip[i]
  const uint16_t *row_rule;   // index into the rules; CS_NO_RULE: a gap between functions
  const uint32_t *block_row;  // for each block of text, the last row that starts at or before it
  const char *path;           // from /proc/self/maps; "[vdso]"
  uint64_t inode;             // of the mapped file, also from there
  uint32_t device;            // major << 20 | minor
  bool is_coreclr;
  bool small_stacks;  // its code (Go's) runs on its own stacks, without room for a signal
  bool stays;         // until the process ends: the program, the C library, libcoreclr, ...
  uint8_t id_size;    // of the build id; 0: it has none
  uint8_t id[CS_BUILD_ID_MAX];
  uint64_t id_address;  // of the build id in memory
};
#define CS_NO_RULE 0xFFFFu
#define CS_BLOCK_BITS 8u
struct cs_images {  // immutable once published, except for `loaded`
  // The value of cs_loader_now at a moment when these were all of the process's images.
  // CS_LOADER_UNSETTLED: there was no such moment, and some may already be gone.
  uint64_t loaded;
  uint32_t sequence;  // 1 for the first table, then counting up
  uint32_t count;
  const struct cs_cfi_rule *rules;  // append-only, never moves
  struct cs_image image[];          // sorted by begin, without overlaps
};

CS_ISLAND const struct cs_image *cs_images_find(const struct cs_images *images, uint64_t ip);

// Returns whether the image is still where the table says, by a guarded read of its build id. For
// walks at a time when the table may not match the process.
CS_ISLAND bool cs_image_is_mapped(const struct cs_mem *mem, const struct cs_image *image);
