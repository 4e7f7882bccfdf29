// SPDX-License-Identifier: MIT
// C#'s keywords for types of the namespace System. Any thread. Not for handlers.
#pragma once

#include <stddef.h>
#include <stdint.h>

// By the type's number in signatures (ECMA-335 II.23.1.16). Returns NULL if there is no keyword.
const char *cs_keyword_of_element(uint32_t element_type);
// By the type's name without its namespace, of `len` bytes: "Int32". Returns NULL as above.
const char *cs_keyword_of_type(const char *name, size_t len);
