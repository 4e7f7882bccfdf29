// SPDX-License-Identifier: MIT
// Errors as sentences: what failed, why, and what to do. Not for handlers.
#pragma once

#include <stdbool.h>

struct cs_error {
  char text[256];  // one sentence without a line break; truncated if longer
};

// Formats the sentence into `err`, which may be NULL. Returns false, so that a caller can write
// `return cs_error_set(err, ...);`.
__attribute__((format(printf, 2, 3))) bool cs_error_set(struct cs_error *err, const char *format,
                                                        ...);
