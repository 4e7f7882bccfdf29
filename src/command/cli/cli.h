// SPDX-License-Identifier: MIT
// cli: the command. A verb is one entry in main.c's table and one file cmd_VERB.c.
#ifndef CS_CLI_CLI_H
#define CS_CLI_CLI_H

#include "base/print.h"

#define CS_EXIT_FAILURE 1
#define CS_EXIT_USAGE 2

// argv[0] is the verb. Each answers the command's exit code.
int cs_cmd_diff(int argc, char **argv);
int cs_cmd_doctor(int argc, char **argv);
int cs_cmd_ps(int argc, char **argv);
int cs_cmd_record(int argc, char **argv);
int cs_cmd_report(int argc, char **argv);
int cs_cmd_run_profiler(int argc, char **argv);
int cs_cmd_stack(int argc, char **argv);
int cs_cmd_top(int argc, char **argv);

#endif
