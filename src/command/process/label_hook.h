// SPDX-License-Identifier: MIT
// The startup hook that reports a program's Activities (src/agent/labels).
#pragma once

#include <sys/types.h>

#include "base/error.h"

// The startup hook's path, beside the library `agent`; the caller frees it. Returns NULL, with the
// reason in *err.
char *cs_label_hook_find(const char *agent, struct cs_error *err);
// Puts it into the environment, before the hooks that are already there. Returns false if memory
// has run out.
bool cs_label_hook_put(const char *hook);
// Has a running program, which sees the file, call it. Returns false, with the reason in *err.
bool cs_label_hook_call(pid_t pid, const char *hook, struct cs_error *err);
// The path of a hook that the process has loaded already from elsewhere than `hook`, which it then
// does not run; the caller frees it. Returns NULL if it has none.
char *cs_label_hook_other(pid_t pid, const char *hook);
