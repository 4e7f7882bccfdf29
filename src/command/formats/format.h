// SPDX-License-Identifier: MIT
// The output formats: their names, the suffixes by which they are told, and who writes them.
#ifndef CS_FORMATS_FORMAT_H
#define CS_FORMATS_FORMAT_H

#include "profile/expansion.h"

// How many modes a file can show.
enum cs_format_modes {
  CS_MODES_ONE,
  CS_MODES_ONE_TIMED,  // one of cpu and wall, and all events
  CS_MODES_ALL,
};

struct cs_format {
  const char *name;
  const char *suffixes[3];  // the first one is used where a file has to be named
  const char *about;
  bool timeline;     // it shows samples one by one
  bool each_thread;  // threads of one name may not be shown as one
  enum cs_format_modes several;
  enum cs_expansion expansion;
  bool (*write)(const struct cs_profile_set *set, FILE *out);  // NULL: the recording itself
};

const struct cs_format *cs_formats(size_t *count);
const struct cs_format *cs_format_by_name(const char *name);  // NULL: there is none
// By the longest suffix that fits; NULL: none does.
const struct cs_format *cs_format_by_path(const char *path);
// "html, collapsed, ..." and ".html, .collapsed, ..."; the caller frees it.
char *cs_format_names(void);
char *cs_format_suffixes(void);

#endif
