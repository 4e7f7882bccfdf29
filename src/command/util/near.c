// SPDX-License-Identifier: MIT
// The distance of two words, in letters (optimal string alignment). One thread. Signal-safe: no.
#include "util/near.h"

#include <string.h>

enum { LONGEST = 40 };  // of a word that is compared

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

size_t cs_word_distance(const char *a, size_t a_len, const char *b, size_t b_len) {
  size_t rows[3][LONGEST + 1];
  if (a_len > LONGEST || b_len > LONGEST) return SIZE_MAX;
  size_t *before = rows[0], *above = rows[1], *row = rows[2];
  for (size_t k = 0; k <= b_len; k++) above[k] = k;
  for (size_t i = 1; i <= a_len; i++) {
    row[0] = i;
    for (size_t k = 1; k <= b_len; k++) {
      row[k] = least(least(above[k], row[k - 1]) + 1, above[k - 1] + (a[i - 1] != b[k - 1]));
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
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
void cs_near_offer(struct cs_near_word *near, const char *word, size_t len) {
  size_t own = near->len > 0 ? near->len : strlen(near->word);
  size_t most = own < 3 ? 0 : own < 6 ? 1 : 2;
  size_t distance = cs_word_distance(near->word, own, word, len);
  if (distance > most || (near->found != NULL && distance >= near->distance)) return;
  near->found = word;
  near->found_len = len;
  near->distance = distance;
}
