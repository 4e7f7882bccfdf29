// SPDX-License-Identifier: MIT
// What the kernel allows this process, and why it denies it access to another one. Not for
// handlers.
#pragma once

#include "base/error.h"

// Sets *why to a clause for the end of a sentence, with what to do, and returns false. Called after
// the kernel has denied access to the process's memory or files (EPERM, EACCES).
bool cs_rights_lacking(int pid, struct cs_error *why);

// Returns the number after the first line's beginning that is `label` ("": the first number in the
// file), or -1 if there is none, or the file cannot be read.
long cs_number_in(const char *path, const char *label);
