// SPDX-License-Identifier: MIT
// Which C library the process uses, since one agent file serves both glibc and musl. Not for
// handlers.
#pragma once

#include <stdbool.h>

bool cs_libc_is_musl(void);
