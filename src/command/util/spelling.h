// SPDX-License-Identifier: MIT
// "Did you mean".
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// Returns how many letters have to be added, left out, changed, or exchanged with their neighbours
// to make one word of the other.
size_t cs_word_distance(const char *a, size_t a_len, const char *b, size_t b_len);

// The nearest of the words that are offered. Starts as {.word = the word that was given}.
struct cs_spelling {
  const char *word;
  size_t len;         // of the word; 0: to its end
  const char *found;  // NULL: none is near
  size_t found_len, distance;
};
void cs_spelling_offer(struct cs_spelling *spelling, const char *word, size_t len);
// Adds "; did you mean 'PREFIXfound'?" to a sentence that refuses the word, if one was found. A
// sentence that leaves no room for that (a long list of words) is replaced. Returns false.
bool cs_spelling_suggest(const struct cs_spelling *spelling, const char *prefix,
                         struct cs_error *err);
