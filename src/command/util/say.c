// SPDX-License-Identifier: MIT
#include "util/say.h"

#include <stdarg.h>
#include <stdio.h>

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

int cs_say_if_lost(int code) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  cs_say("the output could not be written: %m");
  return code != 0 ? code : 1;
}
