// SPDX-License-Identifier: MIT
#include "util/say.h"

#include <stdarg.h>
#include <stdio.h>

void cs_say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  flockfile(stderr);  // pushes have a thread
  (void)fputs("clrsnap: ", stderr);
  (void)vfprintf(stderr, format, args);
  (void)putc('\n', stderr);
  funlockfile(stderr);
  va_end(args);
}
