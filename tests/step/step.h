// SPDX-License-Identifier: MIT
// The every-instruction oracle: one thread of a .NET program is stepped instruction by instruction.
// At each instruction the walk (src/remote, the same code as in the handler) is compared with a
// call stack that the stepper keeps by itself, from the instructions alone: calls push entries, and
// entries below the stack pointer are gone.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_FD_ENV "STEP_FD"
#define STEP_MARK_BEGIN 0x5354455042454749ull
#define STEP_MARK_END 0x53544550454E4421ull
