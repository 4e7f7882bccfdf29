// SPDX-License-Identifier: MIT
// Code that has no unwind data: .init and .fini, a program's start, and a vDSO. Not for handlers.
#pragma once

#include "native/cfi.h"

// Describes the function at `address` (0: there is none) by its code, if it has no rows and the
// form that the C library's crti.o and crtn.o give it. Returns false if it runs out of memory.
bool cs_startup_apply(struct cs_process_memory *process, const struct cs_candidate *candidate,
                      uint64_t address, struct cs_rules *rules, struct cs_rows *rows);
// Describes the code at which the program begins as the stack's base, if it has no rows and the
// form that the C library's crt1.o gives it. Returns false if it runs out of memory.
bool cs_startup_apply_entry(struct cs_process_memory *process, const struct cs_candidate *candidate,
                            uint64_t address, struct cs_rules *rules, struct cs_rows *rows);
// Describes the vDSO by its code, if the code has a known form. Returns whether it has.
bool cs_startup_apply_vdso(struct cs_process_memory *process, const struct cs_candidate *candidate,
                           struct cs_rules *rules, struct cs_rows *rows);
