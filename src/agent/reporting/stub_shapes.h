// SPDX-License-Identifier: MIT
// The runtime's stubs, recognised by their instructions. The agent's thread only. Not for handlers.
#pragma once

#include <stdint.h>

// Returns the name of the stub that the ip is in, a constant, or NULL if it is in no known stub.
const char *cs_stub_shape_name(uint64_t ip);
