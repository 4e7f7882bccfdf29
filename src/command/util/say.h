// SPDX-License-Identifier: MIT
// Messages for people: lines on standard error that begin with the command's name, which
// distinguishes them from the program's own. Any thread. Signal-safe: no.
#pragma once

#include <stdint.h>

__attribute__((format(printf, 1, 2))) void cs_say(const char *format, ...);

// Returns the exit code at the end of a verb: `code`, or at least 1 if what was printed to standard
// output is lost, as on a full disk, which it reports.
int cs_say_if_lost(int code);

// Returns the word that agrees with `count`: "1 thread was", "2 threads were".
static inline const char *cs_plural(uint64_t count, const char *one, const char *several) {
  return count == 1 ? one : several;
}
