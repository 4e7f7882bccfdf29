// SPDX-License-Identifier: MIT
// small_stacks: libraries beside which no signal may be sent, because their code runs on stacks
// that have no room for one (docs/signal-safety.md, "Small stacks"). Not for handlers.
#pragma once

#include "images/images.h"

// Sets cs_signal.small_stacks if one of the images is such a library. Once set, it stays: such
// libraries cannot be unloaded. Called with each new table, by one thread at a time.
void cs_small_stacks_look_at(const struct cs_images *images);
// Returns whether a signal may be sent to a thread that has room for it. Examines libraries that
// have been loaded since the last call, for which it takes the dynamic loader's lock; if there are
// none, a few loads. Any thread.
bool cs_signals_are_safe(void);
// Returns why cs_signal.small_stacks is set, and what works all the same; "" if it is not set.
const char *cs_small_stacks_reason(void);
