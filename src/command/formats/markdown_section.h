// SPDX-License-Identifier: MIT
// One mode of a recording, added up for a Markdown page, and how its parts are written. One thread.
#pragma once

#include "formats/markdown.h"
#include "profile/functions.h"

#define CS_NO_ROW UINT32_MAX
enum { CS_MARKDOWN_STACKS = 5, CS_MARKDOWN_CAUSES = 12 };

struct cs_markdown_row {
  uint32_t function;
  uint64_t here, self, total;  // `here`: of its own, and in what it calls that is not own code
  uint32_t line;  // the frame (a line) of most of `here`; CS_NO_ROW: its lines are unknown
};

struct cs_markdown_section {
  const struct cs_profile *p;
  struct cs_functions functions;
  struct cs_tree tree;           // all threads', by function
  struct cs_markdown_row *rows;  // own code by `here`, then the rest by `self`
  size_t own, others;            // how many rows there are of each
  uint64_t elsewhere;            // of stacks without own code
  // Of the first rows of own code and, last, of stacks without: the leaf that most of it ends in,
  // by function, as far as that says what it was for; CS_NO_ROW: none has half of it.
  uint32_t causes[CS_MARKDOWN_CAUSES + 1];
  const char *unit_name;  // of the tables
  double unit;
  int decimals;
  uint32_t stacks[CS_MARKDOWN_STACKS];  // the heaviest leaves of the tree, heaviest first
  size_t stack_count;                   // of all
  double error;                         // of a share, in points
  uint64_t idle, shown;  // of threads that wait for work, which is left out; and the rest
};

void cs_section_add_up(struct cs_markdown_section *s, const struct cs_profile *p);
void cs_section_free(struct cs_markdown_section *s);

enum cs_profile_kind cs_section_kind(const struct cs_markdown_section *s, uint32_t function);
double cs_section_share(const struct cs_markdown_section *s, uint64_t weight);
void cs_section_put_function(const struct cs_markdown_section *s, uint32_t function, unsigned most,
                             FILE *out);
// " (Cart.cs:12)", if the line is known.
void cs_section_put_place(const struct cs_markdown_section *s, const struct cs_markdown_row *row,
                          FILE *out);

// "Shop.Cart.Load > ... > System.IO.File.Open": own code and the innermost frames.
void cs_section_put_stack(const struct cs_markdown_section *s, uint32_t node,
                          const struct cs_detail *d, FILE *out);
