// SPDX-License-Identifier: MIT
// A frame that is made up to be as steps.c says, with a caller that is known: its registers, its
// stack, and whether a step has found the caller. One frame at a time; one thread.
#pragma once

#include "aarch64/steps.h"
#include "unwind/unwind.h"

// Where everything is in the made-up process.
#define MADE_UP_STACK_LO 0xFFFFF0000000ull
#define MADE_UP_STACK_HI 0xFFFFF1000000ull
#define MADE_UP_CFA ((uint64_t)0xFFFFF0800000)

extern struct step_state made_up_frame;  // the frame that is made up now
extern const struct cs_stack made_up_stack;

// The registers at `ip`. keeps: a register that is saved has its caller's value still (fp and lr as
// long as `made_up_frame` says that they are kept), and so has the memory of one that is restored,
// as long as it is not below sp: compilers count on both, and describe a prolog at its end and an
// epilog at its end. Otherwise these have other values.
void made_up_regs(struct cs_regs *regs, uint64_t ip, bool keeps);
// Reads a word of the stack. Returns false for an address elsewhere.
bool made_up_read(uint64_t address, void *dst, size_t len);
// Checks that this is the made-up caller, except for the registers that the code has given up.
bool made_up_is_caller(const struct cs_regs *regs);
// Prints the first of these only.
void made_up_report(const char *what, uint64_t function, uint32_t at, int stop,
                    const struct cs_regs *regs);
