// SPDX-License-Identifier: MIT
// Text from a stranger's program, made fit for a file of ours. One thread.
#ifndef CS_UTIL_TEXT_H
#define CS_UTIL_TEXT_H

#include <stdio.h>

#include "base/print.h"

// As a JSON string with its quotes. No '<', '>' or '&' is written as such, so it is safe inside of
// an HTML <script> element, and nothing that a terminal obeys.
void cs_put_json(FILE *out, const char *data, size_t len);

#endif
