// SPDX-License-Identifier: MIT
// Writes bytes as a gzip member.
#ifndef CS_UTIL_GZIP_H
#define CS_UTIL_GZIP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Returns false if a write has failed (see errno). The output depends on the bytes only.
bool cs_write_gzip(const uint8_t *data, size_t size, FILE *out);

#endif
