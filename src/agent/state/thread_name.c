// SPDX-License-Identifier: MIT
// Names of threads. The kernel keeps 15 bytes of a name, the managed Thread object all of it. No
// descriptor says in which field, and a collection may move the object and the string while they
// are read. So all reads are guarded, and a name is believed only if it begins with the kernel's 15
// bytes and reads the same twice. Any thread. Signal-safe: no.
#include "state/thread_name.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/utf16.h"
#include "life/library.h"

enum { COMM = 15, FIELDS = 8, MAX_UNITS = 128 };

void cs_thread_kernel_name(uint32_t tid, char *name, size_t cap) {
  char path[64];
  name[0] = '\0';
  if (tid == (uint32_t)getpid()) {  // where the kernel has the program's file name
    (void)snprintf(name, cap, "Main");
    return;
  }
  (void)snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return;
  if (fgets(name, (int)cap, file) == NULL) name[0] = '\0';
  name[strcspn(name, "\n")] = '\0';
  (void)fclose(file);
}

static bool read_bytes(uint64_t address, void *out, size_t size) {
  return address != 0 && address % 8 == 0 &&
         cs_mem_read_guarded(&cs_library.world.mem, address, out, size);
}

static bool read_name(uint64_t object, unsigned field, char *name, size_t cap) {
  const struct cs_layout *l = &cs_library.world.layout;
  uint64_t string;
  uint32_t length;
  WCHAR units[MAX_UNITS];
  if (!read_bytes(object + 8u * field, &string, 8) || string % 8 != 0 || string == 0 ||
      !cs_mem_read_guarded(&cs_library.world.mem, string + l->string.length, &length, 4) ||
      length == 0 || length > MAX_UNITS ||
      !cs_mem_read_guarded(&cs_library.world.mem, string + l->string.first_char, units,
                           length * sizeof units[0]))
    return false;
  (void)cs_utf16_to_utf8(name, cap, units, length, NULL);
  return true;
}

void cs_thread_whole_name(uint64_t clr_thread, char *name, size_t cap) {
  const struct cs_layout *l = &cs_library.world.layout;
  char first[MAX_UNITS * 3 + 1], again[sizeof first];
  uint64_t handle, object;
  if (strlen(name) != COMM || clr_thread == 0 || l->thread.exposed_object == CS_NO_FIELD ||
      l->string.length == CS_NO_FIELD || l->string.first_char == CS_NO_FIELD)
    return;
  for (unsigned i = 1; i <= FIELDS; i++) {
    if (!read_bytes(clr_thread + l->thread.exposed_object, &handle, 8) ||
        !read_bytes(handle, &object, 8))
      return;
    if (!read_name(object, i, first, sizeof first) || strncmp(first, name, COMM) != 0 ||
        !read_name(object, i, again, sizeof again) || strcmp(first, again) != 0 ||
        strlen(first) >= cap)
      continue;
    memcpy(name, first, strlen(first) + 1);
    return;
  }
}
