// SPDX-License-Identifier: MIT
// Explains why the kernel denies this process access to another one.
#pragma once

#include "base/error.h"

// Sets *why to a clause for the end of a sentence, with what to do, and returns false. Called after
// the kernel has denied access to the process's memory or files (EPERM, EACCES).
bool cs_rights_lacking(int pid, struct cs_error *why);
