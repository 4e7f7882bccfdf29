// SPDX-License-Identifier: MIT
// The cache's directories and files. Invariants: directories have mode 0700, files 0600, and only
// directories that belong to this user, and that nobody else can write, are written to, so that a
// command with more rights is not led elsewhere; a file has its name only when it is complete. One
// thread. Signal-safe: no.
#include "symbols/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

// "FOLDER/name", where FOLDER is that of caches.
static char *in_caches(const char *name) {
  const char *folder = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char *path = NULL;
  int len = -1;
  if (folder != NULL && folder[0] == '/')
    len = asprintf(&path, "%s/%s", folder, name);
  else if (home != NULL && home[0] == '/')
    len = asprintf(&path, "%s/.cache/%s", home, name);
  return len < 0 ? NULL : path;
}

char *cs_symbol_cache_path(void) {
  return in_caches("clrsnap/symbols");
}

char *cs_debuginfod_cache_path(void) {
  const char *path = getenv("DEBUGINFOD_CACHE_PATH");
  return path != NULL && path[0] == '/' ? strdup(path) : in_caches("debuginfod_client");
}

// ---- Directories ----

static bool is_private(int fd) {
  struct stat is;
  if (fstat(fd, &is) != 0) return false;
  if (is.st_uid == geteuid() && (is.st_mode & (S_IWGRP | S_IWOTH)) == 0) return true;
  errno = EPERM;
  return false;
}

// Takes ownership of `at`. Returns -1 with errno set on failure.
static int enter(int at, const char *name) {
  int fd = -1;
  if (mkdirat(at, name, 0700) == 0 || errno == EEXIST)
    fd = openat(at, name, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 && !is_private(fd)) {
    (void)close(fd);
    fd = -1;
  }
  int why = errno;
  (void)close(at);
  errno = why;
  return fd;
}

// Returns the directory of caches, which is the user's own affair and may be a link.
static int open_caches(const char *cache) {
  char *caches = strdup(cache), *end = NULL;
  for (int i = 0; caches != NULL && i < 2; i++)  // without "/clrsnap/symbols"
    if ((end = strrchr(caches, '/')) != NULL) *end = '\0';
  if (end == NULL) errno = ENOMEM;
  int fd = -1;
  if (end != NULL && (mkdir(caches, 0700) == 0 || errno == EEXIST))
    fd = open(caches, O_DIRECTORY | O_CLOEXEC);
  free(caches);
  return fd;
}

static int open_folder(const char *cache, const char *id) {
  int fd = open_caches(cache);
  if (fd >= 0) fd = enter(fd, "clrsnap");
  if (fd >= 0) fd = enter(fd, "symbols");
  if (fd >= 0) fd = enter(fd, id);
  return fd;
}

// ---- Files ----

static bool copy_to(int folder, const char *name, int fd) {
  struct stat is;
  off_t at = 0;
  (void)unlinkat(folder, name, 0);  // of a process that had our PID
  int to = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (to < 0) return false;
  bool ok = fstat(fd, &is) == 0;
  while (ok && at < is.st_size) ok = sendfile(to, fd, &at, (size_t)(is.st_size - at)) > 0;
  int why = errno;
  ok = close(to) == 0 && ok;
  if (why != 0) errno = why;
  return ok;
}

bool cs_symbol_cache_keep(const char *cache, const char *id, int fd, struct cs_error *err) {
  char name[48];
  (void)snprintf(name, sizeof name, ".new-%d", (int)getpid());
  int folder = open_folder(cache, id);
  if (folder < 0) return cs_error_set(err, "%s/%s: %m", cache, id);
  errno = 0;
  bool kept = copy_to(folder, name, fd) && renameat(folder, name, folder, "debuginfo") == 0;
  if (!kept) (void)cs_error_set(err, "%s/%s: %m", cache, id);
  if (!kept) (void)unlinkat(folder, name, 0);
  (void)close(folder);
  return kept;
}
