// SPDX-License-Identifier: MIT
// Errors as sentences: what failed, why, what to do. Not for handlers.
#ifndef CS_BASE_ERROR_H
#define CS_BASE_ERROR_H

#include <stdbool.h>

struct cs_error {
  char text[256];  // one sentence, no line break; cut when longer
};

// Writes the sentence (err may be NULL) and answers false, for `return cs_error_set(err, ...);`.
__attribute__((format(printf, 2, 3))) bool cs_error_set(struct cs_error *err, const char *format,
                                                        ...);

#endif
