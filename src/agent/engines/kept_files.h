// SPDX-License-Identifier: MIT
// kept_files: files in /proc about threads, which stay open because opening one costs more than
// reading it. The agent's thread. Not for handlers.
#pragma once

#include "base/base.h"

enum cs_kept { CS_KEPT_STAT, CS_KEPT_SCHED, CS_KEPT_KINDS };

// Returns whether this process may read such files. If not, errno says why. Any thread.
bool cs_kept_is_allowed(void);
void cs_kept_begin(void);  // once per recording; reads RLIMIT_NOFILE
void cs_kept_end(void);    // closes all files
// Reads a file of a thread as a string. `id`: the thread's id in the recording, or 0 for the
// agent's own thread. Returns false if the thread has ended, or there is no such file.
bool cs_kept_read(uint32_t id, uint32_t tid, enum cs_kept kind, char *text, size_t cap);
