// SPDX-License-Identifier: MIT
// standstills: writes the notes of signal/standstill.h to the file that CLRSNAP_BENCH_STANDSTILLS
// names, in the environment of a program that is benchmarked. The agent's thread. Not for handlers.
#ifndef CS_ENGINES_STANDSTILLS_H
#define CS_ENGINES_STANDSTILLS_H

#include <stdbool.h>

void cs_standstills_begin(void);  // before any event is opened
bool cs_standstills_are_noted(void);
void cs_standstills_end(void);  // no handler runs any more

#endif
