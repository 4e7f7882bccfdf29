// SPDX-License-Identifier: MIT
// The permanent code of this process, for the checks. Any thread. Not for handlers.
#pragma once

#include "codemap/permanent.h"

// Lists code that the runtime never frees, as far as there is room. Works before walks do: no read
// can fault.
void cs_permanent_code(const struct cs_layout *layout, struct cs_permanent *list);
