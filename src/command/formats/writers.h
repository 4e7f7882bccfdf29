// SPDX-License-Identifier: MIT
// The writers of the formats; format.c has the table of them. One thread. Signal-safe: no.
#ifndef CS_FORMATS_WRITERS_H
#define CS_FORMATS_WRITERS_H

#include "profile/diff.h"
#include "profile/profile.h"

// Each writes all modes of a recording, or the one that its format shows. They return false when a
// write has failed; errno says why.
bool cs_write_collapsed(const struct cs_profile_set *set, FILE *out);
bool cs_write_html(const struct cs_profile_set *set, FILE *out);  // page/html.c
bool cs_write_json(const struct cs_profile_set *set, FILE *out);
bool cs_write_text(const struct cs_profile_set *set, FILE *out);
bool cs_write_pprof(const struct cs_profile_set *set, FILE *out);
bool cs_write_otlp(const struct cs_profile_set *set, FILE *out);

// These show samples one by one, and need the profile's `samples`.
bool cs_write_speedscope(const struct cs_profile_set *set, FILE *out);
bool cs_write_firefox(const struct cs_profile_set *set, FILE *out);
bool cs_write_chromium(const struct cs_profile_set *set, FILE *out);

// Two recordings: "root;...;leaf before after", one line for each stack, as recorded.
bool cs_write_diff_collapsed(const struct cs_diff *d, FILE *out);
// Facts of both recordings, and the `limit` methods that grew and shrank most by their own time.
bool cs_write_diff_text(const struct cs_diff *d, size_t limit, FILE *out);

// The `limit` frames with the most time (or bytes, ...) of their own, as a table; each line starts
// with `prefix`.
void cs_write_top(const struct cs_profile *p, size_t limit, const char *prefix, FILE *out);

// Writes the stack of a node of `tree`, whose frames are the profile's: "root;...;leaf". `path` grows.
void cs_put_collapsed_stack(const struct cs_profile *p, const struct cs_tree *tree, uint32_t node,
                            uint32_t **path, size_t *capacity, FILE *out);

#endif
