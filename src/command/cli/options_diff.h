// SPDX-License-Identifier: MIT
// The command line of `clrsnap diff`.
#ifndef CS_CLI_OPTIONS_DIFF_H
#define CS_CLI_OPTIONS_DIFF_H

#include "base/error.h"
#include "formats/format.h"
#include "profile/diff.h"

enum cs_diff_format { CS_DIFF_TEXT, CS_DIFF_HTML, CS_DIFF_JSON, CS_DIFF_COLLAPSED };

struct cs_diff_options {
  const char *before, *after;  // recordings
  const char *output;          // NULL, "-": the standard output
  const char *format;          // of --format; NULL: the suffix tells
  enum cs_diff_format as;
  enum cs_normalize normalize;
  uint32_t top;
  enum cs_wire_mode mode;  // a page's first one, else the only one; 0: all that both have
  bool native, signatures, raw_names;
  bool help;  // nothing else was looked at
};

bool cs_diff_options_parse(struct cs_diff_options *o, int argc, char **argv, struct cs_error *err);
void cs_diff_print_help(FILE *out);

#endif
