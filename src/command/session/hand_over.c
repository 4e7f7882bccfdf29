// SPDX-License-Identifier: MIT
// The files that a process loads. Invariant: as long as our library is the same, its copies for a
// process always have the same path: the loader then recognises the library that it has loaded
// before, which never leaves a process. One thread. Signal-safe: no.
#include "session/hand_over.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/path.h"
#include "process/diag.h"
#include "process/proc.h"

static bool hash_of(const char *path, uint64_t *hash) {
  uint8_t piece[16384];
  ssize_t n = -1;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  *hash = CS_HASH_EMPTY;
  while (fd >= 0 && (n = read(fd, piece, sizeof piece)) > 0)
    *hash = cs_hash_more(*hash, piece, (size_t)n);
  if (fd >= 0) (void)close(fd);
  return n == 0;
}

// The user that the process opens files as: the last of four ids.
static bool number_of(const char *status, const char *name, unsigned *out) {
  const char *line = strstr(status, name);
  return line != NULL && sscanf(line + strlen(name), "%*u %*u %*u %u", out) == 1;
}

static bool user_of(pid_t pid, struct cs_copy_request *request) {
  size_t size = 0;
  unsigned uid = 0, gid = 0;
  char *status = cs_proc_read(pid, "status", &size);
  bool known =
      status != NULL && number_of(status, "\nUid:", &uid) && number_of(status, "\nGid:", &gid);
  free(status);
  request->uid = uid;
  request->gid = gid;
  return known;
}

static bool wanted(void *session) {
  return !cs_session_is_interrupted(session);
}

static bool make_copies(struct cs_copy_request *g, pid_t pid, char **temp, struct cs_copies *out,
                        struct cs_error *err) {
  uint64_t hash;
  unsigned long long started = 0;
  struct cs_error why = {""};
  size_t count = 0;
  if (!cs_copies_check_limit(g, err)) return false;
  *temp = cs_diag_folder(pid);
  if (!user_of(pid, g) || !cs_proc_start_time(pid, &started))
    return cs_error_set(err, "process %d has ended", (int)pid);
  if (!hash_of(g->files[0], &hash)) return cs_error_set(err, "cannot read %s: %m", g->files[0]);
  (void)snprintf(g->name, sizeof g->name, "clrsnap-%016" PRIx64 "-%d-%llu", hash, (int)pid,
                 started);
  if (*temp != NULL && (*temp)[0] == '/' && strcmp(*temp, "/tmp") != 0) g->folders[count++] = *temp;
  g->folders[count++] = "/tmp";
  g->folders[count++] = "/var/tmp";
  g->folders[count] = "/dev/shm";
  struct cs_target *target = cs_target_of(pid);
  bool good = cs_copies_make(target, g, out, &why);
  cs_target_free(target);
  if (!good && cs_proc_has_ended(pid)) return cs_error_set(err, "process %d has ended", (int)pid);
  return good ||
         cs_error_set(err,
                      "process %d cannot open %s, and no directory accepts a copy (%s): make "
                      "the file visible there, for example by docker run -v",
                      (int)pid, g->files[0], why.text);
}

static char *path_in(const struct cs_copies *copies, const char *name, const char *file) {
  char *path = NULL;
  if (file == NULL) return NULL;
  if (copies->folder == NULL) return strdup(file);
  return asprintf(&path, "%s/%s/%s", copies->folder, name, cs_file_of(file)) < 0 ? NULL : path;
}

bool cs_hand_over(pid_t pid, const char *agent, const char *hook, struct cs_session *session,
                  struct cs_handed *out, struct cs_error *err) {
  char *temp = NULL;
  struct cs_copy_request g = {
      .files = {agent, hook}, .wanted = session != NULL ? wanted : NULL, .context = session};
  *out = (struct cs_handed){0};
  bool good = make_copies(&g, pid, &temp, &out->copies, err);
  if (good) {
    out->agent = path_in(&out->copies, g.name, agent);
    out->hook = path_in(&out->copies, g.name, hook);
    if (out->agent == NULL || (hook != NULL && out->hook == NULL))
      good = cs_error_set(err, "out of memory");
  }
  free(temp);
  if (!good) cs_copies_remove(&out->copies);
  return good;
}

void cs_handed_free(struct cs_handed *handed) {
  cs_copies_remove(&handed->copies);
  free(handed->agent);
  free(handed->hook);
  *handed = (struct cs_handed){0};
}

bool cs_hand_over_check(pid_t pid, const char *agent, char **folder, struct cs_error *err) {
  char *temp = NULL;
  struct cs_copies copies = {0};
  struct cs_copy_request g = {.files = {agent}, .dry_run = true};
  bool good = make_copies(&g, pid, &temp, &copies, err);
  *folder = good && copies.folder != NULL ? strdup(copies.folder) : NULL;
  free(temp);
  return good;
}
