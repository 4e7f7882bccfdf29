// SPDX-License-Identifier: MIT
// Memory shared by two processes: a sealed memfd, which no process can shrink while another one has
// it mapped.
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

// /proc/PID/fd/N of such a file links to CS_SEALED_LINK_BEGIN, the name, CS_SEALED_LINK_END.
#define CS_SEALED_LINK_BEGIN "/memfd:"
#define CS_SEALED_LINK_END " (deleted)"

// Makes a file of `bytes` bytes, mode 0600, without reserving memory. Returns its descriptor, or -1
// with *err set. RLIMIT_FSIZE is checked first, since exceeding it raises SIGXFSZ.
int cs_sealed_make(const char *name, size_t bytes, struct cs_error *err);
// Opens the file that `path` (/proc/PID/fd/N) links to, which must belong to `owner`. Nothing but
// shared memory of that kind is opened, and the open never waits. *bytes receives the size, which
// never changes. Returns a descriptor, or -1 with *err set.
int cs_sealed_open(const char *path, uid_t owner, size_t *bytes, struct cs_error *err);
