// SPDX-License-Identifier: MIT
// A managed module's file, its metadata and its debug directory.
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "metadata/lines.h"
#include "metadata/metadata.h"
#include "process/target.h"

static bool read_fd(void *context, uint64_t offset, void *out, size_t size) {
  return pread(*(const int *)context, out, size, (off_t)offset) == (ssize_t)size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char name[32];
  static struct cs_method_text text;
  int fd = memfd_create("module", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size) __builtin_trap();
  (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  struct cs_pe pe;
  struct cs_metadata *m = NULL;
  if (cs_pe_open(&pe, read_fd, &fd, CS_PE_FLAT)) m = cs_metadata_read(&pe);
  for (uint32_t rid = 0; m != NULL && rid < 64; rid++)
    (void)cs_metadata_method(m, 0x06000000u + rid, NULL, &text);
  if (m != NULL) cs_metadata_free(m);
  static struct cs_target *here;
  if (here == NULL) here = cs_target_of(0);
  struct cs_lines *lines = cs_lines_new(here);
  cs_lines_add_file(lines, name);
  (void)cs_lines_of_module(lines, name);
  struct cs_line line;
  for (uint32_t rid = 0; rid < 16; rid++)
    (void)cs_lines_find(lines, name, 0x06000000u + rid, rid, &line);
  cs_lines_free(lines);
  (void)close(fd);
  return 0;
}
