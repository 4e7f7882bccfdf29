// SPDX-License-Identifier: MIT
// UTF-16, which .NET has everywhere, to UTF-8. Any thread. Signal-safe: no.
#ifndef CS_BASE_UTF16_H
#define CS_BASE_UTF16_H

#include <stddef.h>
#include <stdint.h>

// UTF-16 (len units, or up to a NUL when len is SIZE_MAX) to UTF-8. Always terminates `dst` when
// cap > 0, never cuts a character in half, writes U+FFFD for an unpaired surrogate.
// Returns the bytes written, without the NUL. *src_used (may be NULL) is the units taken.
size_t cs_utf16_to_utf8(char *dst, size_t cap, const uint16_t *src, size_t len, size_t *src_used);

#endif
