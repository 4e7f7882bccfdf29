// SPDX-License-Identifier: MIT
// The first version of glibc on x86-64, which names most of its symbols, and that of what came soon after it.
#pragma once
#define FIRST_GLIBC "2.2.5"
#define CONDATTR_SETCLOCK_GLIBC "2.3.3"
