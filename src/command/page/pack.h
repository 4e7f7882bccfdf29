// SPDX-License-Identifier: MIT
// A stream that writes its bytes to another one, compressed (zlib) and in base64, for data in a
// page.
#pragma once

#include <stdio.h>

// What is written to the returned stream goes to `out`. fclose ends it, fails if a write has
// failed, and leaves `out` open. Returns NULL if there is no memory.
FILE *cs_pack_open(FILE *out);
