// SPDX-License-Identifier: MIT
// Loads another profiler, through clrsnap, into a running program.
#pragma once

#include "guest/options.h"

// Waits until the profiler is loaded and initialized. `library`: libclrsnap.so; `profiler`: the
// other profiler's library.
bool cs_profiler_attach(const struct cs_profiler_options *o, const char *library,
                        const char *profiler, struct cs_error *err);
