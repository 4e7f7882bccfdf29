// SPDX-License-Identifier: MIT
// Errors as sentences. Invariant: the text is always terminated and holds no line break, since it
// ends up as one line on stderr, in the log and in the recording. Any thread. Signal-safe: no.
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

bool cs_error_set(struct cs_error *err, const char *format, ...) {
  if (err == NULL) return false;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  for (char *p = err->text; *p != '\0'; p++) {
    if (*p == '\n' || *p == '\r') *p = ' ';
  }
  return false;
}
