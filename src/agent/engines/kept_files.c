// SPDX-License-Identifier: MIT
// A table of places for threads whose files stay open, by the thread's id. If two threads have the
// same place, it goes to the one whose files are read more often; the other thread's files are
// opened for each read.
//
// Invariant: an open file belongs to its thread, not to the tid: after the thread's end it cannot
// be read, even if the tid is reused. The agent's thread only. Signal-safe: no.
#include "engines/kept_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
  PLACES = 256,
  SHARE = 8,        // they take at most this part of the descriptors that there may be
  FIRST_FD = 4096,  // low ones are left to the program, which may use select()
  MOST_WORTH = 8,
};

struct kept_file {
  int fd;  // and one more; 0: it is not open
  dev_t device;
  ino_t number;
};
static struct place {
  uint32_t id, worth;
  struct kept_file files[CS_KEPT_KINDS];
} own, places[PLACES];
static uint32_t count;  // of places that may be used
static int first_fd;

// ---- A file ----

static int open_file(uint32_t tid, enum cs_kept kind) {
  static const char *const names[] = {[CS_KEPT_STAT] = "stat", [CS_KEPT_SCHED] = "sched"};
  char path[64];
  (void)snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, names[kind]);
  return open(path, O_RDONLY | O_CLOEXEC);
}

static bool read_text(int fd, char *text, size_t cap) {
  ssize_t size = pread(fd, text, cap - 1, 0);
  text[size > 0 ? size : 0] = '\0';
  return size > 0;
}

static bool read_once(uint32_t tid, enum cs_kept kind, char *text, size_t cap) {
  int fd = open_file(tid, kind);
  if (fd < 0) return false;
  bool read = read_text(fd, text, cap);
  (void)close(fd);
  return read;
}

static bool is_ours(const struct kept_file *file) {
  struct stat now;
  return file->fd != 0 && fstat(file->fd - 1, &now) == 0 && file->device == now.st_dev &&
         file->number == now.st_ino;
}

static void close_file(struct kept_file *file) {
  if (is_ours(file)) (void)close(file->fd - 1);
  file->fd = 0;
}

static bool keep_file(struct kept_file *file, uint32_t tid, enum cs_kept kind) {
  struct stat status;
  int low = open_file(tid, kind);
  if (low < 0) return false;
  int fd = fcntl(low, F_DUPFD_CLOEXEC, first_fd);
  (void)close(low);
  if (fd < 0 || fstat(fd, &status) != 0) {
    if (fd >= 0) (void)close(fd);
    return false;
  }
  *file = (struct kept_file){fd + 1, status.st_dev, status.st_ino};
  return true;
}

// ---- Places ----

static void empty_place(struct place *place) {
  for (int kind = 0; kind < CS_KEPT_KINDS; kind++) close_file(&place->files[kind]);
  place->id = place->worth = 0;
}

// Returns the thread's place, or NULL if it has none.
static struct place *place_of(uint32_t id) {
  if (count == 0) return NULL;
  if (id == 0) return &own;
  struct place *place = &places[id % count];
  if (place->id == id) {
    if (place->worth < MOST_WORTH) place->worth++;
    return place;
  }
  if (place->worth > 0) {
    place->worth--;
    return NULL;
  }
  empty_place(place);
  place->id = id;
  return place;
}

bool cs_kept_read(uint32_t id, uint32_t tid, enum cs_kept kind, char *text, size_t cap) {
  struct place *place = place_of(id);
  struct kept_file *file = place != NULL ? &place->files[kind] : NULL;
  if (file == NULL || (file->fd == 0 && !keep_file(file, tid, kind)))
    return read_once(tid, kind, text, cap);
  if (is_ours(file) && read_text(file->fd - 1, text, cap)) return true;
  close_file(file);  // the thread has ended, or the program has closed the descriptor
  return read_once(tid, kind, text, cap);
}

bool cs_kept_is_allowed(void) {
  int fd = open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) (void)close(fd);
  return fd >= 0;
}

void cs_kept_begin(void) {
  struct rlimit limit;
  bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
  rlim_t most = known ? limit.rlim_cur / SHARE / CS_KEPT_KINDS : 0;
  count = most < PLACES ? (uint32_t)most : PLACES;
  first_fd = known && limit.rlim_cur / 2 < FIRST_FD ? (int)(limit.rlim_cur / 2) : FIRST_FD;
}

void cs_kept_end(void) {
  for (uint32_t i = 0; i < PLACES; i++) empty_place(&places[i]);
  empty_place(&own);
}
