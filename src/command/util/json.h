// SPDX-License-Identifier: MIT
// JSON, written as it comes: the writer puts the commas. A `key` is the member's name in an object,
// a constant of the caller's, and NULL for what is in an array or outermost. A write that fails
// shows in the stream (ferror). One thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cs_json_writer {
  FILE *out;
  bool comma;     // a value stands before the next one
  bool new_line;  // the next one, or what closes, is on a line of its own
};

void cs_json_new_line(struct cs_json_writer *j);
void cs_json_open(struct cs_json_writer *j, const char *key, char bracket);
void cs_json_open_line(struct cs_json_writer *j, const char *key,
                       char bracket);                                // on a line of its own
void cs_json_close(struct cs_json_writer *j, const char *brackets);  // "]}" closes two
// Closes what is open, ends the line and flushes. Returns false if a write has failed; errno says
// why.
bool cs_json_end(struct cs_json_writer *j, const char *brackets);
// No '<', '>' or '&' is written as such, so that it is safe within an HTML <script> element, and
// nothing that a terminal obeys. A NULL text is written as null.
void cs_json_text(struct cs_json_writer *j, const char *key, const char *text);
void cs_json_bytes(struct cs_json_writer *j, const char *key, const char *data, size_t len);
void cs_json_bool(struct cs_json_writer *j, const char *key, bool value);
void cs_json_null(struct cs_json_writer *j, const char *key);
void cs_json_int(struct cs_json_writer *j, const char *key, int64_t value);
void cs_json_uint(struct cs_json_writer *j, const char *key, uint64_t value);
// value / 10^digits, exactly.
void cs_json_decimal(struct cs_json_writer *j, const char *key, uint64_t value, unsigned digits);
void cs_json_fixed(struct cs_json_writer *j, const char *key, double value, int decimals);
void cs_json_real(struct cs_json_writer *j, const char *key, double value);  // to twelve digits

// Several members at once: CS_JSON_UINTS(j, {"pid", pid}, {"tid", tid}).
struct cs_json_uint {
  const char *key;
  uint64_t value;
};
struct cs_json_text {
  const char *key, *text;
};
void cs_json_uints(struct cs_json_writer *j, const struct cs_json_uint *members, size_t count);
void cs_json_texts(struct cs_json_writer *j, const struct cs_json_text *members, size_t count);
#define CS_JSON_MEMBERS(type, ...)    \
  (const struct type[]){__VA_ARGS__}, \
      sizeof((const struct type[]){__VA_ARGS__}) / sizeof(struct type)
#define CS_JSON_UINTS(j, ...) cs_json_uints(j, CS_JSON_MEMBERS(cs_json_uint, __VA_ARGS__))
#define CS_JSON_TEXTS(j, ...) cs_json_texts(j, CS_JSON_MEMBERS(cs_json_text, __VA_ARGS__))
