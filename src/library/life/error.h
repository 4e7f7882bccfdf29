// SPDX-License-Identifier: MIT
// error: the last error of each thread, as clrsnap_last_error returns it. Not for handlers.
#pragma once

#include "base/error.h"

struct cs_error *cs_last_error(void);
