// SPDX-License-Identifier: MIT
// The part of JSON that a descriptor needs: looking up members, reading numbers. Private to the
// component.
#pragma once

#include "base/base.h"

struct cs_json {
  const char *text;
  void *tokens;  // jsmntok_t[]
  int count;
};

// Parses `len` bytes; the text must outlive the result. Returns false if it is not JSON, or on
// failure to allocate.
bool cs_json_parse(struct cs_json *json, const char *text, size_t len);
void cs_json_free(struct cs_json *json);

// Values are identified by their index: the root is 0, and -1 (which all functions accept) is an
// absent value.
int cs_json_member(const struct cs_json *json, int object, const char *name);
int cs_json_element(const struct cs_json *json, int array, int index);
bool cs_json_is_array(const struct cs_json *json, int value);
// Copies a value that is a number or a string. Returns false if it is neither, or does not fit.
bool cs_json_scalar(const struct cs_json *json, int value, char *out, size_t size);
// Reads a non-negative integer, bare or in a string, decimal or 0x-hexadecimal.
bool cs_json_u64(const struct cs_json *json, int value, uint64_t *out);
