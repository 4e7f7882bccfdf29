// SPDX-License-Identifier: MIT
// Labels: bringing the code into a program that tells of its Activities (src/labels), and choosing
// samples by their label.
#ifndef CS_PROCESS_LABEL_HOOK_H
#define CS_PROCESS_LABEL_HOOK_H

#include <sys/types.h>

#include "base/error.h"
#include "base/label.h"

// The startup hook's path, beside the library `agent`; the caller frees it. NULL: it is not there.
char *cs_label_hook_find(const char *agent, struct cs_error *err);
// Puts it into the environment, before hooks that are there already. False: no memory.
bool cs_label_hook_put(const char *hook);
// Has a program that runs, and sees the file, call it. False: *err says why not.
bool cs_label_hook_call(pid_t pid, const char *hook, struct cs_error *err);

// Which samples are wanted: those of a trace, or of one of its spans.
struct cs_label_choice {
  bool any_span;
  struct cs_label label;
};
// "TRACE" or "TRACE:SPAN", 32 and 16 hexadecimal digits.
bool cs_parse_trace(const char *text, struct cs_label_choice *out, struct cs_error *err);
bool cs_label_is_chosen(const struct cs_label_choice *choice, const struct cs_label *label);

#endif
