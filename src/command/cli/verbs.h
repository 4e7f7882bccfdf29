// SPDX-License-Identifier: MIT
// The verbs. Each has one entry in main.c and a file cmd_VERB.c; where its options take more than a
// few lines they have a file of their own, which refers to the function that runs the verb.
#pragma once

#include "cli/command.h"

extern const struct cs_command cs_async_command, cs_diff_command, cs_doctor_command,
    cs_perfmap_command, cs_ps_command, cs_record_command, cs_report_command,
    cs_run_profiler_command, cs_stack_command, cs_top_command;

int cs_run_record(void *options);
int cs_run_top(void *options);
