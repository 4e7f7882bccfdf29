// SPDX-License-Identifier: MIT
// What the command says to people: lines on standard error that begin with its name, so that they
// are told from the program's own. Any thread. Signal-safe: no.
#include <stdarg.h>

#include "cli/cli.h"

void cs_say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  flockfile(stderr);  // pushes have a thread
  cs_print(stderr, "clrsnap: ");
  cs_vprint(stderr, format, args);
  cs_print(stderr, "\n");
  funlockfile(stderr);
  va_end(args);
}
