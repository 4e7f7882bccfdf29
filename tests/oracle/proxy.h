// SPDX-License-Identifier: MIT
// An ICorProfilerInfo that passes on every call, but reports it and ends the process if the call is
// made where the CLR must not be called: in a signal handler.
#ifndef ORACLE_PROXY_H
#define ORACLE_PROXY_H

#include "prof.h"

// `check` is called at each call with what was called.
IUnknown *proxy_new(ICorProfilerInfo15 *real, void (*check)(const char *name));

#endif
