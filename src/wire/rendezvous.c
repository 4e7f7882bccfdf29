// SPDX-License-Identifier: MIT
// How the command and the agent set up their shared memory. Invariant: the memory has no name in
// any file system, so a process that dies leaves nothing behind, and it is sealed, so neither
// process can shrink it. One thread. Signal-safe: no.
//
// For a program that is started, the command makes the memory, and exposes it as one of its own
// descriptors: /proc/COMMAND/fd/N. dup3(2) atomically replaces it there by another one. For an
// attach, the process makes the memory, which works in any namespaces and as any user. The process
// is not trusted: the command looks for the memory among its descriptors, and checks it.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sealed.h"
#include "wire/consumer.h"

static void fill_header(struct cs_wire_header *h, const struct cs_consumer_opts *opts) {
  *h = (struct cs_wire_header){
      .version = CS_WIRE_VERSION,
      .header_bytes = CS_WIRE_HEADER_BYTES,
      .capacity = opts->capacity,
      .modes = opts->modes & CS_WIRE_AGENT_MODES,
      .hz = opts->hz,
      .max_depth = opts->max_depth,
      .lines = (opts->lines ? CS_WIRE_LINES_IL : 0) | (opts->inlined ? CS_WIRE_LINES_INLINED : 0),
      .async_callers = opts->async_callers ? 1 : 0,
      .budget_ppm = opts->budget_ppm,
      .walk_limit_us = opts->walk_limit_us,
      .event_rate = opts->event_rate,
      .alloc_interval = opts->alloc_interval,
      .labels = opts->labels,
      .engine = opts->engine,
      .kernel = opts->kernel,
      .event = opts->event,
      .event_period = opts->event_period,
      .command_pid = (uint32_t)getpid(),
      .magic = CS_WIRE_MAGIC,
  };
}

// A lock of the open file, not of the process: it ends with the last copy of the descriptor.
static bool lock_file(int fd, struct cs_error *err) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return fcntl(fd, F_OFD_SETLK, &lock) == 0 ||
         cs_error_set(err, "cannot lock the shared memory: %m");
}

// Reserves all memory now, charged to the command: if the machine or container has none left, that
// must be an error of the command, not the end of the program.
static bool reserve(int fd, size_t bytes, struct cs_error *err) {
  return fallocate(fd, 0, 0, (off_t)bytes) == 0 ||
         cs_error_set(err, "no room for %zu KiB of shared memory: %m; use --buffer", bytes / 1024);
}

// Takes ownership of the descriptor, or closes it.
static bool adopt(struct cs_consumer *c, int fd, uint64_t capacity,
                  const struct cs_consumer_opts *opts, struct cs_error *err) {
  size_t bytes = CS_WIRE_HEADER_BYTES + capacity;
  void *map = MAP_FAILED;
  if (reserve(fd, bytes, err)) {
    map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) (void)cs_error_set(err, "cannot map the shared memory: %m");
  }
  c->record = map == MAP_FAILED ? NULL : malloc(capacity != 0 ? capacity : 1);
  if (map != MAP_FAILED && c->record == NULL) (void)cs_error_set(err, "out of memory");
  if (c->record != NULL && opts != NULL) fill_header(map, opts);
  // The lock comes last, because it shows a waiting agent that everything is ready.
  if (c->record == NULL || !lock_file(fd, err)) {
    if (map != MAP_FAILED) (void)munmap(map, bytes);
    free(c->record);
    c->record = NULL;
    (void)close(fd);
    return false;
  }
  c->fd = fd;
  c->header = map;
  c->ring = (const uint8_t *)map + CS_WIRE_HEADER_BYTES;
  c->capacity = capacity;
  cs_consumer_publish_cpu(c);
  return true;
}

// ---- For a program that is started ----

// The process id is read from /proc, which may be mounted for another PID namespace.
static bool expose(struct cs_consumer *c, struct cs_error *err) {
  char self[16];
  ssize_t length = readlink("/proc/self", self, sizeof self - 1);
  if (length <= 0) return cs_error_set(err, "cannot read /proc/self: %m");
  self[length] = '\0';
  c->shown = fcntl(c->fd, F_DUPFD_CLOEXEC, 3);
  if (c->shown < 0) return cs_error_set(err, "no descriptor for the shared memory: %m");
  (void)snprintf(c->path, sizeof c->path, "/proc/%s/fd/%d", self, c->shown);
  return true;
}

bool cs_consumer_create(struct cs_consumer *c, const struct cs_consumer_opts *opts,
                        struct cs_error *err) {
  *c = (struct cs_consumer){.fd = -1, .shown = -1};
  int fd = cs_sealed_make("clrsnap", CS_WIRE_HEADER_BYTES + opts->capacity, err);
  if (fd < 0 || !adopt(c, fd, opts->capacity, opts, err)) return false;
  if (expose(c, err)) return true;
  cs_consumer_destroy(c);
  return false;
}

bool cs_consumer_take_place(struct cs_consumer *c, struct cs_consumer *from, struct cs_error *err) {
  if (dup3(c->fd, from->shown, O_CLOEXEC) < 0)
    return cs_error_set(err, "cannot expose the shared memory as %s: %m", from->path);
  cs_consumer_hide(c);
  memcpy(c->path, from->path, sizeof c->path);
  c->shown = from->shown;
  from->shown = -1;
  return true;
}

// ---- By attach ----

bool cs_consumer_invite(struct cs_consumer *c, const struct cs_consumer_opts *opts,
                        struct cs_wire_invitation *invitation, struct cs_error *err) {
  uint64_t number;
  *c = (struct cs_consumer){.fd = -1, .shown = -1};
  *invitation = (struct cs_wire_invitation){0};
  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
    return cs_error_set(err, "cannot make a random number: %m");
  struct stat ns;
  fill_header(&invitation->header, opts);
  invitation->pid_namespace = stat("/proc/self/ns/pid", &ns) == 0 ? ns.st_ino : 0;
  (void)snprintf(invitation->name, sizeof invitation->name, "clrsnap-%016llx",
                 (unsigned long long)number);
  return true;
}

// Returns the process's descriptor of the file with this name, or -1 if there is none (yet).
static int find_descriptor(DIR *folder, const char *name) {
  char wanted[96], link[96];
  int length = snprintf(wanted, sizeof wanted, CS_SEALED_LINK_BEGIN "%s" CS_SEALED_LINK_END, name);
  const struct dirent *entry;
  while ((entry = readdir(folder)) != NULL) {
    ssize_t got = readlinkat(dirfd(folder), entry->d_name, link, sizeof link);
    if (got == length && memcmp(link, wanted, (size_t)got) == 0) return atoi(entry->d_name);
  }
  return -1;
}

// Finds the owner of the files that the process makes: the last number of "Uid: real effective
// saved files".
static bool owner_of(pid_t pid, uid_t *owner) {
  char path[32], line[256];
  bool found = false;
  (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  FILE *in = fopen(path, "re");
  while (in != NULL && !found && fgets(line, sizeof line, in) != NULL)
    found = sscanf(line, "Uid: %*u %*u %*u %u", owner) == 1;
  if (in != NULL) (void)fclose(in);
  return found;
}

// Adopts the header and the ring, or only the header, in which the agent can say why there is no
// ring. The header is complete once its first word is set.
static bool adopt_from_process(struct cs_consumer *c, int fd, size_t bytes, uint64_t wanted,
                               struct cs_error *err) {
  struct cs_wire_header head = {0};
  bool whole = bytes == CS_WIRE_HEADER_BYTES + wanted;
  if (!whole && bytes != CS_WIRE_HEADER_BYTES)
    (void)cs_error_set(err, "the process has made shared memory of %zu bytes", bytes);
  else if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || head.magic != CS_WIRE_MAGIC)
    (void)cs_error_set(err, "the shared memory that the process has made is not filled in");
  else if (head.version != CS_WIRE_VERSION)
    (void)cs_error_set(err,
                       "the library in the process speaks version %u of the recording's format, "
                       "this command %u: use the two of one release",
                       head.version, CS_WIRE_VERSION);
  else
    return adopt(c, fd, whole ? wanted : 0, NULL, err);
  (void)close(fd);
  return false;
}

bool cs_consumer_take(struct cs_consumer *c, pid_t pid, const struct cs_wire_invitation *invitation,
                      struct cs_error *err) {
  char path[64];
  uid_t owner;
  size_t bytes;
  (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
  DIR *folder = opendir(path);
  if (folder == NULL || !owner_of(pid, &owner)) {
    if (folder != NULL) (void)closedir(folder);
    return cs_error_set(err, "cannot list the files of process %d: %m", (int)pid);
  }
  int number = find_descriptor(folder, invitation->name);
  (void)closedir(folder);
  if (number < 0) return cs_error_set(err, "process %d has made no shared memory", (int)pid);
  (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, number);
  int fd = cs_sealed_open(path, owner, &bytes, err);
  return fd >= 0 && adopt_from_process(c, fd, bytes, invitation->header.capacity, err);
}
