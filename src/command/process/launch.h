// SPDX-License-Identifier: MIT
// Starting a program with the agent in it.
#ifndef CS_PROCESS_LAUNCH_H
#define CS_PROCESS_LAUNCH_H

#include <signal.h>
#include <sys/types.h>

#include "base/error.h"

#define CS_EXIT_NOT_FOUND 127  // as a shell has it
#define CS_EXIT_NOT_EXECUTABLE 126

// The variable that has the runtime keep what is inlined, for --inlined.
#define CS_RICH_DEBUG_INFO "DOTNET_RichDebugInfo"
#define CS_AGENT_CLSID "{8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}"

// The agent's path: $CLRSNAP_LIB, else libclrsnap.so where a build or an installation has it,
// relative to this binary. The caller frees it; NULL: *err says where it was looked for.
char *cs_find_agent(struct cs_error *err);

// Forks and executes argv with the environment that loads the agent, and `mask` as its signal mask.
// `hook`: a startup hook for it, or NULL. Answers the pid, or 0 with *err set and *exit_code for
// the command to end with.
pid_t cs_launch(char **argv, const char *agent, const char *hook, const char *shm,
                const sigset_t *mask, int *exit_code, struct cs_error *err);

// In the environment of a program that is recorded: if the agent is the main profiler, it is one
// that is only notified from now on, and the place is free.
bool cs_agent_makes_way(struct cs_error *err);

// A command line for people, words with blanks between them; the caller frees it. NULL: no memory.
char *cs_join_words(char **argv);

// exec has failed with `error`: *err says so; answers the exit code for the command to end with.
int cs_exec_failed(const char *program, int error, struct cs_error *err);

#endif
