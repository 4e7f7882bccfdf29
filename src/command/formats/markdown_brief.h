// SPDX-License-Identifier: MIT
// The parts of a Markdown page of many modes, which stand in code blocks. One thread.
#pragma once

#include "formats/markdown_section.h"

// What matters most in the whole recording, a line each.
void cs_brief_put_first(const struct cs_profile_set *set, unsigned most_name, FILE *out);
void cs_brief_put_mode(const struct cs_markdown_section *s, const struct cs_detail *d, FILE *out);
