// SPDX-License-Identifier: MIT
// The start of a recording: a program is launched with the agent in it, or a process that is
// already running is asked to load it.
#pragma once

#include "cli/options.h"
#include "session/session.h"

struct cs_start {
  const struct cs_agent_options *options;
  struct cs_session *session;
  char *agent;       // path of the agent's library
  char *hook;        // of the startup hook for labels; NULL: they are not wanted
  char *other_hook;  // that the process ran before, and that keeps it from running `hook`; or NULL
  char *program;     // the command line, for people
};

// Whatever can fail before anything happens to the program, apart from the session's own start.
bool cs_start_prepare(struct cs_start *s, struct cs_error *err);
// To be called with the session open. Returns false on failure, with the reason in *err, and what
// the command ends with.
bool cs_start_agent(struct cs_start *s, int *exit_code, struct cs_error *err);
void cs_start_free(struct cs_start *s);
