// SPDX-License-Identifier: MIT
// Invariant: no name is cut off, and the numbers always fit. One thread. Signal-safe: no.
#include "naming/missing.h"

#include <stdio.h>
#include <string.h>

#include "base/path.h"

enum { MOST_NAMED = 4, ROOM_FOR_NUMBERS = 80 };

void cs_missing_add(struct cs_missing *list, const char *path, const char *why, bool framework) {
  if (framework) {
    list->framework++;
    return;
  }
  size_t used = strlen(list->text), room = list->size - used;
  const char *comma = list->named > 0 ? ", " : "", *file = cs_file_of(path);
  size_t len = strlen(comma) + strlen(file) + strlen(why) + strlen(" ()");
  if (list->named == MOST_NAMED || len + ROOM_FOR_NUMBERS >= room) {
    list->more++;
    return;
  }
  (void)snprintf(list->text + used, room, "%s%s (%s)", comma, file, why);
  list->named++;
}

void cs_missing_end(struct cs_missing *list) {
  size_t used = strlen(list->text);
  if (list->more > 0)
    used += (size_t)snprintf(list->text + used, list->size - used, "%s%u more",
                             used > 0 ? ", " : "", list->more);
  if (list->framework > 0)
    (void)snprintf(list->text + used, list->size - used, "%s%u of the framework's",
                   used > 0 ? ", " : "", list->framework);
}
