// SPDX-License-Identifier: MIT
// The instruction of a mark: a trap, with a number in rax and the scene's name in rdi.
#pragma once

#define STEP_MARK(what, name) __asm__ volatile("int3" : : "a"(what), "D"(name) : "memory")
