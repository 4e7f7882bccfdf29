// SPDX-License-Identifier: MIT
// Parses a trace, or one of its spans, and matches labels. One thread. Signal-safe: no.
#include "profile/label_choice.h"

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
  out->any_trace = false;
  out->any_span = true;
  out->label = (struct cs_label){{0}, {0}, 0};
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

bool cs_parse_status(const char *text, struct cs_label_choice *out, struct cs_error *err) {
  bool group = strlen(text) == 3 && text[0] >= '1' && text[0] <= '5' && strcmp(text + 1, "xx") == 0;
  bool one = strlen(text) == 3 && strspn(text, "0123456789") == 3 && text[0] != '0';
  if (!group && !one)
    return cs_error_set(
        err, "--status takes an HTTP status like 404, or a group like 5xx, not '%s'", text);
  out->least_status = group ? (uint32_t)(text[0] - '0') * 100 : (uint32_t)strtoul(text, NULL, 10);
  out->most_status = out->least_status + (group ? 99 : 0);
  return true;
}

static bool has_route(const char *endpoint, const char *route) {
  const char *space = strchr(endpoint, ' ');
  return strcmp(endpoint, route) == 0 || (space != NULL && strcmp(space + 1, route) == 0);
}

static bool has_trace(const struct cs_label_choice *choice, const struct cs_label *label) {
  return memcmp(choice->label.trace, label->trace, sizeof label->trace) == 0 &&
         (choice->any_span || memcmp(choice->label.span, label->span, sizeof label->span) == 0);
}

bool cs_label_is_chosen(const struct cs_label_choice *choice, const struct cs_label *label,
                        const char *endpoint, uint32_t status) {
  if (choice->least_status != 0 && (status < choice->least_status || status > choice->most_status))
    return false;
  return (choice->any_trace || has_trace(choice, label)) &&
         (choice->route == NULL || has_route(endpoint, choice->route));
}
