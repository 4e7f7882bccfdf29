// SPDX-License-Identifier: MIT
// The output file. Invariant: at `path` is the old content or the whole new one, never a part,
// except for a file that is published while it grows. One thread. Signal-safe: no.
#include "recording/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/say.h"

static mode_t current_umask(void) {
  mode_t mask = umask(0);
  (void)umask(mask);
  return mask;
}

// A name in the same directory, since rename(2) does not cross file systems.
static char *temp_name(const char *path) {
  char *copy = strdup(path), *temp = NULL;
  if (copy == NULL || asprintf(&temp, "%s/.clrsnap-XXXXXX", dirname(copy)) < 0) temp = NULL;
  free(copy);
  return temp;
}

// The end of a path that is too long for a sentence that has to say more.
static const char *end_of(const char *path, const char **dots) {
  enum { SHOWN = 80 };
  size_t len = strlen(path), skip = len > SHOWN ? len - SHOWN : 0;
  while (((unsigned char)path[skip] & 0xC0) == 0x80) skip++;
  *dots = skip > 0 ? "..." : "";
  return path + skip;
}

static const char *limit_of(int error) {
  return error == EFBIG ? " (ulimit -f)" : "";
}

static bool refuse(const char *path, int error, struct cs_error *err) {
  const char *dots, *shown = end_of(path, &dots);
  return cs_error_set(err, "cannot write %s%s: %s%s", dots, shown, strerror(error),
                      limit_of(error));
}

static bool fail(struct cs_output *out, struct cs_error *err, const char *path, int error) {
  (void)refuse(path, error, err);
  cs_output_abandon(out);
  return false;
}

static void forget_temp(struct cs_output *out) {
  free(out->temp);
  out->temp = NULL;
}

// If the file system allows it, the file has no name before it is complete, so that nobody finds a
// part of it, however this process ends.
static int open_unnamed(struct cs_output *out) {
  char *copy = strdup(out->path);
  int fd = copy != NULL ? open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
  free(copy);
  out->unnamed = fd > 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : 0;
  if (fd >= 0 && out->unnamed > 0) return fd;
  if (fd >= 0) (void)close(fd);
  out->unnamed = 0;
  return -1;
}

static bool open_temp(struct cs_output *out, mode_t mode) {
  int fd = open_unnamed(out);
  if (fd < 0) {
    out->temp = temp_name(out->path);
    fd = out->temp != NULL ? mkostemp(out->temp, O_CLOEXEC) : -1;
    if (fd < 0) forget_temp(out);
  }
  if (fd < 0) return false;
  (void)fchmod(fd, mode);
  out->file = fdopen(fd, "w");
  return out->file != NULL;
}

// An old file keeps its name until the moment at which the new one gets it.
static bool name_unnamed(struct cs_output *out) {
  char own[32];
  (void)snprintf(own, sizeof own, "/proc/self/fd/%d", out->unnamed);
  bool named = linkat(AT_FDCWD, own, AT_FDCWD, out->path, AT_SYMLINK_FOLLOW) == 0;
  if (!named && errno == EEXIST && (out->temp = temp_name(out->path)) != NULL) {
    int fd = mkostemp(out->temp, O_CLOEXEC);  // an unused name
    if (fd >= 0) (void)close(fd);
    named = fd >= 0 && unlink(out->temp) == 0 &&
            linkat(AT_FDCWD, own, AT_FDCWD, out->temp, AT_SYMLINK_FOLLOW) == 0 &&
            rename(out->temp, out->path) == 0;
    int error = errno;
    if (!named) (void)unlink(out->temp);
    forget_temp(out);
    errno = error;
  }
  int error = errno;
  (void)close(out->unnamed);
  out->unnamed = 0;
  errno = error;
  return named;
}

static bool give_name(struct cs_output *out) {
  if (out->unnamed != 0) return name_unnamed(out);
  if (out->temp != NULL && rename(out->temp, out->path) != 0) return false;
  forget_temp(out);
  return true;
}

// A FIFO cannot be opened before it has a reader.
static int open_special(const char *path) {
  int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0 && fcntl(fd, F_SETFL, O_WRONLY) == 0) return fd;
  if (fd >= 0) (void)close(fd);
  if (errno == ENXIO) cs_say("%s: waiting for a reader", path);
  return open(path, O_WRONLY | O_CLOEXEC);
}

bool cs_output_open(struct cs_output *out, const char *path, struct cs_error *err) {
  memset(out, 0, sizeof *out);
  struct stat st;
  bool exists = stat(path, &st) == 0;
  if (!exists && errno == ENAMETOOLONG) return fail(out, err, path, errno);
  // Links are followed: the file is replaced, not the link to it.
  out->path = exists ? realpath(path, NULL) : strdup(path);
  if (exists && out->path == NULL && !S_ISREG(st.st_mode)) out->path = strdup(path);
  if (out->path == NULL) return fail(out, err, path, errno);
  if (exists && S_ISDIR(st.st_mode)) return fail(out, err, path, EISDIR);
  if (exists && access(path, W_OK) != 0) return fail(out, err, path, errno);
  if (exists && !S_ISREG(st.st_mode)) {
    int fd = open_special(path);
    out->file = fd < 0 ? NULL : fdopen(fd, "w");
    return out->file != NULL || fail(out, err, path, errno);
  }
  mode_t mode = exists ? st.st_mode & 0777 : 0666 & ~current_umask();
  return open_temp(out, mode) || fail(out, err, path, errno);
}

bool cs_output_is_stdout(const char *path) {
  return strcmp(path, "-") == 0;
}

bool cs_output_stdout(struct cs_output *out, struct cs_error *err) {
  memset(out, 0, sizeof *out);
  out->path = strdup("the standard output");
  int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  out->file = fd < 0 || out->path == NULL ? NULL : fdopen(fd, "w");
  return out->file != NULL || fail(out, err, "the standard output", errno);
}

// The recording exists only in our memory now: any place is better than none.
static bool rescue(cs_output_write *write, void *context, const char *path, int error,
                   struct cs_error *err) {
  const char *dir = getenv("TMPDIR"), *dots, *shown = end_of(path, &dots);
  char *name = NULL;
  if (dir == NULL || dir[0] == '\0') dir = "/tmp";
  if (asprintf(&name, "%s/clrsnap-XXXXXX", dir) < 0) name = NULL;
  int fd = name == NULL ? -1 : mkostemp(name, O_CLOEXEC);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
  bool saved = false;
  if (file != NULL) {
    saved = write(context, file);
    if (fclose(file) != 0) saved = false;
  }
  if (saved) {
    (void)cs_error_set(err, "cannot write %s%s: %s; what was to be written is in %s", dots, shown,
                       strerror(error), name);
  } else {
    if (fd >= 0) (void)unlink(name);
    (void)cs_error_set(err, "cannot write %s%s: %s%s; nor a file in %s: the recording is lost",
                       dots, shown, strerror(error), limit_of(error), dir);
  }
  free(name);
  return false;
}

bool cs_output_commit(struct cs_output *out, cs_output_write *write, void *context,
                      struct cs_error *err) {
  errno = 0;
  bool ok = write(context, out->file);
  if (fclose(out->file) != 0) ok = false;
  out->file = NULL;
  ok = ok && give_name(out);
  int error = errno != 0 ? errno : EIO;
  if (!ok && out->sole) (void)rescue(write, context, out->path, error, err);
  if (!ok && !out->sole) (void)refuse(out->path, error, err);
  cs_output_abandon(out);
  return ok;
}

bool cs_output_publish(struct cs_output *out, struct cs_error *err) {
  return give_name(out) || cs_error_set(err, "cannot write %s: %m", out->path);
}

void cs_output_abandon(struct cs_output *out) {
  if (out->file != NULL) (void)fclose(out->file);
  if (out->temp != NULL) (void)unlink(out->temp);
  if (out->unnamed > 0) (void)close(out->unnamed);
  free(out->temp);
  free(out->path);
  memset(out, 0, sizeof *out);
}
