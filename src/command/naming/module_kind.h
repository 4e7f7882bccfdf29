// SPDX-License-Identifier: MIT
// Whose code a module is, by its file's name.
#pragma once

#include <stdbool.h>

// It comes with the SDK, and every program uses it.
bool cs_module_is_framework(const char *name);
// A native library of the runtime's.
bool cs_module_is_runtime(const char *name);
