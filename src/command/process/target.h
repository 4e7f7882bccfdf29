// SPDX-License-Identifier: MIT
// The files of the process that is examined, and the only way in which the command opens any. A
// path means what it means to that process: it is resolved in the process's root directory and
// never leaves it. Only regular files are opened: a FIFO or a device is refused, and nothing
// blocks. Whether it is the right file is for its contents to show: a caller that opens a file
// checks an id.
#pragma once

#include <sys/types.h>

#include "base/base.h"
#include "base/error.h"

struct cs_target;
// Returns the files of a process. They stay accessible after it has ended, except for its own
// mounts. pid 0: this machine's files, as the command sees them. Never NULL; out of memory ends the
// program.
struct cs_target *cs_target_of(pid_t pid);
void cs_target_free(struct cs_target *target);  // may be NULL
pid_t cs_target_pid(const struct cs_target *target);
bool cs_target_is_within_reach(const struct cs_target *target);
int cs_target_root(const struct cs_target *target);  // O_PATH, or -1
// Returns the part of `seen` that is a path of the process's. The kernel writes the paths of
// /proc/PID/maps as this command sees them: those of a process in a chroot begin with its root
// directory. The process's own paths, as the agent reports them, are returned as they are.
const char *cs_target_path(const struct cs_target *target, const char *seen);

// Opens a file for reading, by an absolute path. Returns -1, with the reason in *err. The caller
// closes it.
int cs_target_open(const struct cs_target *target, const char *path, struct cs_error *err);
// Opens a directory, O_PATH.
int cs_target_open_folder(const struct cs_target *target, const char *path, struct cs_error *err);
// Opens a socket, O_PATH, by its name in such a folder; links are not followed. -1: see errno.
int cs_target_open_socket(int folder, const char *name);
// The content of a file; the caller frees it. Returns NULL if there is no such file, it cannot be
// read, is empty, or is larger than `most`.
uint8_t *cs_target_read(const struct cs_target *target, const char *path, size_t most,
                        size_t *size);

// A copy of the file's content in memory that nobody can change or shorten, for readers that map
// the file. Takes ownership of `fd`. Returns -1, with the reason in *err.
int cs_target_own_copy(int fd, struct cs_error *err);

// A mapping of a file, as in /proc/PID/maps.
struct cs_target_mapping {
  uint64_t begin;   // an address in the mapping
  uint64_t inode;   // of the file
  uint32_t device;  // major << 20 | minor
  const char *path;
};
// Opens the file that is mapped, even if it was deleted or replaced since. Without the right to do
// that (root's), opens what its path refers to now. *exact: it is certainly the mapped file;
// otherwise its contents must prove it. Returns -1, with the reason in *err.
int cs_target_open_mapped(const struct cs_target *target, const struct cs_target_mapping *mapping,
                          bool *exact, struct cs_error *err);
