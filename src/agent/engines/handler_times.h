// SPDX-License-Identifier: MIT
// handler_times: writes the notes of signal/handler_times.h to the file that
// CLRSNAP_BENCH_HANDLER_TIMES names, in the environment of a program that is benchmarked. The
// agent's thread. Not for handlers.
#pragma once

#include <stdbool.h>

void cs_handler_times_begin(void);  // before any event is opened
bool cs_handler_times_are_noted(void);
void cs_handler_times_end(void);  // when no handler runs any more
