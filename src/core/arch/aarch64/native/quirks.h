// SPDX-License-Identifier: MIT
// Hand-written code of CoreCLR whose .eh_frame is wrong, and its corrections. Not for handlers.
#pragma once

#include "native/cfi.h"

enum { CS_QUIRKS = 3 };  // functions that are recognised by their own code, on .NET 10

// Finds the functions in libcoreclr's `text` (or a copy of it), and corrects the rows of that text.
// Returns false if it runs out of memory; some rows may then still be wrong.
bool cs_quirks_apply(const uint8_t *text, size_t size, struct cs_rules *rules, struct cs_rows *rows,
                     unsigned *found);
