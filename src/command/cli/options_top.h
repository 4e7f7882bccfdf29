// SPDX-License-Identifier: MIT
// The command line of `clrsnap top`.
#ifndef CS_CLI_OPTIONS_TOP_H
#define CS_CLI_OPTIONS_TOP_H

#include "top/top.h"
#include "wire/wire.h"

struct cs_top_options {
  uint32_t hz;
  enum cs_wire_mode mode;
  enum cs_wire_engine_kind engine;
  bool kernel;  // with the kernel's functions
  double interval_s, window_s;
  uint32_t count;  // tables; 0: until the program ends
  uint32_t rows;   // of a table that is no screen
  bool json, text;
  bool no_counters;
  bool inlined, async_callers;
  struct cs_top_view view;
  pid_t pid;       // of a process that runs; 0: the program is started
  char **program;  // else
  bool help;
};

bool cs_top_options_parse(struct cs_top_options *o, int argc, char **argv, struct cs_error *err);
extern const char cs_top_help[];

#endif
