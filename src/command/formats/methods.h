// SPDX-License-Identifier: MIT
// What the tables of methods share: sums by frame, and searches by name. One thread.
#pragma once

#include <regex.h>

#include "profile/profile.h"

struct cs_hot {
  uint32_t frame;
  uint64_t self, total, samples;  // samples: of its own
};

// One for each frame, in the order of the frames. idle: nodes that do not count; NULL: all do.
// *left_out: what those have. The caller frees it.
struct cs_hot *cs_hot_frames(const struct cs_profile *p, const bool *idle, uint64_t *left_out);

struct cs_search {
  const char *text;
  regex_t regex;
  char wrong[64];  // why the text is not a regular expression; "": it is one
};

// Case counts only if the text has a capital letter. A text that is not a regular expression is
// searched for as it is: names have brackets.
void cs_search_begin(struct cs_search *search, const char *text);
bool cs_search_matches(const struct cs_search *search, const char *name);
void cs_search_end(struct cs_search *search);
// Says for the methods that match where they were inlined. Returns false if none of them is known
// to be inlined.
bool cs_put_inlined_hits(const struct cs_profile *p, const struct cs_search *search,
                         const char *prefix, FILE *out);
