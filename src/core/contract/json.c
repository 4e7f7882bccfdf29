// SPDX-License-Identifier: MIT
// JSON, parsed by jsmn in its strict mode. Invariant: a value's index is that of its token, tokens
// are in the order of the text, and the tokens inside a value follow it and start before its end.
// Any thread, no shared state. Signal-safe: no (allocates).
#include "contract/json.h"

#include <stdlib.h>
#include <string.h>

#define JSMN_STATIC
#define JSMN_STRICT
#define JSMN_PARENT_LINKS
#include <jsmn.h>

#define MAX_TOKENS 65536  // .NET 10's descriptor has about 1,400

bool cs_json_parse(struct cs_json *json, const char *text, size_t len) {
  jsmn_parser parser;
  jsmn_init(&parser);
  int count = jsmn_parse(&parser, text, len, NULL, 0);
  if (count <= 0 || count > MAX_TOKENS) return false;
  jsmntok_t *tokens = calloc((size_t)count, sizeof *tokens);
  if (tokens == NULL) return false;
  jsmn_init(&parser);
  if (jsmn_parse(&parser, text, len, tokens, (unsigned)count) != count) {
    free(tokens);
    return false;
  }
  *json = (struct cs_json){text, tokens, count};
  return true;
}

void cs_json_free(struct cs_json *json) {
  free(json->tokens);
  json->tokens = NULL;
}

static const jsmntok_t *token(const struct cs_json *json, int value) {
  if (value < 0 || value >= json->count) return NULL;
  return (const jsmntok_t *)json->tokens + value;
}

// Returns the value that follows `value` and everything inside it.
static int next_value(const struct cs_json *json, int value) {
  int end = token(json, value)->end;
  do {
    value++;
  } while (value < json->count && token(json, value)->start < end);
  return value;
}

static bool text_is(const struct cs_json *json, const jsmntok_t *t, const char *name) {
  size_t len = (size_t)(t->end - t->start);
  return len == strlen(name) && memcmp(json->text + t->start, name, len) == 0;
}

int cs_json_member(const struct cs_json *json, int object, const char *name) {
  const jsmntok_t *o = token(json, object);
  if (o == NULL || o->type != JSMN_OBJECT) return -1;
  int key = object + 1;
  for (int i = 0; i < o->size; i++) {
    const jsmntok_t *k = token(json, key), *v = token(json, key + 1);
    if (k == NULL || v == NULL || k->type != JSMN_STRING || k->size != 1) return -1;
    if (text_is(json, k, name)) return key + 1;
    key = next_value(json, key + 1);
  }
  return -1;
}

int cs_json_element(const struct cs_json *json, int array, int index) {
  const jsmntok_t *a = token(json, array);
  if (a == NULL || a->type != JSMN_ARRAY || index < 0 || index >= a->size) return -1;
  int value = array + 1;
  for (int i = 0; i < index && value < json->count; i++) value = next_value(json, value);
  return value < json->count ? value : -1;
}

bool cs_json_is_array(const struct cs_json *json, int value) {
  const jsmntok_t *t = token(json, value);
  return t != NULL && t->type == JSMN_ARRAY;
}

bool cs_json_scalar(const struct cs_json *json, int value, char *out, size_t size) {
  const jsmntok_t *t = token(json, value);
  if (t == NULL || (t->type != JSMN_PRIMITIVE && t->type != JSMN_STRING)) return false;
  size_t len = (size_t)(t->end - t->start);
  if (len >= size) return false;
  memcpy(out, json->text + t->start, len);
  out[len] = '\0';
  return true;
}

bool cs_json_u64(const struct cs_json *json, int value, uint64_t *out) {
  char digits[32];  // 64 bits need 20 characters
  if (!cs_json_scalar(json, value, digits, sizeof digits)) return false;
  if (digits[0] < '0' || digits[0] > '9') return false;  // no sign, no blank, no `true`
  bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
  char *end;
  unsigned long long number = strtoull(digits, &end, hex ? 16 : 10);
  if (*end != '\0' || (number == UINT64_MAX)) return false;
  *out = number;
  return true;
}
