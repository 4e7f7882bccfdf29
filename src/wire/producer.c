// SPDX-License-Identifier: MIT
// The producer's end of the ring. Invariants: `head` moves over whole records only, with release
// order, after their last byte; a record that does not fit is not begun. The consumer is another
// process, so the value that it writes (`tail`) is not trusted: a wrong value spoils its own
// recording, but never memory outside of the ring. One thread. Signal-safe: no.
#include "wire/producer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sealed.h"

enum {
  END_RESERVE = 512,  // kept free for CS_WIRE_END and the padding before it
  MAX_STRING = 65535,
  SILENT_S = 60,  // without a sign of life from the command
};
_Static_assert(sizeof(struct cs_wire_record) + sizeof(struct cs_wire_end) <= END_RESERVE / 2,
               "CS_WIRE_END fits twice: once as padding at the ring's end");

static bool header_fits(const struct cs_wire_header *h, uint64_t file_size, struct cs_error *err) {
  if (cs_load_acquire(&h->magic) != CS_WIRE_MAGIC)
    return cs_error_set(err, "%s names a file that clrsnap has not made", CS_WIRE_ENV);
  if (h->version != CS_WIRE_VERSION)
    return cs_error_set(err,
                        "the clrsnap command speaks version %u of the recording's format, "
                        "this library %u: use the two of one release",
                        h->version, CS_WIRE_VERSION);
  uint64_t capacity = h->capacity;
  if (h->header_bytes != CS_WIRE_HEADER_BYTES || capacity < 4096 ||
      (capacity & (capacity - 1)) != 0 || capacity > file_size - CS_WIRE_HEADER_BYTES)
    return cs_error_set(err, "the shared memory's header does not fit the file");
  return true;
}

// Takes ownership of the descriptor, or closes it.
static bool map_file(struct cs_producer *p, int fd, size_t size, struct cs_error *err) {
  void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) {
    (void)cs_error_set(err, "cannot map %zu KiB of shared memory: %m%s", size / 1024,
                       errno == ENOMEM ? " (is the address space limited, ulimit -v or -d?)" : "");
    (void)close(fd);
    return false;
  }
  (void)cs_own_file_keep(&p->file, fd);
  p->header = map;
  p->ring = (uint8_t *)map + CS_WIRE_HEADER_BYTES;
  p->mapped = size;
  p->capacity = size - CS_WIRE_HEADER_BYTES;
  return true;
}

bool cs_producer_open(struct cs_producer *p, const char *path, struct cs_error *err) {
  size_t size;
  *p = (struct cs_producer){.file = {0}};
  int fd = cs_sealed_open(path, geteuid(), &size, err);
  if (fd < 0) return false;
  if (size <= CS_WIRE_HEADER_BYTES) {
    (void)close(fd);
    return cs_error_set(err, "%s is too small", path);
  }
  if (!map_file(p, fd, size, err)) return false;
  if (!header_fits(p->header, size, err)) {
    cs_producer_close(p);
    return false;
  }
  p->capacity = p->header->capacity;
  p->head = cs_load_acquire(&p->header->head);
  return true;
}

static bool make_file(struct cs_producer *p, const struct cs_wire_invitation *wanted,
                      uint64_t capacity, struct cs_error *err) {
  size_t size = CS_WIRE_HEADER_BYTES + capacity;
  int fd = cs_sealed_make(wanted->name, size, err);
  if (fd < 0 || !map_file(p, fd, size, err)) return false;
  uint64_t magic = wanted->header.magic;
  *p->header = wanted->header;
  p->header->magic = 0;
  p->header->version = CS_WIRE_VERSION;
  cs_store_release(&p->header->magic, magic);
  return true;
}

static pid_t command_of(const struct cs_wire_invitation *wanted) {
  struct stat ns;
  bool same = wanted->pid_namespace != 0 && stat("/proc/self/ns/pid", &ns) == 0 &&
              ns.st_ino == wanted->pid_namespace;
  return same ? (pid_t)wanted->header.command_pid : 0;
}

bool cs_producer_make(struct cs_producer *p, const void *invitation, size_t size,
                      struct cs_error *err) {
  struct cs_wire_invitation wanted = {0};
  *p = (struct cs_producer){.file = {0}};
  if (size != sizeof wanted) return cs_error_set(err, "the command is of another release");
  memcpy(&wanted, invitation, sizeof wanted);
  wanted.name[sizeof wanted.name - 1] = '\0';
  pid_t command = command_of(&wanted);
  uint64_t capacity = wanted.header.capacity;
  if (header_fits(&wanted.header, CS_WIRE_HEADER_BYTES + capacity, err) &&
      make_file(p, &wanted, capacity, err)) {
    p->command = command;
    return true;
  }
  (void)make_file(p, &wanted, 0, NULL);
  p->command = command;
  return false;
}

bool cs_producer_wait_for_command(struct cs_producer *p, unsigned seconds) {
  enum { NAP_US = 1000 };
  for (unsigned i = 0; i < seconds * (1000000 / NAP_US); i++) {
    if (cs_producer_command_lives(p)) return true;
    if (p->command > 0 && kill(p->command, 0) != 0 && errno == ESRCH) return false;
    (void)usleep(NAP_US);
  }
  return false;
}

bool cs_producer_claim(struct cs_producer *p) {
  uint32_t nobody = 0;
  p->pid = getpid();
  return cs_cas(&p->header->agent_pid, &nobody, (uint32_t)p->pid);
}

void cs_producer_close(struct cs_producer *p) {
  if (p->header != NULL) {
    (void)munmap(p->header, p->mapped);
    cs_own_file_close(&p->file);
  }
  *p = (struct cs_producer){.file = {0}};
}

// The command publishes the CPU time that it has used each time it looks for records.
static bool has_sign_of_life(struct cs_producer *p) {
  uint64_t cpu_ns = cs_load_acquire(&p->header->command_cpu_ns), now_ns = cs_clock_now_ns();
  if (p->alive_ns == 0 || cpu_ns != p->alive_cpu_ns) p->alive_ns = now_ns;
  p->alive_cpu_ns = cpu_ns;
  return now_ns - p->alive_ns < SILENT_S * 1000000000ull;
}

bool cs_producer_command_lives(struct cs_producer *p) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int fd = cs_own_file_fd(&p->file);
  if (fd < 0) return has_sign_of_life(p);
  return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void cs_producer_set_state(struct cs_producer *p, enum cs_wire_agent_state state) {
  cs_store_release(&p->header->agent_state, (uint32_t)state);
}

void cs_producer_add_note(struct cs_producer *p, const char *sentence) {
  char *text = p->header->message;
  size_t used = strnlen(text, sizeof p->header->message - 1);
  (void)snprintf(text + used, sizeof p->header->message - used, "%s%s", used > 0 ? "; " : "",
                 sentence);
}

void cs_producer_refuse(struct cs_producer *p, const char *sentence) {
  p->header->message[0] = '\0';
  cs_producer_add_note(p, sentence);
  cs_producer_set_state(p, CS_WIRE_AGENT_REFUSED);
}

void cs_producer_set_label_hooks(struct cs_producer *p) {
  cs_store_release(&p->header->label_hooks, 1u);
}

bool cs_producer_stop_wanted(const struct cs_producer *p) {
  return cs_load_acquire(&p->header->stop) != 0;
}

// Returns contiguous room for `size` bytes, after padding if necessary, or NULL if there is none.
static uint8_t *begin(struct cs_producer *p, uint64_t size, uint64_t reserve) {
  if (p->header == NULL || getpid() != p->pid) return NULL;
  uint64_t at = p->head & (p->capacity - 1), to_end = p->capacity - at;
  uint64_t pad = size > to_end ? to_end : 0;
  uint64_t used = p->head - cs_load_acquire(&p->header->tail);
  if (used > p->capacity || pad + size + reserve > p->capacity - used) {
    cs_add_relaxed(&p->header->lost_records, 1);
    return NULL;
  }
  if (pad != 0) {
    struct cs_wire_record r = {(uint32_t)pad, CS_WIRE_PAD, 0};
    memcpy(p->ring + at, &r, sizeof r);
    p->head += pad;  // published with the record that follows
    at = 0;
  }
  return p->ring + at;
}

static void commit(struct cs_producer *p, uint64_t size) {
  p->head += size;
  cs_store_release(&p->header->head, p->head);
}

static uint64_t round_up(uint64_t size) {
  return (size + 7) & ~7ull;
}

// Returns the length of a string, cut at the end of a character if it exceeds MAX_STRING bytes.
static size_t length_of(const char *text) {
  if (text == NULL) return 0;
  size_t len = strnlen(text, MAX_STRING + 1);
  if (len <= MAX_STRING) return len;
  len = MAX_STRING;
  while (len > 0 && ((uint8_t)text[len] & 0xC0) == 0x80) len--;
  return len;
}

bool cs_producer_put(struct cs_producer *p, enum cs_wire_kind kind, const void *head,
                     size_t head_size, const char *const strings[], unsigned string_count) {
  uint64_t size = sizeof(struct cs_wire_record) + head_size;
  for (unsigned i = 0; i < string_count; i++) size += 2 + length_of(strings[i]);
  size = round_up(size);
  uint8_t *at = begin(p, size, kind == CS_WIRE_END ? 0 : END_RESERVE);
  if (at == NULL) return false;
  memset(at + size - 8, 0, 8);  // zeroes what the last string does not fill
  struct cs_wire_record r = {(uint32_t)size, (uint16_t)kind, 0};
  memcpy(at, &r, sizeof r);
  memcpy(at + sizeof r, head, head_size);
  at += sizeof r + head_size;
  for (unsigned i = 0; i < string_count; i++) {
    uint16_t len = (uint16_t)length_of(strings[i]);
    memcpy(at, &len, sizeof len);
    if (len > 0) memcpy(at + sizeof len, strings[i], len);
    at += sizeof len + len;
  }
  commit(p, size);
  return true;
}

static uint64_t sample_size(uint32_t frame_count, bool labelled) {
  return sizeof(struct cs_wire_record) + sizeof(struct cs_wire_sample) + frame_count * 8ull +
         (labelled ? sizeof(struct cs_label) : 0);
}

// A quarter of the ring: the samples of a deep recursion must leave room for others.
uint32_t cs_producer_max_frames(const struct cs_producer *p) {
  return (uint32_t)((p->capacity / 4 - sample_size(0, true)) / 8);
}

uint64_t *cs_producer_begin_sample(struct cs_producer *p, const struct cs_wire_sample *sample,
                                   const struct cs_label *label) {
  uint64_t size = sample_size(sample->frame_count, label != NULL);
  uint8_t *at = begin(p, size, END_RESERVE);
  if (at == NULL) return NULL;
  struct cs_wire_record r = {(uint32_t)size, CS_WIRE_SAMPLE, label != NULL ? CS_WIRE_LABELLED : 0};
  memcpy(at, &r, sizeof r);
  memcpy(at + sizeof r, sample, sizeof *sample);
  if (label != NULL) memcpy(at + size - sizeof *label, label, sizeof *label);
  return (uint64_t *)(void *)(at + sizeof r + sizeof *sample);
}

void cs_producer_commit_sample(struct cs_producer *p, const struct cs_wire_sample *sample,
                               const struct cs_label *label) {
  commit(p, sample_size(sample->frame_count, label != NULL));
}
