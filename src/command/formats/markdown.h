// SPDX-License-Identifier: MIT
// What the two Markdown writers share. A page is short enough to be read as a whole, by a person or
// by a program that pays for each word: names stand in code blocks, where they mean themselves. One
// thread.
#pragma once

#include "profile/profile.h"

#define CS_MARKDOWN_MOST 4096  // bytes of a page

// The level of detail for each mode. The page says how much there is of what does not fit.
struct cs_detail {
  unsigned methods, others, stacks;  // rows of tables; others 0: a row of `methods` may be any code
  unsigned name, stack;              // bytes of a name, and of a stack's line
  bool brief;                        // as markdown_brief.c writes it
};

// What a page is written with: a level of detail for the text that is not of one mode, and one for
// each mode.
struct cs_details {
  const struct cs_detail *page, *mode[CS_WIRE_MODES];
};

// Writes to `out` what `write` writes in the most detail in which it fits: the same for all modes,
// and what is left then goes to one after the other.
bool cs_markdown_fit(void (*write)(const void *what, const struct cs_details *d, FILE *out),
                     const void *what, size_t modes, FILE *out);
// A name in at most `most` bytes: of a longer one, its beginning and its end.
void cs_markdown_name(FILE *out, const char *name, size_t len, unsigned most);
void cs_markdown_code(FILE *out);      // begins a code block
void cs_markdown_code_end(FILE *out);  // ends it
// Returns a table's unit for amounts of a mode of which the largest is `most`, and how much it is.
const char *cs_markdown_unit(enum cs_unit unit, double most, double *size);
// Why a mode has no samples.
void cs_markdown_say_nothing(const struct cs_facts *f, FILE *out);
// What is odd about a recording: one list item each, at most `most`; returns their number.
unsigned cs_markdown_odd(const struct cs_profile_set *set, unsigned most, FILE *out);
