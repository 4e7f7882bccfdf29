// SPDX-License-Identifier: MIT
// Refuses outputs that would be enormous: a recording of a megabyte may describe stacks that come
// to terabytes when they are written out. One thread. Signal-safe: no.
#include "session/view.h"
#include "util/say.h"

bool cs_output_is_bounded(const char *path, const struct cs_profile_set *set,
                          enum cs_expansion expansion, uint64_t recording_bytes) {
  uint64_t limit = cs_expansion_limit(recording_bytes);
  size_t i = 0;
  while (i < set->count && !cs_expands_beyond(&set->profiles[i], expansion, limit)) i++;
  if (i == set->count) return true;
  cs_say(
      "%s is not written: its stacks would come to more than %llu million frames of %u bytes, from "
      "recordings of %llu KiB; the formats html, json and text keep them together",
      path, (unsigned long long)(limit / 1000000), CS_EXPANSION_FRAME_BYTES,
      (unsigned long long)(recording_bytes / 1024));
  return false;
}
