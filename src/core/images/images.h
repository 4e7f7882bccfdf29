// SPDX-License-Identifier: MIT
// images: ELF images as a walk needs them: text ranges, and .eh_frame compiled into sorted rows.
// The room native makes these tables, in our own memory, before any handler needs them.
// Signal-safe: yes.
#ifndef CS_IMAGES_IMAGES_H
#define CS_IMAGES_IMAGES_H

#include "images/loader.h"
#include "mem/mem.h"

// How a register of the caller is found.
enum cs_cfi_how {
  CS_CFI_SAME,       // as it is: not touched by this function
  CS_CFI_AT_CFA,     // at [cfa + off]
  CS_CFI_AT_RSP,     // at [rsp + off]      (DW_CFA_expression: breg7 off; signal trampolines)
  CS_CFI_AT_RBP,     // at [rbp + off]      (DW_CFA_expression: breg6 off; realigned stacks)
  CS_CFI_IS_CFA,     // is cfa + off        (DW_CFA_val_offset)
  CS_CFI_IN_REG,     // in register `off`   (DW_CFA_register)
  CS_CFI_UNDEFINED,  // not to be had; for the return address: the stack's base
};
enum cs_cfa_how {
  CS_CFA_NONE,      // no rule (a form that is not supported): the step fails
  CS_CFA_REG,       // reg + off
  CS_CFA_DEREF,     // [reg + off] + cfa_add
  CS_CFA_INDEXED,   // [rsp + off + reg * 8] + cfa_add (OpenSSL's Montgomery multiplication)
  CS_CFA_UCONTEXT,  // none: the registers are those of the ucontext that `cfa_reg` points to, all
                    // that a call preserves (setcontext)
  CS_CFA_CONTEXT,   // none: the registers are those of the CONTEXT that `cfa_reg` points to
  CS_CFA_FAULT,     // reg + off; the caller was interrupted by a fault and is not at a call
  CS_CFA_JUMP,  // none: about to go on elsewhere for good (longjmp). There rsp is what `cfa_reg`
                // has; registers saved "at the CFA" are at register `cfa_add` + off
  CS_CFA_EH_RETURN,  // as REG, but there is no caller any more: the registers are those of the
                     // frame that catches an exception, which libgcc's locals describe (ehreturn.c)
  CS_CFA_PLT,        // rsp + 8 + ((rip & 15) >= off ? 8 : 0): a PLT entry that has pushed its index
};

// The callee-saved registers and the return address, in this order.
enum {
  CS_CFI_RBX,
  CS_CFI_RBP,
  CS_CFI_R12,
  CS_CFI_R13,
  CS_CFI_R14,
  CS_CFI_R15,
  CS_CFI_RA,
  CS_CFI_SLOTS
};

struct cs_cfi_rule {  // interned: a process has some thousand
  uint8_t cfa_how, cfa_reg, signal_frame, cfa_add;
  int32_t cfa_off;
  struct {
    int32_t off;
    uint8_t how, pad[3];
  } slot[CS_CFI_SLOTS];  // pad: 0, rules are compared as bytes
};

enum { CS_BUILD_ID_MAX = 20 };  // bytes that are compared of a longer one

struct cs_image {
  uint64_t begin, end;  // executable range, [begin, end)
  uint64_t bias;        // load bias: address = bias + the file's virtual address
  uint32_t row_count;
  uint32_t block_count;    // up to the last row, however wide the text is
  uint8_t block_bits;      // a block is so much of the text: 256 bytes, or more where rows are few
  const uint32_t *row_pc;  // sorted: begin + row_pc[i] is where row i starts to hold
  const uint16_t *row_rule;   // index into the rules; CS_NO_RULE: a gap between functions
  const uint32_t *block_row;  // per block of text: the last row that starts at or before it
  const char *path;           // as /proc/self/maps gives it; "[vdso]"
  uint64_t inode;             // of the file that is mapped, from there, too
  uint32_t device;            // major << 20 | minor
  bool is_coreclr;
  bool small_stacks;  // its code runs on stacks of its own on which no signal has room: Go's
  bool stays;         // as long as the process lives: the program, the C library, libcoreclr ...
  uint8_t id_size;    // of the build id; 0: it has none
  uint8_t id[CS_BUILD_ID_MAX];
  uint64_t id_address;  // where it stands in memory
};
#define CS_NO_RULE 0xFFFFu
#define CS_BLOCK_BITS 8u

struct cs_images {  // immutable once published, but for `loaded`
  // cs_loader_now when these were the images of the process, all of them. CS_LOADER_UNSETTLED:
  // there was no such moment, some may have gone already.
  uint64_t loaded;
  uint32_t sequence;  // 1 of the first table, and so on
  uint32_t count;
  const struct cs_cfi_rule *rules;  // append-only, never moves
  struct cs_image image[];          // sorted by begin, not overlapping
};

CS_ISLAND const struct cs_image *cs_images_find(const struct cs_images *images, uint64_t ip);

// Does the image still stand where the table says, or another one instead? For walks while the
// table is not known to be that of the process (guarded read of its build id).
CS_ISLAND bool cs_image_is_there(const struct cs_mem *mem, const struct cs_image *image);

#endif
