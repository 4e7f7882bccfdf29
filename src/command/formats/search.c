// SPDX-License-Identifier: MIT
// What a search for names takes for a match. Any thread. Signal-safe: no.
#include <string.h>

#include "formats/methods.h"

void cs_search_begin(struct cs_search *search, const char *text) {
  bool capital = false;
  for (const char *at = text; *at != '\0'; at++) capital = capital || (*at >= 'A' && *at <= 'Z');
  search->text = text;
  search->wrong[0] = '\0';
  int error = regcomp(&search->regex, text, REG_EXTENDED | REG_NOSUB | (capital ? 0 : REG_ICASE));
  if (error != 0) (void)regerror(error, &search->regex, search->wrong, sizeof search->wrong);
}

// Names have brackets and dots, so a text that occurs as it is matches, too: "Main(string[])".
bool cs_search_matches(const struct cs_search *search, const char *name) {
  return strstr(name, search->text) != NULL ||
         (search->wrong[0] == '\0' && regexec(&search->regex, name, 0, NULL, 0) == 0);
}

void cs_search_end(struct cs_search *search) {
  if (search->wrong[0] == '\0') regfree(&search->regex);
}
