// SPDX-License-Identifier: MIT
// Converts UTF-16, .NET's encoding, to UTF-8. Any thread. Signal-safe: no.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Converts `len` units of UTF-16, or all up to a NUL if `len` is SIZE_MAX. The output is terminated
// if cap > 0, and ends at a whole character. An unpaired surrogate becomes U+FFFD. Returns the
// number of bytes written, without the NUL; *src_used (which may be NULL) receives the number of
// units converted.
size_t cs_utf16_to_utf8(char *dst, size_t cap, const uint16_t *src, size_t len, size_t *src_used);
