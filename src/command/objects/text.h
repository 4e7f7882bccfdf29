// SPDX-License-Identifier: MIT
// The runtime's UTF-16 texts, in another process.
#pragma once

#include "codemap/codemap.h"

enum { CS_OBJECT_UNITS = 1024 };  // of UTF-16, with the NUL, that a text may have
// The text that ends with a NUL at `address`, as UTF-8; the caller frees it. Returns NULL if it is
// empty, too long or unreadable.
char *cs_object_utf16(const struct cs_world *world, uint64_t address);
