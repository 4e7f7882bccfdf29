// SPDX-License-Identifier: MIT
// As much of JSON as a descriptor needs: look up a member, read a number. Private to the room.
#ifndef CS_CONTRACT_JSON_H
#define CS_CONTRACT_JSON_H

#include "base/base.h"

struct cs_json {
  const char *text;
  void *tokens;  // jsmntok_t[]
  int count;
};

// Parses `len` bytes; the text must outlive the result. False: not JSON, or out of memory.
bool cs_json_parse(struct cs_json *json, const char *text, size_t len);
void cs_json_free(struct cs_json *json);

// Values are named by their index; the root is 0, and -1 is "not there" (all functions accept it).
int cs_json_member(const struct cs_json *json, int object, const char *name);
int cs_json_element(const struct cs_json *json, int array, int index);
bool cs_json_is_array(const struct cs_json *json, int value);
// A non-negative integer, bare or in a string, decimal or 0x-hexadecimal.
bool cs_json_u64(const struct cs_json *json, int value, uint64_t *out);

#endif
