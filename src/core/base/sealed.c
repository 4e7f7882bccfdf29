// SPDX-License-Identifier: MIT
// Sealed memory. Invariant: what has been opened here keeps its size, so that no access to a full
// mapping of it raises SIGBUS, whoever else has it open. Any thread. Signal-safe: no.
#include "base/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u  // Linux 6.3
#endif
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int make(const char *name) {
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  return fd >= 0 || errno != EINVAL ? fd : memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

static bool is_within_limit(size_t bytes, struct cs_error *err) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes) return true;
  return cs_error_set(err,
                      "no shared memory of %zu KiB: process %d may make files of %llu KiB at most "
                      "(ulimit -f)",
                      bytes / 1024, (int)getpid(), (unsigned long long)limit.rlim_cur / 1024);
}

int cs_sealed_make(const char *name, size_t bytes, struct cs_error *err) {
  if (!is_within_limit(bytes, err)) return -1;
  int fd = make(name);
  if (fd >= 0 && fchmod(fd, 0600) == 0 && ftruncate(fd, (off_t)bytes) == 0 &&
      fcntl(fd, F_ADD_SEALS, SEALS) == 0)
    return fd;
  (void)cs_error_set(err, "cannot make shared memory of %zu KiB (memfd_create): %m", bytes / 1024);
  if (fd >= 0) (void)close(fd);
  return -1;
}

// Compares the mount with that of a fresh memfd: all memfds are on one internal mount of the
// kernel. AT_STATX_DONT_SYNC is set because the server of another file system might never respond.
static bool is_memfd(int path_fd) {
  struct statx st, fresh;
  int fd = make("clrsnap-kind");
  if (fd < 0) return false;
  bool same = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &fresh) == 0 &&
              statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
              S_ISREG(st.stx_mode) && st.stx_dev_major == fresh.stx_dev_major &&
              st.stx_dev_minor == fresh.stx_dev_minor;
  (void)close(fd);
  return same;
}

static bool is_sound(int fd, uid_t owner, size_t *bytes, const char *path, struct cs_error *err) {
  struct stat st;
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
    return cs_error_set(err, "%s is not used: it is not sealed, so its size could change", path);
  if (fstat(fd, &st) != 0) return cs_error_set(err, "cannot stat %s: %m", path);
  if (st.st_uid != owner)
    return cs_error_set(err, "%s belongs to another user (%u); it is not used", path, st.st_uid);
  if ((st.st_mode & 07777) != 0600)
    return cs_error_set(err, "%s is not used: its mode is %o, not 600", path, st.st_mode & 07777u);
  *bytes = (size_t)st.st_size;
  return true;
}

int cs_sealed_open(const char *path, uid_t owner, size_t *bytes, struct cs_error *err) {
  char link[32];
  int path_fd = open(path, O_PATH | O_CLOEXEC);
  if (path_fd < 0) {
    (void)cs_error_set(err, "cannot open %s: %m", path);
    return -1;
  }
  int fd = -1;
  (void)snprintf(link, sizeof link, "/proc/self/fd/%d", path_fd);
  if (!is_memfd(path_fd))
    (void)cs_error_set(err, "%s is not shared memory of clrsnap", path);
  else if ((fd = open(link, O_RDWR | O_CLOEXEC | O_NONBLOCK)) < 0)  // does not wait for a lease
    (void)cs_error_set(err, "cannot open %s: %m", path);
  (void)close(path_fd);
  if (fd < 0 || is_sound(fd, owner, bytes, path, err)) return fd;
  (void)close(fd);
  return -1;
}
