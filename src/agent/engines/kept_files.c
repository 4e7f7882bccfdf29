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

#include "base/own_file.h"
#include "threads/sleeper.h"

enum {
  PLACES = 256,
  SHARE = 8,  // they take at most 1 / this of RLIMIT_NOFILE
  MOST_WORTH = 8,
};

static struct place {
  uint32_t id, worth;
  struct cs_own_file files[CS_KEPT_KINDS];
} own, places[PLACES];
static uint32_t count;  // of places that may be used

// ---- A file ----

static int open_file(uint32_t tid, enum cs_kept kind) {
  static const char *const names[] = {[CS_KEPT_STAT] = "stat", [CS_KEPT_SCHED] = "sched"};
  return cs_thread_file_open(tid, names[kind]);
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

// ---- Places ----

static void empty_place(struct place *place) {
  for (int kind = 0; kind < CS_KEPT_KINDS; kind++) cs_own_file_close(&place->files[kind]);
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
  struct cs_own_file *file = place != NULL ? &place->files[kind] : NULL;
  if (file == NULL || (file->number == 0 && !cs_own_file_keep(file, open_file(tid, kind))))
    return read_once(tid, kind, text, cap);
  int fd = cs_own_file_fd(file);
  if (fd >= 0 && read_text(fd, text, cap)) return true;
  cs_own_file_close(file);  // the thread has ended, or the program has closed the descriptor
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
}

void cs_kept_end(void) {
  for (uint32_t i = 0; i < PLACES; i++) empty_place(&places[i]);
  empty_place(&own);
}
