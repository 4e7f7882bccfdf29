// SPDX-License-Identifier: MIT
#include "util/say.h"

#include <stdarg.h>

#include "base/print.h"

void cs_say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  flockfile(stderr);  // a push has a thread of its own
  cs_print(stderr, "clrsnap: ");
  cs_vprint(stderr, format, args);
  cs_print(stderr, "\n");
  funlockfile(stderr);
  va_end(args);
}
