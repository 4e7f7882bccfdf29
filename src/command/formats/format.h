// SPDX-License-Identifier: MIT
// The output formats: their names, the suffixes of their files, and their writers.
#pragma once

#include "base/error.h"
#include "profile/expansion.h"
#include "util/spelling.h"

// How many modes a file can hold.
enum cs_format_modes {
  CS_MODES_ONE,
  CS_MODES_ONE_TIMED,  // cpu or wall, and all modes of events
  CS_MODES_ALL,
};

struct cs_format {
  const char *name;
  const char *suffixes[3];  // the first one is used for default file names
  const char *about;
  bool timeline;     // shows each sample
  bool each_thread;  // threads of the same name must not be grouped
  enum cs_format_modes several;
  enum cs_expansion expansion;
  bool (*write)(const struct cs_profile_set *set, FILE *out);  // NULL: the recording itself
};

const struct cs_format *cs_formats(size_t *count);
const struct cs_format *cs_format_by_name(const char *name);  // NULL: there is none
// By the longest suffix that matches; NULL: none does.
const struct cs_format *cs_format_by_path(const char *path);
// Returns false if the suffix that matches is no more than the end of one that means another format
// elsewhere.
bool cs_format_check_name(const char *path, struct cs_error *err);
// The name of a format that `spelling->word` may have been meant to be, also by what other tools
// call it: "flamegraph", "perfetto".
void cs_format_suggest(struct cs_spelling *spelling);
// The same for a file's name: a suffix. Sets spelling->word to the suffix that the file has.
// Returns the format; NULL: none is near.
const struct cs_format *cs_format_suggest_suffix(const char *path, struct cs_spelling *spelling);
// "html, collapsed, ..." and ".html, .collapsed, ..."; the caller frees it.
char *cs_format_names(void);
char *cs_format_suffixes(void);
