// SPDX-License-Identifier: MIT
// clients: the profilers that share the library. Under the lock of start.c.
#pragma once

#include <stdbool.h>

#include "clrsnap/clrsnap.h"

bool cs_client_is_known(const IUnknown *unknown);
// Takes over the reference `info`. Returns false if there are too many.
bool cs_client_add(IUnknown *unknown, ICorProfilerInfo15 *info);
// Returns the reference in *info. Returns false if there is no such client.
bool cs_client_remove(const IUnknown *unknown, ICorProfilerInfo15 **info);
// Gets the info of one of them. Returns false if there is none left.
bool cs_client_any(ICorProfilerInfo15 **info);
