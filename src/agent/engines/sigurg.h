// SPDX-License-Identifier: MIT
// SIGURG, the signal that samples come with as long as the program does not use it. A standard
// signal is merged with one that is pending already, and does not count against the limit of queued
// signals. Pending signals survive execve, where one that is ignored by default does no harm to the
// next program. Not for handlers.
#pragma once

#include "base/error.h"

bool cs_sigurg_take(struct cs_error *why);  // false: the program uses it
void cs_sigurg_release(void);
bool cs_sigurg_is_taken(void);
bool cs_sigurg_is_lost(void);  // the program has begun to use it
