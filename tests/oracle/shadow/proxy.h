// SPDX-License-Identifier: MIT
// An ICorProfilerInfo that forwards every call, but reports the call and ends the process if it is
// made where the CLR must not be called: in a signal handler.
#pragma once

#include "prof.h"

// `check` is called with the method's name before each call.
IUnknown *proxy_new(ICorProfilerInfo15 *real, void (*check)(const char *name));
