// SPDX-License-Identifier: MIT
// The recording of one process, from the options to what is written.
#ifndef CS_CLI_RECORD_H
#define CS_CLI_RECORD_H

#include "cli/options.h"
#include "recording/session.h"

struct cs_record_run {
  struct cs_record_options options;
  struct cs_session session;
  struct cs_window window;
  char *agent;       // path of the library
  char *hook;        // of the startup hook that labels need; NULL: they are not wanted
  char *program;     // the command line, for people
  bool given_away;   // a process of ours has the outputs, and writes them
  bool nothing;      // has been recorded: no agent, or one that refused
  int summary_lock;  // a file; whoever holds its lock prints its summary; 0: there is only one
};

// What the agent is asked for.
struct cs_consumer_opts cs_record_ring(const struct cs_record_run *r);
// Opens the outputs, and the session without its shared memory.
bool cs_record_open(struct cs_record_run *r, struct cs_error *err);
// Attaches to options.pid and records it. Returns the command's exit code.
int cs_record_attached(struct cs_record_run *r);
// Writes what was recorded. False: there was nothing, or it could not be written, which has been
// said.
bool cs_record_conclude(struct cs_record_run *r);

#endif
