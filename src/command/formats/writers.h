// SPDX-License-Identifier: MIT
// The writers of the formats in format.c's table. One thread. Signal-safe: no.
#pragma once

#include "profile/diff.h"
#include "profile/profile.h"

// Each writes all modes of a set, or the one that its format holds, and returns false if a write
// has failed; errno says why.
bool cs_write_collapsed(const struct cs_profile_set *set, FILE *out);
bool cs_write_html(const struct cs_profile_set *set, FILE *out);  // page/html.c
bool cs_write_json(const struct cs_profile_set *set, FILE *out);
bool cs_write_text(const struct cs_profile_set *set, FILE *out);
bool cs_write_pprof(const struct cs_profile_set *set, FILE *out);
bool cs_write_otlp(const struct cs_profile_set *set, FILE *out);
bool cs_write_markdown(const struct cs_profile_set *set, FILE *out);

// These write each sample, and need the profile's `samples`.
bool cs_write_speedscope(const struct cs_profile_set *set, FILE *out);
bool cs_write_firefox(const struct cs_profile_set *set, FILE *out);
bool cs_write_chromium(const struct cs_profile_set *set, FILE *out);

// A comparison: "root;...;leaf before after", one line for each stack, in numbers as recorded.
bool cs_write_diff_collapsed(const struct cs_diff *d, FILE *out);
// The facts of both recordings, and the `limit` methods whose own time grew and shrank most.
bool cs_write_diff_text(const struct cs_diff *d, size_t limit, FILE *out);
// A short page of all compared modes.
bool cs_write_diff_markdown(const struct cs_diff *diffs, size_t count, FILE *out);

// The `limit` frames with the most time (or bytes, ...) of their own, as a table; each line starts
// with `prefix`. In modes of events, what has caused each is below it.
void cs_write_top(const struct cs_profile *p, size_t limit, const char *prefix, FILE *out);

// What of each mode is in and below the methods whose names match, as text: lines that start with
// `prefix`.
void cs_write_search(const struct cs_profile_set *set, const char *text, const char *prefix,
                     FILE *out);

// Writes the stack of a node of `tree`, which has the profile's frames: "root;...;leaf". `path` is
// memory of the caller's that grows.
void cs_put_collapsed_stack(const struct cs_profile *p, const struct cs_tree *tree, uint32_t node,
                            uint32_t **path, size_t *capacity, FILE *out);
