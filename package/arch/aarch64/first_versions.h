// SPDX-License-Identifier: MIT
// The first version of glibc on arm64, which names all symbols that glibc had then.
#pragma once
#define FIRST_GLIBC "2.17"
#define CONDATTR_SETCLOCK_GLIBC "2.17"
