// SPDX-License-Identifier: MIT
// Stubs of the runtime's, recognised by their instructions. The agent's thread only. Not for
// handlers.
#pragma once

#include <stdint.h>

// The name of the stub that the ip is in. Static; NULL: of none that is known.
const char *cs_stub_shape_name(uint64_t ip);
