// SPDX-License-Identifier: MIT
// own_file: a file that stays open in someone else's program. The program may close any descriptor
// (a daemon closes all of them), and the next file that it opens gets the number. So the number
// alone proves nothing: the file's device and inode are compared before each use, and the number is
// a high one, which the program's next file does not get. Not for handlers.
#pragma once

#include "base/base.h"

// All zero means none. Several threads may use the same one; while one of them reopens it, it is
// not open for the others.
struct cs_own_file {
  uint32_t number;  // the descriptor plus 1
  uint64_t device, inode;
};

// Returns the lowest number for a descriptor of ours. Low numbers are left to the program, which
// may use select(), which supports only those below 1,024.
int cs_own_file_first(void);
// Takes over a descriptor that has just been opened. Returns false, with errno set, if it is
// negative or not usable.
bool cs_own_file_take(struct cs_own_file *file, int fd);
// The same for one that stays open for long, which is moved to a high number.
bool cs_own_file_keep(struct cs_own_file *file, int fd);
// Returns the descriptor, to be used at once, or -1 if there is none or the program has closed it.
int cs_own_file_fd(const struct cs_own_file *file);
// Closes the file, unless the program has closed it already and the number is no longer ours.
void cs_own_file_close(struct cs_own_file *file);
