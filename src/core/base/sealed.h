// SPDX-License-Identifier: MIT
// Memory that two processes share: a file without a name in any file system, which nobody, not even
// its maker, can make shorter under the other's feet.
#ifndef CS_BASE_SEALED_H
#define CS_BASE_SEALED_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

// As what /proc/PID/fd/N of such a file links to; `name` goes between the two.
#define CS_SEALED_LINK_BEGIN "/memfd:"
#define CS_SEALED_LINK_END " (deleted)"

// A descriptor of a new one of that size, mode 0600; -1: *err says why. None of its memory is
// reserved yet. The process' limit of file sizes is obeyed before the kernel sends a signal for it.
int cs_sealed_make(const char *name, size_t bytes, struct cs_error *err);
// A descriptor of the one that `path` (/proc/PID/fd/N) leads to. Whatever else it leads to is not
// opened, or at least not waited for. `owner`: whose it has to be. *bytes: its size, for ever.
int cs_sealed_open(const char *path, uid_t owner, size_t *bytes, struct cs_error *err);

#endif
