// SPDX-License-Identifier: MIT
// SIGURG, the signal that asks for samples as long as the program does not use it. A standard
// signal is merged with one that is already pending, and does not count against the limit of queued
// signals. Pending signals survive execve, and one that is ignored by default does not harm the
// next program. Not for handlers.
#pragma once

#include "base/error.h"

bool cs_sigurg_take(struct cs_error *why);  // false: the program uses it
void cs_sigurg_release(void);
bool cs_sigurg_is_taken(void);
bool cs_sigurg_is_lost(void);  // the program has begun to use it
