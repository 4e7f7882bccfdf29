// SPDX-License-Identifier: MIT
// Reads /proc/PID/maps: which files are mapped executable, and where. This asks the kernel and not
// the dynamic loader, whose lock another thread may hold while it waits for this library.
// Invariant: a candidate's strings live as long as the text that they are part of. One thread at a
// time. Signal-safe: no.
#include "native/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"

enum { FIRST_CAPACITY = 128 << 10 };  // a .NET 10 process has about 500 lines of 90 bytes

static int open_proc(int pid, const char *name, int flags) {
  char path[64];
  if (pid == 0)
    (void)snprintf(path, sizeof path, "/proc/self/%s", name);
  else
    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  return open(path, flags | O_CLOEXEC);
}

static bool grow_text(struct cs_maps *maps) {
  size_t capacity = maps->text_capacity != 0 ? maps->text_capacity * 2 : FIRST_CAPACITY;
  char *text = realloc(maps->text, capacity);
  if (text == NULL) return false;
  maps->text = text;
  maps->text_capacity = capacity;
  return true;
}

static bool read_text(struct cs_maps *maps, int fd, struct cs_error *err) {
  size_t len = 0;
  for (;;) {
    if (len + 1 >= maps->text_capacity && !grow_text(maps))
      return cs_error_set(err, "out of memory for the list of mappings");
    ssize_t got = read(fd, maps->text + len, maps->text_capacity - len - 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cs_error_set(err, "cannot read the maps: %s", strerrorname_np(errno));
    if (got == 0) break;
    len += (size_t)got;
  }
  maps->text[len] = '\0';
  return true;
}

// begin-end perms offset major:minor inode    path
static bool parse_line(char *text, struct cs_mapping *line) {
  char *at = text;
  line->begin = strtoull(at, &at, 16);
  if (*at++ != '-') return false;
  line->end = strtoull(at, &at, 16);
  if (*at++ != ' ' || strnlen(at, 5) < 5) return false;
  line->readable = at[0] == 'r';
  line->writable = at[1] == 'w';
  line->executable = at[2] == 'x';
  at += 5;
  line->offset = strtoull(at, &at, 16);
  uint64_t major = strtoull(at, &at, 16);
  if (*at++ != ':') return false;
  line->device = (uint32_t)(major << 20 | strtoull(at, &at, 16));
  line->inode = strtoull(at, &at, 10);
  line->path = at + strspn(at, " ");
  return line->begin < line->end;
}

// Deleted files are included, since a library that an update has replaced is still running. What is
// not ELF (the runtime's double-mapped code heaps are a deleted memfd) is recognised later, by its
// first bytes.
static bool is_image(const struct cs_mapping *line) {
  if (strcmp(line->path, "[vdso]") == 0) return true;
  return line->path[0] == '/' && line->inode != 0 &&
         strncmp(line->path, "/memfd:doublemapper", 19) != 0;
}

static bool add(struct cs_maps *maps, const struct cs_mapping *line, uint64_t base) {
  struct cs_candidate *last = maps->count != 0 ? &maps->candidate[maps->count - 1] : NULL;
  if (last != NULL && last->end == line->begin && last->base == base) {
    last->end = line->end;
    return true;
  }
  struct cs_candidate *all =
      cs_grow_or_not(maps->candidate, maps->count, &maps->capacity, sizeof *all);
  if (all == NULL) return false;
  maps->candidate = all;
  maps->candidate[maps->count++] = (struct cs_candidate){
      .begin = line->begin,
      .end = line->end,
      .offset = line->offset,
      .base = base,
      .inode = line->inode,
      .device = line->device,
      .path = line->path,
  };
  return true;
}

static bool read_maps(struct cs_maps *maps, int pid, struct cs_error *err) {
  int fd = open_proc(pid, "maps", O_RDONLY);
  maps->count = 0;
  if (fd < 0)
    return cs_error_set(err, "cannot open /proc/%d/maps (0: self): %s", pid,
                        strerrorname_np(errno));
  bool ok = read_text(maps, fd, err);
  (void)close(fd);
  return ok;
}

bool cs_maps_each(struct cs_maps *maps, int pid,
                  bool (*visit)(const struct cs_mapping *mapping, void *arg), void *arg,
                  struct cs_error *err) {
  if (!read_maps(maps, pid, err)) return false;
  for (char *at = maps->text, *next; *at != '\0'; at = next) {
    struct cs_mapping line;
    next = strchr(at, '\n');
    if (next == NULL) break;  // an incomplete line is ignored
    *next++ = '\0';
    if (!parse_line(at, &line)) return cs_error_set(err, "cannot parse a line of the maps");
    if (!visit(&line, arg)) break;
  }
  return true;
}

struct collection {
  struct cs_maps *maps;
  struct cs_mapping first;  // the last mapping of the start of any file
  bool no_memory;
};

static bool collect(const struct cs_mapping *line, void *arg) {
  struct collection *c = arg;
  if (!is_image(line)) return true;
  if (line->offset == 0) c->first = *line;
  const struct cs_mapping *first = &c->first;
  bool same = first->inode == line->inode && first->device == line->device && first->path != NULL &&
              strcmp(first->path, line->path) == 0;
  if (!line->executable || !same) return true;
  c->no_memory = !add(c->maps, line, first->begin);
  return !c->no_memory;
}

bool cs_maps_read(struct cs_maps *maps, int pid, struct cs_error *err) {
  struct collection collection = {.maps = maps};
  if (!cs_maps_each(maps, pid, collect, &collection, err)) return false;
  return !collection.no_memory || cs_error_set(err, "out of memory for the mappings");
}

bool cs_path_is(const char *path, const char *name) {
  static const char deleted[] = " (deleted)";
  const char *slash = strrchr(path, '/');
  size_t len = strlen(name);
  if (slash == NULL || strncmp(slash + 1, name, len) != 0) return false;
  return slash[1 + len] == '\0' || strcmp(slash + 1 + len, deleted) == 0;
}

void cs_maps_free(struct cs_maps *maps) {
  free(maps->text);
  free(maps->candidate);
  *maps = (struct cs_maps){0};
}

void cs_process_memory_init(struct cs_process_memory *process, int pid) {
  *process = (struct cs_process_memory){.pid = pid};
}

void cs_process_memory_close(struct cs_process_memory *process) {
  cs_own_file_close(&process->mem);
}

static bool read_mem_file(int fd, uint64_t address, uint8_t *dst, size_t len) {
  while (len != 0) {
    ssize_t got = pread(fd, dst, len, (off_t)address);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    dst += got;
    address += (uint64_t)got;
    len -= (size_t)got;
  }
  return true;
}

bool cs_process_memory_read(struct cs_process_memory *process, uint64_t address, void *dst,
                            size_t len) {
  int fd = cs_own_file_fd(&process->mem);
  if (fd >= 0) return read_mem_file(fd, address, dst, len);
  struct iovec local = {.iov_base = dst, .iov_len = len};
  struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = len};
  int pid = process->pid != 0 ? process->pid : getpid();
  ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
  if (got >= 0 || (errno != ENOSYS && errno != EPERM)) return got == (ssize_t)len;
  // Strict seccomp profiles of containers refuse the call; reads of the file are guarded just as
  // well.
  const char *why = strerrorname_np(errno);
  if (cs_own_file_keep(&process->mem, open_proc(process->pid, "mem", O_RDONLY)))
    fd = cs_own_file_fd(&process->mem);
  cs_log("process_vm_readv is refused (%s): images are read through /proc/%d/mem%s", why, pid,
         fd < 0 ? ", which cannot be opened either" : "");
  return fd >= 0 && read_mem_file(fd, address, dst, len);
}
