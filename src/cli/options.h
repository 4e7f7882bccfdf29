// SPDX-License-Identifier: MIT
// The command line of `clrsnap record`.
#ifndef CS_OPTIONS_H
#define CS_OPTIONS_H

#include "base/error.h"
#include "wire/wire.h"

enum cs_format { CS_FORMAT_HTML, CS_FORMAT_COLLAPSED };

struct cs_record_options {
  double seconds;  // 0: until the program ends
  uint32_t hz;
  enum cs_wire_mode mode;
  const char *output;
  enum cs_format format;
  uint32_t depth;
  bool native;
  bool signatures;  // methods are shown with their parameters
  bool lines;       // and by source line
  uint32_t top;     // 0: no table
  uint64_t buffer_bytes;
  char **program;  // argv of the program, NULL-terminated
  bool help;       // nothing else was looked at
};

extern const char cs_record_help[];
bool cs_record_options_parse(struct cs_record_options *o, int argc, char **argv,
                             struct cs_error *err);

// For every verb: getopt has just answered `opt`, ':' or '?', for argv[optind - 1] or an option
// letter in it. Answers false with the sentence in *err.
bool cs_option_refused(int opt, char **argv, struct cs_error *err);

#endif
