// SPDX-License-Identifier: MIT
// Starts a program with the agent in it.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "base/error.h"

#define CS_EXIT_NOT_FOUND 127  // as a shell has it
#define CS_EXIT_NOT_EXECUTABLE 126

// The variable that makes the runtime record inlining, for --inlined.
#define CS_RICH_DEBUG_INFO "DOTNET_RichDebugInfo"
#define CS_AGENT_CLSID "{8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}"

// The agent's path: $CLRSNAP_LIB, otherwise libclrsnap.so where a build or an installation has it,
// relative to this binary. The caller frees it. Returns NULL, with the reason in *err.
char *cs_find_agent(struct cs_error *err);

// Forks and executes argv with the environment that loads the agent, and `mask` as its signal mask.
// `hook`: a startup hook for it, or NULL. Returns the PID; 0: *err says why, and *exit_code is for
// the command to end with.
pid_t cs_launch(char **argv, const char *agent, const char *hook, const char *shm,
                const sigset_t *mask, int *exit_code, struct cs_error *err);

// If the environment makes the agent the main profiler, as in a program that is recorded, makes it
// a notification profiler, so that another one can be the main profiler.
bool cs_demote_agent(struct cs_error *err);

// A command line for people: the words with blanks between them; the caller frees it. Returns NULL
// if memory has run out.
char *cs_join_words(char **argv);

// After exec has failed with `error`: sets *err, and returns the exit code for the command to end
// with.
int cs_exec_failed(const char *program, int error, struct cs_error *err);
