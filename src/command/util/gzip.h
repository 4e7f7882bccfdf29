// SPDX-License-Identifier: MIT
// Bytes as a gzip member.
#ifndef CS_UTIL_GZIP_H
#define CS_UTIL_GZIP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// False: a write failed (errno says why). The same bytes always give the same ones.
bool cs_write_gzip(const uint8_t *data, size_t size, FILE *out);

#endif
