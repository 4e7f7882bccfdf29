// SPDX-License-Identifier: MIT
// The recording of one process, from the options to what is written.
#pragma once

#include "cli/start.h"

struct cs_record_run {
  struct cs_record_options *options;
  struct cs_session session;
  struct cs_start start;
  struct cs_window window;
  bool given_away;   // a process of ours has the outputs, and writes them
  bool missing;      // nothing was recorded, or an output could not be written
  int summary_lock;  // a file; the process that holds its lock prints its summary; 0: only one does
};

// Opens the outputs, and the session without its shared memory.
bool cs_record_open(struct cs_record_run *r, struct cs_error *err);
// Records the process options->agent.pid and writes the result: a process that has claimed the
// shared memory `claimed`, or (NULL) one that is to load the agent. `ready`: the outputs and the
// session are open. Returns the exit code.
int cs_record_process(struct cs_record_run *r, const struct cs_consumer *claimed, bool ready);
// Writes what was recorded. Returns false if there was nothing, or it could not be written, which
// has been reported.
bool cs_record_conclude(struct cs_record_run *r);
