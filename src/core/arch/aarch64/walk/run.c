// SPDX-License-Identifier: MIT
// The loop over frames whose return addresses have been seen before. On this architecture there is
// none yet: cs_walk_next steps over each of them by its site, which is slower, and the same.
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
