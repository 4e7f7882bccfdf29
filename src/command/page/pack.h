// SPDX-License-Identifier: MIT
// A stream whose bytes arrive in another one compressed (zlib) and as base64: for data inside of a
// page.
#ifndef CS_PAGE_PACK_H
#define CS_PAGE_PACK_H

#include <stdio.h>

// What is written to the answer goes to `out`; fclose ends it, and fails if anything could not be
// written. `out` stays open. NULL: no memory.
FILE *cs_pack_open(FILE *out);

#endif
