// SPDX-License-Identifier: MIT
// The command's side of looks from outside: the observer's start, its records, its end. Invariants:
// the recording never waits for the observer; an observer is a child that dies with this process,
// and is waited for by its own id. One thread. Signal-safe: no.
#include "session/looks.h"

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
static void give_up(const struct cs_looks *looks, struct cs_recording *rec, struct cs_recfile *file,
                    const char *why) {
  if (looks->run != cs_looks_run) return;
  struct {
    struct cs_wire_record head;
    struct cs_wire_looks looks;
    uint16_t len;
    char why[190];
  } r = {.head = {sizeof r, CS_WIRE_LOOKS, 0}, .looks = rec->looks};
  _Static_assert(sizeof r % 8 == 0, "records are padded");
  r.looks.ended = 1;
  r.len = (uint16_t)strnlen(why, sizeof r.why);
  memcpy(r.why, why, r.len);
  cs_recording_add(rec, &r.head);
  cs_recfile_add(file, rec, &r.head);
}

void cs_looks_start(struct cs_looks *looks, pid_t pid, struct cs_recording *rec,
                    struct cs_recfile *file) {
  int ends[2];
  pid_t command = getpid();
  looks->started = true;
  if (pipe2(ends, O_CLOEXEC) != 0) {
    give_up(looks, rec, file, "there is no descriptor for a pipe to the observing process");
    return;
  }
  looks->observer = fork();
  if (looks->observer == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close(ends[0]);
    if (getppid() == command) looks->run(ends[1], pid, &looks->ask);
    _exit(0);
  }
  (void)close(ends[1]);
  looks->from = ends[0];
  (void)fcntl(looks->from, F_SETFL, O_NONBLOCK);
  if (looks->observer > 0) return;
  looks->observer = 0;
  give_up(looks, rec, file, "no process could be started for the looks");
}

static void take_place(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_looks_place place;
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
  if (r->kind == CS_LOOKS_PLACE) {
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
    cs_pool_waits_look(rec, starved);
    return;
  }
  cs_recording_add(rec, r);
  cs_recfile_add(file, rec, r);
}

static void take_records(struct cs_looks *looks, uint64_t began_ns, struct cs_recording *rec,
                         struct cs_recfile *file) {
  size_t at = 0;
  while (looks->used - at >= sizeof(struct cs_wire_record)) {
    struct cs_wire_record *r = (struct cs_wire_record *)(looks->bytes + at);
    if (r->size < sizeof *r || r->size % 8 != 0 || r->size > MOST_RECORD) looks->used = at;
    if (r->size > looks->used - at) break;
    take_record(r, began_ns, rec, file);
    at += r->size;
  }
  looks->used -= at;
  memmove(looks->bytes, looks->bytes + at, looks->used);
}

void cs_looks_take(struct cs_looks *looks, uint64_t began_ns, struct cs_recording *rec,
                   struct cs_recfile *file) {
  ssize_t got = 1;
  while (looks->observer != 0 && got > 0) {
    if (looks->capacity - looks->used < CHUNK) {
      uint8_t *more = realloc(looks->bytes, looks->capacity + looks->used + CHUNK);
      if (more == NULL) abort();
      looks->capacity += looks->used + CHUNK;
      looks->bytes = more;
    }
    got = read(looks->from, looks->bytes + looks->used, CHUNK);
    if (got > 0) looks->used += (size_t)got;
    take_records(looks, began_ns, rec, file);
  }
  if (looks->observer == 0 || got < 0) return;
  // It has ended: by itself, which it has reported, or it was killed.
  int status;
  bool killed = waitpid(looks->observer, &status, 0) == looks->observer && WIFSIGNALED(status);
  looks->observer = 0;
  (void)close(looks->from);
  if (killed && rec->looks.ended == 0)
    give_up(looks, rec, file, "the observing process was killed");
}

void cs_looks_end(struct cs_looks *looks, uint64_t began_ns, struct cs_recording *rec,
                  struct cs_recfile *file) {
  if (looks->observer == 0) return;
  (void)kill(looks->observer, SIGKILL);
  while (waitpid(looks->observer, NULL, 0) < 0 && errno == EINTR) {
  }
  // Its end of the pipe is closed: what it has written comes, and then the end.
  cs_looks_take(looks, began_ns, rec, file);
}

void cs_looks_close(struct cs_looks *looks) {
  if (looks->observer != 0) {
    (void)kill(looks->observer, SIGKILL);
    (void)waitpid(looks->observer, NULL, 0);
    (void)close(looks->from);
  }
  looks->observer = 0;
  free(looks->bytes);
  looks->bytes = NULL;
}
