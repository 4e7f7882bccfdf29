// SPDX-License-Identifier: MIT
// The recording of one process, from the options to what is written.
#ifndef CS_RECORD_H
#define CS_RECORD_H

#include "cli/options.h"
#include "cli/session.h"

struct cs_record {
  struct cs_record_options options;
  struct cs_session session;
  struct cs_window window;
  char *agent;      // path of the library
  char *hook;       // of the startup hook that labels need; NULL: they are not wanted
  char *program;    // the command line, for people
  bool nothing;     // has been recorded: no agent, or one that refused
  bool given_away;  // a process of ours has the outputs, and writes them
  int turn;         // a file whose lock is taken for what is said at the end; 0: there is no other
};

// What the agent is asked for.
struct cs_consumer_opts cs_record_ring(const struct cs_record *r);
// Opens the outputs, and the session without its shared memory.
bool cs_record_open(struct cs_record *r, struct cs_error *err);
// Attaches to options.pid and records it. Answers the command's exit code.
int cs_record_attached(struct cs_record *r);
// Writes what was recorded. False: there was nothing, or it could not be written, which has been
// said.
bool cs_record_conclude(struct cs_record *r);

#endif
