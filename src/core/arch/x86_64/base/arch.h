// SPDX-License-Identifier: MIT
// The architecture's names, and its number in the header of an ELF file. Plain data.
#pragma once

#include <elf.h>

#define CS_ARCH "x86_64"       // of the kernel (uname), and of folders of libraries
#define CS_ARCH_NAME "x86-64"  // for people
#define CS_ARCH_ELF EM_X86_64
