// SPDX-License-Identifier: MIT
// --children: each .NET process that the program starts is recorded, too, into files of its own.
#pragma once

#include "cli/record.h"

// To be called before the program starts: makes it and its children wait for shared memory of their
// own.
bool cs_children_prepare(struct cs_record_run *r, struct cs_error *err);
// Records the program, which has started, and its children, until the program has ended, the time
// is up, or a second Ctrl-C comes. Returns when all results have been written.
void cs_record_with_children(struct cs_record_run *r);
// The same by attach, for the process options->agent.pid and its children. Returns the exit code,
// which is that of the process's own recording.
int cs_record_children_of(struct cs_record_run *r);
