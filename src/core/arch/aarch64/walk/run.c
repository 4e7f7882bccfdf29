// SPDX-License-Identifier: MIT
// The fast path over frames whose call sites are cached. This architecture has none yet:
// cs_walk_next steps over each frame by its site, which is slower, with the same result.
// Signal-safe: yes.
#include "walk/record.h"

CS_ISLAND uint32_t cs_walk_run(struct cs_walk *walk, struct cs_record *out, uint32_t room) {
  (void)walk;
  (void)out;
  (void)room;
  return 0;
}

CS_ISLAND uint32_t cs_walk_skip(struct cs_walk *walk, uint32_t frames) {
  (void)walk;
  (void)frames;
  return 0;
}

CS_ISLAND uint32_t cs_walk_run_plain(struct cs_walk *walk, struct cs_record *out, uint32_t room) {
  (void)walk;
  (void)out;
  (void)room;
  return 0;
}

CS_ISLAND uint32_t cs_walk_run_words(struct cs_walk *walk, uint64_t *out, uint32_t room) {
  (void)walk;
  (void)out;
  (void)room;
  return 0;
}
