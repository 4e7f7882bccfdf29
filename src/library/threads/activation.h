// SPDX-License-Identifier: MIT
// activation: the runtime's own signal, by which a thread that existed before the library takes its
// larger alternate stack while the runtime runs on. Not for handlers.
#pragma once

#include "signal/thread.h"

// Puts our handler in front of the runtime's, if it is not there yet. Returns false if the signal
// may not be blocked wherever the runtime's handler of a fault needs all of the small stack: then
// none may be sent.
bool cs_activation_is_there(void);
// Sends a pinned thread the signal, unless one is on its way. Returns false if it could not be
// sent.
bool cs_activation_ask(struct cs_thread *thread);
