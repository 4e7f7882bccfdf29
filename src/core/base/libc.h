// SPDX-License-Identifier: MIT
// Which C library the process runs with: the agent is one file for glibc and musl. Not for
// handlers.
#pragma once

#include <stdbool.h>

bool cs_libc_is_musl(void);
