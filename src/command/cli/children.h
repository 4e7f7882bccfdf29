// SPDX-License-Identifier: MIT
// --children: each .NET process that the program starts is recorded, too, into files of its own.
#ifndef CS_CLI_CHILDREN_H
#define CS_CLI_CHILDREN_H

#include "cli/record.h"

// Before the program starts: it and what it starts shall wait for shared memory of their own.
bool cs_children_prepare(struct cs_record_run *r, struct cs_error *err);
// The program has started: records it and what it starts, until it has ended, the time is up, or a
// second Ctrl-C comes. All is written then.
void cs_record_with_children(struct cs_record_run *r);
// The same by attach: the process options.pid, and what it has started and starts. Answers the
// command's exit code, which is that of the process' own recording.
int cs_record_children_of(struct cs_record_run *r);

#endif
