// SPDX-License-Identifier: MIT
// Errors as sentences. Invariant: the text is terminated and contains no line break, since it is
// printed as one line to stderr, the log and the recording. Any thread. Signal-safe: no.
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
