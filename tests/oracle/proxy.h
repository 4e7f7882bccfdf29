// SPDX-License-Identifier: MIT
// An ICorProfilerInfo that hands every call on, but says so and ends the process when it is called
// where the CLR must not be: in a signal handler.
#ifndef ORACLE_PROXY_H
#define ORACLE_PROXY_H

#include "prof.h"

// `check` is called at each call with what was called.
IUnknown *proxy_new(ICorProfilerInfo15 *real, void (*check)(const char *name));

#endif
