// SPDX-License-Identifier: MIT
// Parses a trace, or one of its spans. One thread. Signal-safe: no.
#include "recording/label_choice.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// Reads exactly `count` bytes as hexadecimal digits. Returns the text after them; NULL: there are
// not enough digits.
static const char *take_hex(const char *text, uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count; i++, text += 2) {
    char digits[3] = {text[0], text[0] != '\0' ? text[1] : '\0', '\0'};
    if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1])) return NULL;
    bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
  }
  return text;
}

bool cs_parse_trace(const char *text, struct cs_label_choice *out, struct cs_error *err) {
  *out = (struct cs_label_choice){.any_span = true};
  const char *at = take_hex(text, out->label.trace, sizeof out->label.trace);
  if (at != NULL && *at == ':') {
    out->any_span = false;
    at = take_hex(at + 1, out->label.span, sizeof out->label.span);
  }
  static const struct cs_label none;
  return (at != NULL && *at == '\0' && memcmp(&out->label, &none, sizeof none) != 0) ||
         cs_error_set(err,
                      "--trace takes a trace id of 32 hexadecimal digits, or that, ':' and a span "
                      "id of 16, not '%s'",
                      text);
}

bool cs_label_is_chosen(const struct cs_label_choice *choice, const struct cs_label *label) {
  return memcmp(choice->label.trace, label->trace, sizeof label->trace) == 0 &&
         (choice->any_span || memcmp(choice->label.span, label->span, sizeof label->span) == 0);
}
