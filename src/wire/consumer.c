// SPDX-License-Identifier: MIT
// The consumer's end of the ring. Invariant: no byte of the shared memory is read twice with a
// decision in between, so a producer that scribbles can spoil what it says but not us. `tail` only
// ever moves to a place that the producer published as `head`, or record by record below it.
// One thread. Signal-safe: no.
#include "wire/consumer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_TRIES 16  // 64 random bits: a second try means that somebody guesses our names

static int make_file(struct cs_consumer *c, pid_t target, struct cs_error *err) {
  char root[32] = "";
  if (target != 0) (void)snprintf(root, sizeof root, "/proc/%d/root", (int)target);
  for (int i = 0; i < NAME_TRIES; i++) {
    uint64_t name;
    if (getrandom(&name, sizeof name, 0) != (ssize_t)sizeof name) break;
    (void)snprintf(c->path, sizeof c->path, "/dev/shm/clrsnap-%016llx", (unsigned long long)name);
    (void)snprintf(c->file, sizeof c->file, "%s%s", root, c->path);
    int fd = open(c->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
      c->linked = true;
      return fd;
    }
    if (errno != EEXIST) break;
  }
  (void)cs_error_set(err, "cannot make the shared memory %s: %s", c->file, strerror(errno));
  return -1;
}

// The agent takes no other user's file: root records a process of somebody else's by one of theirs.
static bool give_file(int fd, pid_t target, struct cs_error *err) {
  char path[32];
  struct stat st;
  if (target == 0 || geteuid() != 0) return true;
  (void)snprintf(path, sizeof path, "/proc/%d", (int)target);
  if (stat(path, &st) == 0 && (st.st_uid == 0 || fchown(fd, st.st_uid, st.st_gid) == 0))
    return true;
  return cs_error_set(err, "cannot give the shared memory to the user of process %d: %m",
                      (int)target);
}

// Of this very open file, not of the process: it goes when the last copy of the descriptor goes.
static bool lock_file(int fd, struct cs_error *err) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return fcntl(fd, F_OFD_SETLK, &lock) == 0 ||
         cs_error_set(err, "cannot lock the shared memory: %m");
}

// The umask may have taken away our own access; nobody else ever gets any.
static bool size_file(struct cs_consumer *c, int fd, size_t bytes, struct cs_error *err) {
  if (fchmod(fd, 0600) != 0) return cs_error_set(err, "cannot protect %s: %m", c->path);
  // Reserved now: a full /dev/shm must be our error, not the program's SIGBUS later.
  int failed = posix_fallocate(fd, 0, (off_t)bytes);
  if (failed == 0) return true;
  return cs_error_set(err, "no room for %zu KiB of shared memory in /dev/shm: %s; use --buffer",
                      bytes / 1024, strerror(failed));
}

void cs_consumer_tell_cpu(struct cs_consumer *c) {
  struct timespec t;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return;
  cs_store_release(&c->header->command_cpu_ns,
                   (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
}

static void fill_header(struct cs_consumer *c, const struct cs_consumer_opts *opts) {
  struct cs_wire_header *h = c->header;
  h->version = CS_WIRE_VERSION;
  h->header_bytes = CS_WIRE_HEADER_BYTES;
  h->capacity = opts->capacity;
  h->modes = opts->modes;
  h->hz = opts->hz;
  h->max_depth = opts->max_depth;
  h->lines = (opts->lines ? CS_WIRE_LINES_IL : 0) | (opts->inlined ? CS_WIRE_LINES_INLINED : 0);
  h->async_callers = opts->async_callers ? 1 : 0;
  h->budget_ppm = opts->budget_ppm;
  h->labels = opts->labels;
  h->engine = opts->engine;
  h->command_pid = (uint32_t)getpid();
  cs_consumer_tell_cpu(c);
  cs_store_release(&h->magic, CS_WIRE_MAGIC);
}

bool cs_consumer_create(struct cs_consumer *c, const struct cs_consumer_opts *opts,
                        struct cs_error *err) {
  *c = (struct cs_consumer){.fd = -1};
  size_t bytes = CS_WIRE_HEADER_BYTES + opts->capacity;
  int fd = make_file(c, opts->target, err);
  if (fd < 0) return false;
  void *map = MAP_FAILED;
  if (size_file(c, fd, bytes, err) && lock_file(fd, err) && give_file(fd, opts->target, err)) {
    map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) (void)cs_error_set(err, "cannot map %s: %m", c->path);
  }
  c->record = map == MAP_FAILED ? NULL : malloc(opts->capacity);
  if (c->record == NULL) {
    if (map != MAP_FAILED) (void)munmap(map, bytes);
    cs_consumer_unlink(c);
    (void)close(fd);
    return map == MAP_FAILED ? false : cs_error_set(err, "out of memory for the ring's copy");
  }
  c->fd = fd;
  c->header = map;
  c->ring = (const uint8_t *)map + CS_WIRE_HEADER_BYTES;
  c->capacity = opts->capacity;
  fill_header(c, opts);
  return true;
}

bool cs_consumer_take_name(struct cs_consumer *c, struct cs_consumer *from, struct cs_error *err) {
  if (rename(c->file, from->file) != 0)
    return cs_error_set(err, "cannot rename %s: %s", c->file, strerror(errno));
  memcpy(c->path, from->path, sizeof c->path);
  memcpy(c->file, from->file, sizeof c->file);
  from->linked = false;
  return true;
}

void cs_consumer_unlink(struct cs_consumer *c) {
  if (c->linked) (void)unlink(c->file);
  c->linked = false;
}

void cs_consumer_destroy(struct cs_consumer *c) {
  cs_consumer_unlink(c);
  if (c->header != NULL) {
    (void)munmap(c->header, CS_WIRE_HEADER_BYTES + c->capacity);
    (void)close(c->fd);
  }
  free(c->record);
  *c = (struct cs_consumer){.fd = -1};
}

static void advance(struct cs_consumer *c, uint64_t to) {
  c->tail = to;
  cs_store_release(&c->header->tail, to);
}

// The framing is lost, and only `head` is known to be a record's border: go on from there.
static void skip_to_head(struct cs_consumer *c, uint64_t head) {
  c->broken_records++;
  c->broken_bytes += head - c->tail;
  advance(c, head);
}

const struct cs_wire_record *cs_consumer_next(struct cs_consumer *c) {
  for (;;) {
    uint64_t head = cs_load_acquire(&c->header->head);
    uint64_t waiting = head - c->tail;
    if (waiting == 0) return NULL;
    uint64_t at = c->tail & (c->capacity - 1);
    uint64_t room = c->capacity - at;  // up to the ring's end: records do not wrap
    struct cs_wire_record r;
    if (waiting > c->capacity || waiting % 8 != 0) {
      skip_to_head(c, head & ~7ull);  // not a head that an agent publishes; nothing to take now
      return NULL;
    }
    memcpy(&r, c->ring + at, sizeof r);
    if (r.size < sizeof r || r.size % 8 != 0 || r.size > waiting || r.size > room) {
      skip_to_head(c, head);
      continue;
    }
    memcpy(c->record, c->ring + at, r.size);
    memcpy(c->record, &r, sizeof r);  // the head that was checked, not one written meanwhile
    advance(c, c->tail + r.size);
    if (r.kind != CS_WIRE_PAD) return (const struct cs_wire_record *)(const void *)c->record;
  }
}

uint32_t cs_consumer_agent_pid(const struct cs_consumer *c) {
  return cs_load_acquire(&c->header->agent_pid);
}

enum cs_wire_agent_state cs_consumer_agent_state(const struct cs_consumer *c) {
  uint32_t state = cs_load_acquire(&c->header->agent_state);
  return state <= CS_WIRE_AGENT_REFUSED ? (enum cs_wire_agent_state)state : CS_WIRE_AGENT_NONE;
}

void cs_consumer_message(const struct cs_consumer *c, char *out, size_t cap) {
  char text[sizeof c->header->message];
  memcpy(text, c->header->message, sizeof text);
  size_t len = strnlen(text, sizeof text);
  if (len >= cap) len = cap - 1;
  for (size_t i = 0; i < len; i++) out[i] = (unsigned char)text[i] < 0x20 ? ' ' : text[i];
  out[len] = '\0';
}

void cs_consumer_stop(struct cs_consumer *c) {
  cs_store_release(&c->header->stop, 1u);
}

bool cs_consumer_has_label_hooks(const struct cs_consumer *c) {
  return cs_load_acquire(&c->header->label_hooks) != 0;
}

uint64_t cs_consumer_lost(const struct cs_consumer *c) {
  return cs_load_relaxed(&c->header->lost_records);
}
