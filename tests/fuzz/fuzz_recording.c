// SPDX-License-Identifier: MIT
// A recording file, read and written in every format. Its checksums are put right first: whoever
// lies can do that, too.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "formats/format.h"
#include "formats/writers.h"
#include "fuzz.h"
#include "recording/recfile.h"
#include "recording/resolve.h"

enum { MOST_BYTES = 1 << 16 };

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

static void write_all(const struct cs_recording *rec) {
  static FILE *out;
  size_t count;
  const struct cs_format *formats = cs_formats(&count);
  if (out == NULL) out = fopen("/dev/null", "we");
  for (unsigned mode = 0; mode < CS_WIRE_MODES; mode++) {
    if ((rec->meta.modes & CS_WIRE_MODE_BIT(mode)) == 0) continue;
    struct cs_profile profile;
    struct cs_profile_set set = {&profile, 1};
    cs_profile_init(&profile);
    cs_resolve(rec, (enum cs_wire_mode)mode, &(struct cs_resolve_opts){.native = true}, &profile);
    for (size_t i = 0; i < count; i++)
      if (formats[i].write != NULL &&
          !cs_expands_beyond(&profile, formats[i].expansion, cs_expansion_limit(rec->bytes) / 64))
        (void)formats[i].write(&set, out);
    cs_write_top(&profile, 10, "", out);
    cs_profile_free(&profile);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct cs_recording rec;
  static uint8_t bytes[MOST_BYTES];
  char name[32];
  struct cs_error note, err;
  if (size > sizeof bytes) return 0;
  if (size > 0) memcpy(bytes, data, size);
  seal(bytes, size);
  int fd = memfd_create("recording", MFD_CLOEXEC);
  if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) __builtin_trap();
  (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  cs_recording_init(&rec);
  rec.keep_samples = true;
  if (cs_recfile_read(name, &rec, &note, &err)) write_all(&rec);
  cs_recording_free(&rec);
  (void)close(fd);
  return 0;
}
