// SPDX-License-Identifier: MIT
// The distance of two words, in letters (optimal string alignment); case makes no difference. One
// thread. Signal-safe: no.
#include "util/spelling.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 40 };  // of a word that is compared

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same(char a, char b) {
  return lower(a) == lower(b);
}

size_t cs_word_distance(const char *a, size_t a_len, const char *b, size_t b_len) {
  size_t rows[3][LONGEST + 1];
  if (a_len > LONGEST || b_len > LONGEST) return SIZE_MAX;
  size_t *before = rows[0], *above = rows[1], *row = rows[2];
  for (size_t k = 0; k <= b_len; k++) above[k] = k;
  for (size_t i = 1; i <= a_len; i++) {
    row[0] = i;
    for (size_t k = 1; k <= b_len; k++) {
      row[k] = least(least(above[k], row[k - 1]) + 1, above[k - 1] + !same(a[i - 1], b[k - 1]));
      if (i > 1 && k > 1 && same(a[i - 1], b[k - 2]) && same(a[i - 2], b[k - 1]))
        row[k] = least(row[k], before[k - 2] + 1);
    }
    size_t *oldest = before;
    before = above;
    above = row;
    row = oldest;
  }
  return above[b_len];
}

// One slip in a short word, two in a longer one: more is another word.
void cs_spelling_offer(struct cs_spelling *spelling, const char *word, size_t len) {
  size_t own = spelling->len > 0 ? spelling->len : strlen(spelling->word);
  size_t most = own < 3 ? 0 : own < 6 ? 1 : 2;
  size_t distance = cs_word_distance(spelling->word, own, word, len);
  if (distance > most || (spelling->found != NULL && distance >= spelling->distance)) return;
  spelling->found = word;
  spelling->found_len = len;
  spelling->distance = distance;
}

bool cs_spelling_suggest(const struct cs_spelling *spelling, const char *prefix,
                         struct cs_error *err) {
  char question[128];
  if (spelling->found == NULL || err == NULL) return false;
  int own = (int)(spelling->len > 0 ? spelling->len : strlen(spelling->word));
  int len = snprintf(question, sizeof question, "; did you mean '%s%.*s'?", prefix,
                     (int)spelling->found_len, spelling->found);
  if (len < 0 || (size_t)len >= sizeof question) return false;
  if (strlen(err->text) + (size_t)len >= sizeof err->text)
    return cs_error_set(err, "'%.*s' is unknown%s", own, spelling->word, question);
  memcpy(err->text + strlen(err->text), question, (size_t)len + 1);
  return false;
}
