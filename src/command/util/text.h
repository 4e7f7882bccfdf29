// SPDX-License-Identifier: MIT
// Text from a stranger's program, made fit for a file of ours. One thread.
#ifndef CS_UTIL_TEXT_H
#define CS_UTIL_TEXT_H

#include <stdint.h>
#include <stdio.h>

// Decodes one character of `data`; U+FFFD for a byte that starts no valid UTF-8. Answers the bytes
// taken, at least 1 when len > 0.
size_t cs_utf8_next(const char *data, size_t len, uint32_t *character);
// As UTF-8, made valid, with control characters as spaces.
void cs_put_plain(FILE *out, const char *data, size_t len);
// As a JSON string with its quotes. No '<', '>' or '&' is written as such, so it is safe inside of
// an HTML <script> element.
void cs_put_json(FILE *out, const char *data, size_t len);

#endif
