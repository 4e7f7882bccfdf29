// SPDX-License-Identifier: MIT
// The instruction of a mark: a trap, with a number in x0 and the scene's name in x1.
#pragma once

#define STEP_MARK(what, name)                                        \
  do {                                                               \
    register uint64_t x0 __asm__("x0") = (what);                     \
    register const char *x1 __asm__("x1") = (name);                  \
    __asm__ volatile("brk #0x5354" : : "r"(x0), "r"(x1) : "memory"); \
  } while (0)
