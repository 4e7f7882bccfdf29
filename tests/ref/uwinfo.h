// SPDX-License-Identifier: MIT
// A slow, straight-line interpreter of AMD64 UNWIND_INFO as CoreCLR uses it on Unix, written from
// the format's documentation and independently of the product's (src/unwind). It does not handle
// epilogs; steps.h does.
#pragma once

#include "ref/pe.h"

enum { REF_RSP = 4, REF_RBP = 5, REF_RIP = 16, REF_REGISTERS = 17 };

struct ref_registers {
  uint64_t r[REF_REGISTERS];
};

typedef uint64_t ref_stack_word(uint64_t address);

// Unwinds a frame of `function`, whose prolog has been executed up to `executed` bytes (a large
// number stands for all of it). `registers` is both input and output. Returns false if the data is
// malformed.
bool ref_unwind(const struct ref_pe *pe, const struct ref_function *function, uint32_t executed,
                ref_stack_word *stack, struct ref_registers *registers);
