// SPDX-License-Identifier: MIT
// The files of a process. Invariants: every path of the target's is opened by openat2 in its root
// directory, without magic links, which could lead out of it; only regular files are opened; no
// terminal becomes the controlling one, and no open blocks. One thread. Signal-safe: no.
#include "process/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/print.h"
#include "base/sealed.h"

#define DELETED " (deleted)"
#define OWN_COPY_MOST (1 << 30)

struct cs_target {
  pid_t pid;        // 0: this machine
  int root;         // O_PATH
  int why_no_root;  // errno, if root is -1
  char *jail;       // its root directory as this command sees it; NULL: "/", or not known
};

// Returns NULL for "/", which is also the root of another mount namespace: /proc shows the paths
// there without what leads to it.
static char *read_jail(const char *link) {
  char path[PATH_MAX];
  ssize_t length = readlink(link, path, sizeof path);
  return length > 1 && length < (ssize_t)sizeof path ? strndup(path, (size_t)length) : NULL;
}

struct cs_target *cs_target_of(pid_t pid) {
  char path[64];
  struct cs_target *target = calloc(1, sizeof *target);
  if (target == NULL) {
    cs_print(stderr, "clrsnap: out of memory\n");
    exit(1);
  }
  target->pid = pid;
  (void)snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
  target->root = open(pid != 0 ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (target->root < 0) target->why_no_root = errno;
  if (pid != 0) target->jail = read_jail(path);
  return target;
}

void cs_target_free(struct cs_target *target) {
  if (target != NULL && target->root >= 0) (void)close(target->root);
  if (target != NULL) free(target->jail);
  free(target);
}

pid_t cs_target_pid(const struct cs_target *target) {
  return target->pid;
}

bool cs_target_is_within_reach(const struct cs_target *target) {
  return target->root >= 0;
}

int cs_target_root(const struct cs_target *target) {
  return target->root;
}

const char *cs_target_path(const struct cs_target *target, const char *seen) {
  size_t length = target->jail != NULL ? strlen(target->jail) : 0;
  bool inside = length > 0 && strncmp(seen, target->jail, length) == 0 && seen[length] == '/';
  return inside ? seen + length : seen;
}

static int open_in_root(const struct cs_target *target, const char *path, uint64_t flags,
                        struct cs_error *err) {
  struct open_how how = {.flags = flags | O_CLOEXEC,
                         .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
  if (path[0] != '/') (void)cs_error_set(err, "no file");
  if (path[0] != '/') return -1;
  if (target->root < 0) {
    (void)cs_error_set(err, "the root directory of process %d cannot be accessed: %s",
                       (int)target->pid, strerror(target->why_no_root));
    return -1;
  }
  int fd = (int)syscall(SYS_openat2, target->root, path, &how, sizeof how);
  if (fd < 0 && errno == ENOSYS)
    (void)cs_error_set(err, "the kernel has no openat2: Linux 5.6 is needed");
  else if (fd < 0)
    (void)cs_error_set(err, "%s", strerror(errno));
  return fd;
}

// The target chooses the path. Opening a device or a FIFO may have side effects, so the type is
// checked first.
int cs_target_open(const struct cs_target *target, const char *path, struct cs_error *err) {
  struct stat st;
  int there = open_in_root(target, path, O_PATH, err);
  if (there < 0) return -1;
  bool regular = fstat(there, &st) == 0 && S_ISREG(st.st_mode);
  (void)close(there);
  if (!regular) (void)cs_error_set(err, "not a regular file");
  if (!regular) return -1;
  int fd = open_in_root(target, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, err);
  if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))) return fd;
  (void)close(fd);
  (void)cs_error_set(err, "not a regular file");
  return -1;
}

int cs_target_open_folder(const struct cs_target *target, const char *path, struct cs_error *err) {
  return open_in_root(target, path, O_PATH | O_DIRECTORY, err);
}

int cs_target_open_socket(int folder, const char *name) {
  struct stat st;
  int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))) return fd;
  (void)close(fd);
  errno = ENOTSOCK;
  return -1;
}

static bool read_whole(int fd, uint8_t *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t got = read(fd, bytes + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

uint8_t *cs_target_read(const struct cs_target *target, const char *path, size_t most,
                        size_t *size) {
  struct stat st;
  struct cs_error err;
  uint8_t *bytes = NULL;
  int fd = cs_target_open(target, path, &err);
  if (fd < 0) return NULL;
  if (fstat(fd, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size <= most) {
    *size = (size_t)st.st_size;
    bytes = malloc(*size);
    if (bytes != NULL && !read_whole(fd, bytes, *size)) {
      free(bytes);
      bytes = NULL;
    }
  }
  (void)close(fd);
  return bytes;
}

static bool copy_whole(int from, int to, off_t size) {
  static char piece[65536];
  ssize_t n = 0;
  for (off_t at = 0; at < size; at += n) {
    n = pread(from, piece, sizeof piece, at);
    if (n < 0 && errno == EINTR)
      n = 0;
    else if (n <= 0 || at + n > size || pwrite(to, piece, (size_t)n, at) != n)
      return false;
  }
  return true;
}

int cs_target_own_copy(int fd, struct cs_error *err) {
  struct stat st;
  int copy = -1;
  if (fstat(fd, &st) != 0 || st.st_size > OWN_COPY_MOST)
    (void)cs_error_set(err, "larger than 1 GiB");
  else
    copy = cs_sealed_make("clrsnap-copy", (size_t)st.st_size, err);
  if (copy >= 0 && !copy_whole(fd, copy, st.st_size)) {
    (void)cs_error_set(err, "it changes while it is read, or memory is short");
    (void)close(copy);
    copy = -1;
  }
  (void)close(fd);
  return copy;
}

// ---- What is mapped ----

struct range {
  uint64_t begin, end;
};

// The mapping that contains the address, if it is still one of that file.
static bool find_mapping(const struct cs_target *target, const struct cs_target_mapping *mapping,
                         struct range *out) {
  char path[64], line[512];
  bool found = false;
  (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)target->pid);
  FILE *maps = fopen(path, "re");
  if (maps == NULL) return false;
  while (!found && fgets(line, sizeof line, maps) != NULL) {
    unsigned major, minor;
    uint64_t inode;
    found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %x:%x %" SCNu64, &out->begin, &out->end,
                   &major, &minor, &inode) == 5 &&
            mapping->begin >= out->begin && mapping->begin < out->end && mapping->inode == inode &&
            mapping->device == (major << 20 | minor);
    while (strchr(line, '\n') == NULL && fgets(line, sizeof line, maps) != NULL) {
    }
  }
  (void)fclose(maps);
  return found;
}

// Opens the kernel's link to the file of a mapping. The mapping is looked up before and after that,
// and must be the same.
static int open_by_mapping(const struct cs_target *target,
                           const struct cs_target_mapping *mapping) {
  char path[96];
  struct range before, after;
  struct stat st;
  if (target->pid == 0 || mapping->inode == 0 || !find_mapping(target, mapping, &before)) return -1;
  (void)snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)target->pid,
                 before.begin, before.end);
  if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return -1;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return -1;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && find_mapping(target, mapping, &after) &&
      before.begin == after.begin && before.end == after.end)
    return fd;
  (void)close(fd);
  return -1;
}

// Layered file systems report the inode of the lower file for a mapping: then this returns false.
static bool is_that_file(int fd, const struct cs_target_mapping *mapping) {
  struct stat st;
  return fstat(fd, &st) == 0 && mapping->inode != 0 && st.st_ino == mapping->inode &&
         (major(st.st_dev) << 20 | minor(st.st_dev)) == mapping->device;
}

static bool is_deleted(const char *path) {
  size_t len = strlen(path), end = strlen(DELETED);
  return len > end && strcmp(path + len - end, DELETED) == 0;
}

int cs_target_open_mapped(const struct cs_target *target, const struct cs_target_mapping *mapping,
                          bool *exact, struct cs_error *err) {
  int fd = open_by_mapping(target, mapping);
  *exact = fd >= 0;
  if (fd >= 0) return fd;
  fd = cs_target_open(target, cs_target_path(target, mapping->path), err);
  if (fd < 0 && is_deleted(mapping->path))
    (void)cs_error_set(err, "deleted or replaced since it was mapped; root could still read it");
  *exact = fd >= 0 && target->pid != 0 && is_that_file(fd, mapping);
  return fd;
}
