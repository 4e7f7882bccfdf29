// SPDX-License-Identifier: MIT
// target: the files of the process that is looked at, and the only way in which the command opens
// any. A path means what it means to that process: it is followed in its root directory and never
// leaves it. What is opened is a regular file: a FIFO or a device that stands there is refused, and
// nothing waits. Whether it is the right file its contents must say: who opens one checks an id.
//
// Part of the command. One thread. Not for handlers.
#ifndef CS_PROCESS_TARGET_H
#define CS_PROCESS_TARGET_H

#include <sys/types.h>

#include "base/base.h"
#include "base/error.h"

struct cs_target;
// The files of a process; they stay within reach when it has ended, except that its own mounts go
// with it. pid 0: this machine's, as the command sees them. Never NULL; ends the program when there
// is no memory.
struct cs_target *cs_target_of(pid_t pid);
void cs_target_free(struct cs_target *target);  // may be NULL
pid_t cs_target_pid(const struct cs_target *target);
bool cs_target_is_within_reach(const struct cs_target *target);
int cs_target_root(const struct cs_target *target);  // O_PATH, or -1

// A file to be read, by an absolute path. -1: *err says why not. The caller closes it.
int cs_target_open(const struct cs_target *target, const char *path, struct cs_error *err);
// A folder, O_PATH.
int cs_target_open_folder(const struct cs_target *target, const char *path, struct cs_error *err);
// A socket, O_PATH, by its name in such a folder; a link is none. -1: errno says why.
int cs_target_open_socket(int folder, const char *name);
// All of a file, from malloc. NULL: it is not there, cannot be read, is empty or larger than
// `most`.
uint8_t *cs_target_read(const struct cs_target *target, const char *path, size_t most,
                        size_t *size);

// The file's content as it is now, in memory of ours, which nobody can change or shorten: for
// readers that map what they read. Takes `fd` over. -1: *err says why.
int cs_target_own_copy(int fd, struct cs_error *err);

// What /proc/PID/maps says of a mapping's file.
struct cs_target_mapping {
  uint64_t begin;   // an address within
  uint64_t inode;   // of the file
  uint32_t device;  // major << 20 | minor
  const char *path;
};
// The very file that is mapped, which may have been deleted or replaced since. Without the right to
// ask for that (root): the one that its path leads to now. *exact: it is the mapped one for
// certain; else its contents must say. -1: *err says why not.
int cs_target_open_mapped(const struct cs_target *target, const struct cs_target_mapping *mapping,
                          bool *exact, struct cs_error *err);

#endif
