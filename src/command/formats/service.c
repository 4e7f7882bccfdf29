// SPDX-License-Identifier: MIT
// The default name of a service, from its command line: "dotnet /srv/Shop.Web.dll --port 80" is
// Shop.Web. Invariant: the name is never empty, and is valid UTF-8. One thread. Signal-safe: no.
#include <string.h>

#include "base/prefix.h"
#include "base/print.h"
#include "formats/otlp.h"

#define FALLBACK "unknown_service"  // OpenTelemetry's default

// Returns the word's last part, without its directories.
static const char *base_name(const char *word, size_t len, size_t *base_len) {
  const char *at = word;
  for (size_t i = 0; i < len; i++)
    if (word[i] == '/') at = word + i + 1;
  *base_len = (size_t)(word + len - at);
  return at;
}

// Returns the first word that ends in .dll, or else the first one. A command line is one string, so
// a path with spaces is several words, the last of which has the name.
static const char *find_word(const char *program, size_t *len) {
  for (const char *at = program; *at != '\0';) {
    size_t word = strcspn(at, " ");
    if (word > strlen(".dll") && cs_has_prefix(at + word - strlen(".dll"), ".dll")) {
      *len = word - strlen(".dll");
      return at;
    }
    at += word + strspn(at + word, " ");
  }
  *len = strcspn(program, " ");
  return program;
}

void cs_service_name(const char *program, char *out, size_t cap) {
  size_t len, base_len;
  const char *word = find_word(program, &len);
  const char *base = base_name(word, len, &base_len);
  FILE *text = fmemopen(out, cap, "w");
  out[0] = '\0';
  if (text != NULL) {
    cs_put_plain(text, base, base_len < cap / 5 ? base_len : cap / 5);
    (void)fclose(text);
  }
  if (out[0] == '\0') (void)snprintf(out, cap, FALLBACK);
}
