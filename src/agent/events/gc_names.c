// SPDX-License-Identifier: MIT
// Names of pauses. The numbers are those of the runtime's manifest (.NET 10); an unknown one is
// shown as a number. Any thread. Signal-safe: no.
#include "events/gc_names.h"

#include <stdio.h>

#include "base/base.h"

enum { REASON_BITS = 8, TYPE_BITS = 8 };

static const char *word(const char *const words[], size_t count, uint32_t i, char *other,
                        size_t size) {
  if (i < count && words[i] != NULL) return words[i];
  (void)snprintf(other, size, "reason %u", i);
  return other;
}

uint32_t cs_gc_number(uint32_t generation, uint32_t reason, uint32_t type) {
  return 1 + ((generation & 0xFFu) << (REASON_BITS + TYPE_BITS) | (reason & 0xFFu) << TYPE_BITS |
              (type & 0xFFu));
}

static void collection_name(uint32_t collection, char *name, size_t size) {
  static const char *const reasons[] = {"small objects",
                                        "induced",
                                        "low memory",
                                        NULL,
                                        "large objects",
                                        "out of space",
                                        "out of large space",
                                        "induced, not forced",
                                        "internal",
                                        "low memory, asked",
                                        "induced, compacting",
                                        "low memory of the host",
                                        "provisional mode",
                                        "low memory",
                                        "background tuning",
                                        "background tuning",
                                        "background stepping",
                                        "induced, aggressive"};
  static const char *const types[] = {"blocking", "background", "during a background one"};
  char reason[32], type[32];
  uint32_t n = collection - 1;
  (void)snprintf(name, size, "[GC gen %u, %s, %s]", n >> (REASON_BITS + TYPE_BITS),
                 word(reasons, CS_COUNT(reasons), n >> TYPE_BITS & 0xFFu, reason, sizeof reason),
                 word(types, CS_COUNT(types), n & 0xFFu, type, sizeof type));
}

void cs_gc_name(uint32_t collection, uint32_t suspend_reason, char *name, size_t size) {
  static const char *const reasons[] = {
      "other",         "collection", "application domain shutdown",
      "code pitching", "shutdown",   "debugger",
      "background GC", "debugger",   "profiler"};
  char other[32];
  if (collection != 0)
    collection_name(collection, name, size);
  else
    (void)snprintf(name, size, "[runtime stopped: %s]",
                   word(reasons, CS_COUNT(reasons), suspend_reason, other, sizeof other));
}
