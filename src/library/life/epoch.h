// SPDX-License-Identifier: MIT
// epoch: waiting for the walks that are under way (signal/signal.h). Not for handlers.
#pragma once

#include <stdbool.h>

// Waits until every walk that is under way now is over. Returns false if one did not end within 2
// s, because its thread gets no processor; a line in the log says so.
bool cs_epoch_wait(void);
