// SPDX-License-Identifier: MIT
// The command's side of scans from outside: the observer's start, its records, its end. Invariants:
// the recording never waits for the observer; an observer is a child that dies with this process,
// and is waited for by its own id. One thread. Signal-safe: no.
#include "session/scans.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recording/pool_waits.h"

enum { CHUNK = 1 << 16, MOST_RECORD = 1 << 24 };

// Counts a failure that the observer cannot report itself.
static void give_up(const struct cs_scans *scans, struct cs_recording *rec, struct cs_recfile *file,
                    const char *why) {
  if (scans->run != cs_scans_run) return;
  struct {
    struct cs_wire_record head;
    struct cs_wire_scans scans;
    uint16_t len;
    char why[190];
  } r = {.head = {sizeof r, CS_WIRE_SCANS, 0}, .scans = rec->scans};
  _Static_assert(sizeof r % 8 == 0, "records are padded");
  r.scans.ended = 1;
  r.len = (uint16_t)strnlen(why, sizeof r.why);
  memcpy(r.why, why, r.len);
  cs_recording_add(rec, &r.head);
  cs_recfile_add(file, rec, &r.head);
}

pid_t cs_observer_start(cs_observer_run *run, pid_t pid, const struct cs_scans_ask *ask, int *from,
                        const char **why) {
  int ends[2];
  pid_t command = getpid();
  if (pipe2(ends, O_CLOEXEC) != 0) {
    *why = "there is no descriptor for a pipe to the observing process";
    return 0;
  }
  pid_t observer = fork();
  if (observer == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close(ends[0]);
    if (getppid() == command) run(ends[1], pid, ask);
    _exit(0);
  }
  (void)close(ends[1]);
  *from = ends[0];
  (void)fcntl(*from, F_SETFL, O_NONBLOCK);
  if (observer > 0) return observer;
  (void)close(*from);
  return 0;
}

static void kill_observer(pid_t observer) {
  (void)kill(observer, SIGKILL);
  while (waitpid(observer, NULL, 0) < 0 && errno == EINTR) {
  }
}

void cs_observer_end(pid_t *observer, int from) {
  if (*observer == 0) return;
  kill_observer(*observer);
  (void)close(from);
  *observer = 0;
}

void cs_scans_start(struct cs_scans *scans, pid_t pid, struct cs_recording *rec,
                    struct cs_recfile *file) {
  const char *why = "no process could be started for the scans";
  scans->started = true;
  scans->observer = cs_observer_start(scans->run, pid, &scans->ask, &scans->from, &why);
  if (scans->observer == 0) give_up(scans, rec, file, why);
}

static void take_place(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_scans_place place;
  char file[4096];
  if (r->size < sizeof *r + sizeof place) return;
  memcpy(&place, r + 1, sizeof place);
  if (place.file_size >= sizeof file || place.file_size > r->size - sizeof *r - sizeof place)
    return;
  memcpy(file, (const uint8_t *)(r + 1) + sizeof place, place.file_size);
  file[place.file_size] = '\0';
  cs_recording_set_place(rec, place.frame, cs_recording_text(rec, file), place.line);
}

// Times of the observer are CLOCK_MONOTONIC's; those of a recording begin with it.
static void take_record(struct cs_wire_record *r, uint64_t began_ns, struct cs_recording *rec,
                        struct cs_recfile *file) {
  if (r->kind == CS_SCANS_PLACE) {
    take_place(rec, r);
    return;
  }
  if (r->kind == CS_WIRE_SAMPLE) {
    struct cs_wire_sample *sample = (struct cs_wire_sample *)(r + 1);
    sample->time_ns = sample->time_ns > began_ns ? sample->time_ns - began_ns : 0;
  }
  if (r->kind == CS_WIRE_POOL) {
    struct cs_wire_pool *pool = (struct cs_wire_pool *)(r + 1);
    uint64_t at_ns = pool->most_queued_ns;
    pool->most_queued_ns = at_ns > began_ns ? at_ns - began_ns : 0;
  }
  if (r->kind == CS_WIRE_STARVED) {
    struct cs_wire_starved *starved = (struct cs_wire_starved *)(r + 1);
    starved->time_ns = starved->time_ns > began_ns ? starved->time_ns - began_ns : 0;
    cs_pool_waits_add_scan(rec, starved);
    return;
  }
  cs_recording_add(rec, r);
  cs_recfile_add(file, rec, r);
}

static void take_records(struct cs_scans *scans, uint64_t began_ns, struct cs_recording *rec,
                         struct cs_recfile *file) {
  size_t at = 0;
  while (scans->used - at >= sizeof(struct cs_wire_record)) {
    struct cs_wire_record *r = (struct cs_wire_record *)(scans->bytes + at);
    if (r->size < sizeof *r || r->size % 8 != 0 || r->size > MOST_RECORD) scans->used = at;
    if (r->size > scans->used - at) break;
    take_record(r, began_ns, rec, file);
    at += r->size;
  }
  scans->used -= at;
  memmove(scans->bytes, scans->bytes + at, scans->used);
}

void cs_scans_take(struct cs_scans *scans, uint64_t began_ns, struct cs_recording *rec,
                   struct cs_recfile *file) {
  ssize_t got = 1;
  while (scans->observer != 0 && got > 0) {
    if (scans->capacity - scans->used < CHUNK) {
      uint8_t *more = realloc(scans->bytes, scans->capacity + scans->used + CHUNK);
      if (more == NULL) abort();
      scans->capacity += scans->used + CHUNK;
      scans->bytes = more;
    }
    got = read(scans->from, scans->bytes + scans->used, CHUNK);
    if (got > 0) scans->used += (size_t)got;
    take_records(scans, began_ns, rec, file);
  }
  if (scans->observer == 0 || got < 0) return;
  // It has ended: by itself, which it has reported, or it was killed.
  int status;
  bool killed = waitpid(scans->observer, &status, 0) == scans->observer && WIFSIGNALED(status);
  scans->observer = 0;
  (void)close(scans->from);
  if (killed && rec->scans.ended == 0)
    give_up(scans, rec, file, "the observing process was killed");
}

void cs_scans_end(struct cs_scans *scans, uint64_t began_ns, struct cs_recording *rec,
                  struct cs_recfile *file) {
  if (scans->observer == 0) return;
  kill_observer(scans->observer);
  // Its end of the pipe is closed: what it has written comes, and then the end.
  cs_scans_take(scans, began_ns, rec, file);
}

void cs_scans_close(struct cs_scans *scans) {
  cs_observer_end(&scans->observer, scans->from);
  free(scans->bytes);
  scans->bytes = NULL;
}
