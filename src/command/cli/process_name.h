// SPDX-License-Identifier: MIT
// Processes by the names that `clrsnap ps` shows.
#pragma once

#include <sys/types.h>

#include "base/error.h"

// The only .NET process with that main assembly. Returns false if there is none, or there are
// several, which are listed.
bool cs_find_process(const char *name, pid_t *pid, struct cs_error *err);
bool cs_is_process(const char *name);  // there is at least one
bool cs_is_program(const char *word);  // it names a file, or a program on the PATH

// Returns whether a .NET process has a name like this word, which is not a program. If so, *err
// says that there is neither, and suggests the name.
bool cs_suggest_process(const char *word, struct cs_error *err);
// *err says that there is no such program; now also that no process has that name, if it is one.
void cs_explain_missing(const char *word, struct cs_error *err);
