// SPDX-License-Identifier: MIT
// Files for a process that cannot see ours. Invariants: a child does everything in the process's
// root; it has become the process's user, has no supplementary groups, and no descriptors but those
// it needs; it follows paths in that root only, and no link in the last component; it makes only
// new files, in a directory that is new or that user's own; it removes them as soon as its lifeline
// is closed, which happens, too, when the command ends. The child allocates nothing. One thread.
// Signal-safe: no.
#include "process/copies.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"

enum { PIECE = 32768, SLICE_MS = 20, PATIENCE_MS = 10000, SEEN = -1, NOWHERE = -2 };

struct report {
  int folder;  // index into the directories, SEEN or NOWHERE
  char why[200];
};

struct keeper {
  const struct cs_target *target;
  const struct cs_copy_request *request;
  int source[CS_COPY_FILES];  // our files
  int parent, folder;         // the directory, and the one that it is made in
  bool made;
};

__attribute__((format(printf, 2, 3))) static bool because(struct report *report, const char *format,
                                                          ...) {
  va_list args;
  va_start(args, format);
  if (report->why[0] == '\0') (void)vsnprintf(report->why, sizeof report->why, format, args);
  va_end(args);
  return false;
}

// ---- In the child ----

static bool become(const struct cs_copy_request *request) {
  if (geteuid() == request->uid && getegid() == request->gid) return true;
  return setgroups(0, NULL) == 0 && setresgid(request->gid, request->gid, request->gid) == 0 &&
         setresuid(request->uid, request->uid, request->uid) == 0;
}

static ssize_t read_piece(int fd, char piece[PIECE], off_t at) {
  ssize_t n;
  do n = pread(fd, piece, PIECE, at);
  while (n < 0 && errno == EINTR);
  return n;
}

static bool same_content(int a, int b) {
  static char x[PIECE], y[PIECE];
  struct stat s, t;
  if (fstat(a, &s) != 0 || fstat(b, &t) != 0 || s.st_size != t.st_size) return false;
  if (s.st_dev == t.st_dev && s.st_ino == t.st_ino) return true;
  for (off_t at = 0; at < s.st_size;) {
    ssize_t n = read_piece(a, x, at);
    if (n <= 0 || read_piece(b, y, at) != n || memcmp(x, y, (size_t)n) != 0) return false;
    at += n;
  }
  return true;
}

static bool sees_all(const struct keeper *k) {
  for (size_t i = 0; k->request->files[i] != NULL; i++) {
    struct cs_error err;
    int fd = cs_target_open(k->target, k->request->files[i], &err);
    bool same = fd >= 0 && same_content(fd, k->source[i]);
    if (fd >= 0) (void)close(fd);
    if (!same) return false;
  }
  return true;
}

static bool copy(int from, int to, struct report *report) {
  static char piece[PIECE];
  ssize_t n;
  for (off_t at = 0; (n = read_piece(from, piece, at)) > 0; at += n)
    for (ssize_t done = 0, w; done < n; done += w)
      if ((w = write(to, piece + done, (size_t)(n - done))) <= 0)
        return because(report, "%s", strerrordesc_np(w < 0 ? errno : ENOSPC));
  return n == 0 || because(report, "%s", strerrordesc_np(errno));
}

static void take_away(struct keeper *k) {
  for (size_t i = 0; k->folder >= 0 && k->request->files[i] != NULL; i++)
    (void)unlinkat(k->folder, cs_file_of(k->request->files[i]), 0);
  if (k->made) (void)unlinkat(k->parent, k->request->name, AT_REMOVEDIR);
  if (k->folder >= 0) (void)close(k->folder);
  if (k->parent >= 0) (void)close(k->parent);
  k->folder = k->parent = -1;
  k->made = false;
}

// A directory that an earlier command has left behind is used again if it belongs to that user
// alone.
static bool make_folder(struct keeper *k, struct report *report) {
  struct stat st;
  if (mkdirat(k->parent, k->request->name, 0700) != 0 && errno != EEXIST)
    return because(report, "%s", strerrordesc_np(errno));
  k->folder = openat(k->parent, k->request->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (k->folder < 0 || fstat(k->folder, &st) != 0 || st.st_uid != k->request->uid ||
      (st.st_mode & 077) != 0)
    return because(report, "%s is in the way", k->request->name);
  return k->made = true;
}

static bool make_files(struct keeper *k, struct report *report) {
  for (size_t i = 0; k->request->files[i] != NULL; i++) {
    const char *name = cs_file_of(k->request->files[i]);
    (void)unlinkat(k->folder, name, 0);
    int fd = openat(k->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0500);
    if (fd < 0) return because(report, "%s", strerrordesc_np(errno));
    bool whole = copy(k->source[i], fd, report);
    if (close(fd) != 0 || !whole) return because(report, "it could not be written");
  }
  return true;
}

// Opens the directory if the process's user may make executable files in it, and no other user can
// replace them.
static bool open_parent(struct keeper *k, const char *path, struct report *report) {
  struct stat st;
  struct statvfs fs;
  struct cs_error err = {""};
  k->parent = cs_target_open_folder(k->target, path, &err);
  if (k->parent < 0) return because(report, "%s", err.text);
  if (fstat(k->parent, &st) != 0 || fstatvfs(k->parent, &fs) != 0)
    return because(report, "%s", strerrordesc_np(errno));
  if ((fs.f_flag & ST_RDONLY) != 0) return because(report, "it is mounted read-only");
  if ((fs.f_flag & ST_NOEXEC) != 0) return because(report, "it is mounted noexec");
  if ((st.st_mode & 022) != 0 && (st.st_mode & S_ISVTX) == 0)
    return because(report, "others could exchange files in it");
  return faccessat(k->parent, "", W_OK | X_OK, AT_EMPTY_PATH | AT_EACCESS) == 0 ||
         because(report, "%s", strerrordesc_np(errno));
}

static struct report try_all(struct keeper *k) {
  struct report report = {.folder = NOWHERE}, one;
  bool is_user = become(k->request);
  int error = errno;
  if (sees_all(k)) return (struct report){.folder = SEEN};
  if (!is_user) (void)because(&report, "cannot act as its user: %s", strerrordesc_np(error));
  for (int i = 0; is_user && k->request->folders[i] != NULL; i++) {
    one = (struct report){.folder = i};
    if (open_parent(k, k->request->folders[i], &one) &&
        (k->request->dry_run || (make_folder(k, &one) && make_files(k, &one))))
      return one;
    take_away(k);
    size_t used = strlen(report.why);
    int len = snprintf(report.why + used, sizeof report.why - used, "%s%s: %s",
                       used > 0 ? "; " : "", k->request->folders[i], one.why);
    if (len < 0) report.why[used] = '\0';
  }
  return report;
}

static void close_others(const int *keep, size_t count) {
  unsigned from = 3;
  for (;;) {
    unsigned next = ~0u;
    for (size_t i = 0; i < count; i++)
      if (keep[i] >= (int)from && (unsigned)keep[i] < next) next = (unsigned)keep[i];
    if (next > from) (void)close_range(from, next - 1, 0);
    if (next == ~0u) return;
    from = next + 1;
  }
}

__attribute__((noreturn)) static void keep(struct keeper *k, int reports, int lifeline) {
  char none;
  int used[CS_COPY_FILES + 3] = {reports, lifeline, cs_target_root(k->target)};
  for (size_t i = 0; i < CS_COPY_FILES; i++) used[3 + i] = k->source[i];
  close_others(used, CS_COPY_FILES + 3);
  (void)prctl(PR_SET_DUMPABLE, 0);
  struct report report = try_all(k);
  (void)!write(reports, &report, sizeof report);
  (void)close(reports);
  while (read(lifeline, &none, 1) < 0 && errno == EINTR) {
  }
  take_away(k);
  _exit(0);
}

// ---- In the command ----

static bool open_sources(struct keeper *k, struct cs_error *err) {
  for (size_t i = 0; i < CS_COPY_FILES; i++) k->source[i] = -1;
  for (size_t i = 0; i < CS_COPY_FILES && k->request->files[i] != NULL; i++) {
    k->source[i] = open(k->request->files[i], O_RDONLY | O_CLOEXEC);
    if (k->source[i] < 0) return cs_error_set(err, "cannot read %s: %m", k->request->files[i]);
  }
  return true;
}

// Waits for the keeper's report. A keeper that hangs in one of the target's file systems is given
// up.
static bool receive(const struct cs_copy_request *request, int from, struct report *report,
                    pid_t pid, struct cs_error *err) {
  struct pollfd ready = {.fd = from, .events = POLLIN};
  for (int waited = 0; poll(&ready, 1, SLICE_MS) <= 0; waited += SLICE_MS) {
    if (request->wanted != NULL && !request->wanted(request->context))
      return cs_error_set(err, "interrupted before process %d had the agent's library", (int)pid);
    if (waited > PATIENCE_MS)
      return cs_error_set(err, "the file systems of process %d do not respond", (int)pid);
  }
  return read(from, report, sizeof *report) == (ssize_t)sizeof *report ||
         cs_error_set(err, "the helper that copies files for process %d has ended", (int)pid);
}

static bool start(struct keeper *k, int reports[2], int lifeline[2], struct cs_copies *out,
                  struct cs_error *err) {
  sigset_t all, before;
  (void)sigfillset(&all);
  (void)sigprocmask(SIG_BLOCK, &all, &before);
  out->keeper = fork();
  if (out->keeper == 0) {
    (void)close(reports[0]);
    (void)close(lifeline[1]);
    keep(k, reports[1], lifeline[0]);
  }
  int error = errno;
  (void)sigprocmask(SIG_SETMASK, &before, NULL);
  (void)close(reports[1]);
  (void)close(lifeline[0]);
  out->lifeline = lifeline[1];
  if (out->keeper > 0) return true;
  out->keeper = 0;
  (void)close(lifeline[1]);
  return cs_error_set(err, "cannot start a process: %s", strerror(error));
}

// For the target's root, the files and two pipes, as many as will be open at a time.
bool cs_copies_check_limit(const struct cs_copy_request *request, struct cs_error *err) {
  int fds[1 + CS_COPY_FILES + 4], error = 0;
  size_t needed = 1 + 4, count = 0;
  struct rlimit limit;
  for (size_t i = 0; i < CS_COPY_FILES && request->files[i] != NULL; i++) needed++;
  while (count < needed && (fds[count] = open("/", O_PATH | O_CLOEXEC)) >= 0) count++;
  if (count < needed) error = errno;
  while (count > 0) (void)close(fds[--count]);
  if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
    return cs_error_set(err, "this command may open only %llu files: raise ulimit -n",
                        (unsigned long long)limit.rlim_cur);
  return error != ENFILE ||
         cs_error_set(err, "this machine has as many open files as it may: raise fs.file-max");
}

bool cs_copies_make(const struct cs_target *target, const struct cs_copy_request *request,
                    struct cs_copies *out, struct cs_error *err) {
  struct keeper k = {.target = target, .request = request, .parent = -1, .folder = -1};
  struct report report = {.folder = NOWHERE};
  int reports[2] = {-1, -1}, lifeline[2] = {-1, -1};
  *out = (struct cs_copies){.lifeline = -1};
  bool good = open_sources(&k, err);
  if (good && (pipe2(reports, O_CLOEXEC) != 0 || pipe2(lifeline, O_CLOEXEC) != 0))
    good = cs_error_set(err, "cannot make a pipe: %m");
  if (good && start(&k, reports, lifeline, out, err)) {
    good = receive(request, reports[0], &report, cs_target_pid(target), err);
    if (!good) (void)kill(out->keeper, SIGKILL);
    if (good && report.folder == NOWHERE) good = cs_error_set(err, "%s", report.why);
    if (good && report.folder >= 0) out->folder = request->folders[report.folder];
    if (!good || out->folder == NULL || request->dry_run) cs_copies_remove(out);
  } else {
    good = false;
  }
  if (reports[0] >= 0) (void)close(reports[0]);
  for (size_t i = 0; i < CS_COPY_FILES; i++)
    if (k.source[i] >= 0) (void)close(k.source[i]);
  return good;
}

void cs_copies_remove(struct cs_copies *copies) {
  if (copies->keeper == 0) return;
  (void)close(copies->lifeline);
  while (waitpid(copies->keeper, NULL, 0) < 0 && errno == EINTR) {
  }
  copies->keeper = 0;
}
