// SPDX-License-Identifier: MIT
// Writes bytes as a gzip member.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Returns false if a write has failed (see errno). The output depends on the bytes only.
bool cs_write_gzip(const uint8_t *data, size_t size, FILE *out);
