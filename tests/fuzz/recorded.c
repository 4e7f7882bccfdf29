// SPDX-License-Identifier: MIT
#include "recorded.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "recording/recfile.h"

static void seal(uint8_t *bytes, size_t size) {
  struct cs_file_record head;
  for (size_t at = sizeof(struct cs_file_head); at + sizeof head <= size;) {
    memcpy(&head, bytes + at, sizeof head);
    if (head.size < sizeof head || head.size > size - at) return;
    size_t before = offsetof(struct cs_file_record, kind);
    head.crc = (uint32_t)crc32_z(0, bytes + at + before, head.size - before);
    memcpy(bytes + at, &head, sizeof head);
    at += head.size;
  }
}

bool fuzz_read_recording(const uint8_t *data, size_t size, struct cs_recording *rec) {
  static uint8_t bytes[FUZZ_MOST_BYTES];
  static int fd = -1;
  static char name[32];
  struct cs_error note, err;
  if (size > sizeof bytes) return false;
  if (size > 0) memcpy(bytes, data, size);
  seal(bytes, size);
  if (fd < 0) fd = memfd_create("recording", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) abort();
  (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  return cs_recfile_read(name, rec, &note, &err);
}

// ---- Output ----

static uint64_t written;

static ssize_t count(void *cookie, const char *data, size_t size) {
  (void)cookie, (void)data;
  written += size;
  return (ssize_t)size;
}

FILE *fuzz_stream(void) {
  static FILE *out;
  if (out == NULL) out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = count});
  if (out == NULL) abort();
  return out;
}

uint64_t fuzz_expansion_limit(uint64_t recording_bytes) {
  return cs_expansion_limit(recording_bytes) >> 8;
}

void fuzz_check_stream(FILE *out, uint64_t recording_bytes) {
  // The size of a format without any content, and the growth of one byte of a name or a number.
  enum { ALWAYS = 1 << 20, ESCAPED = 8, PER_BYTE = 1024 };
  (void)fflush(out);
  uint64_t most = ALWAYS + PER_BYTE * recording_bytes +
                  fuzz_expansion_limit(recording_bytes) * CS_EXPANSION_FRAME_BYTES * ESCAPED;
  if (written > most) {
    (void)fprintf(stderr, "%llu bytes from %llu\n", (unsigned long long)written,
                  (unsigned long long)recording_bytes);
    __builtin_trap();
  }
  written = 0;
}

// ---- Options ----

uint32_t fuzz_random(const uint8_t *data, size_t size) {
  return (uint32_t)crc32_z(0, data, size);
}

struct cs_resolve_opts fuzz_options(uint32_t random, const struct cs_recording *rec) {
  return (struct cs_resolve_opts){.native = (random & 1) == 0,
                                  .signatures = (random & 2) != 0,
                                  .lines = rec->lines && (random & 4) == 0,
                                  .raw_names = (random & 8) != 0,
                                  .async_callers = (random & 8) == 0,
                                  .group_threads = (random & 16) != 0};
}
