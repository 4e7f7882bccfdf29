// SPDX-License-Identifier: MIT
// activation: the runtime's own signal, by which a thread that existed before the library takes its
// larger alternate stack while the runtime runs on. Not for handlers.
#pragma once

#include "signal/thread.h"

// Puts our handler in front of the runtime's, if it is not there yet. Returns false if the signal
// is perhaps not blocked where the runtime's handler of a fault needs all of the small stack, so
// that it must not be sent.
bool cs_activation_is_usable(void);
// Sends a pinned thread the signal. Returns false if one is on its way already, or it could not be
// sent.
bool cs_activation_ask(struct cs_thread *thread);
