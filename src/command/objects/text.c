// SPDX-License-Identifier: MIT
// One thread. Signal-safe: no.
#include "objects/text.h"

#include <string.h>

#include "base/utf16.h"

char *cs_object_utf16(const struct cs_world *world, uint64_t address) {
  uint16_t wide[CS_OBJECT_UNITS];
  char text[3 * CS_OBJECT_UNITS + 1];
  if (address == 0) return NULL;
  for (unsigned i = 0; i < CS_OBJECT_UNITS; i++) {
    if (!cs_mem_read_guarded(&world->mem, address + i * sizeof wide[0], &wide[i], sizeof wide[0]))
      return NULL;
    if (wide[i] != 0) continue;
    size_t len = cs_utf16_to_utf8(text, sizeof text, wide, i, NULL);
    return len > 0 ? strndup(text, len) : NULL;
  }
  return NULL;
}
