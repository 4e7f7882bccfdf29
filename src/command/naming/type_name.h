// SPDX-License-Identifier: MIT
// The runtime's name of a type as it is written in C#. One thread.
#pragma once

#include <stddef.h>

// "List`1[System.Int32][]" becomes "List<int>[]". Cut off at `size`, always terminated.
void cs_type_name(const char *raw, char *out, size_t size);
