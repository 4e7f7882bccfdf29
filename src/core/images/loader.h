// SPDX-License-Identifier: MIT
// What the dynamic loader counts: whether images have come or gone since a table of them was made.
// Signal-safe: cs_loader_now, which takes no lock and only loads words that are never unmapped.
//
// glibc has no public counter that may be read without its lock, so three things are put together:
// r_debug.r_state, which is not "consistent" while an image is being mapped or unmapped; the number
// of images (the second member of _rtld_global, checked against the list at start); and the number
// of loads, the private _dl_load_adds, which dl_iterate_phdr tells under the lock: any word of
// _rtld_global that equals it then may be it, so all of these words are watched. One that is not
// only makes us look once more than needed.
#ifndef CS_IMAGES_LOADER_H
#define CS_IMAGES_LOADER_H

#include "base/base.h"

enum {
  CS_LOADER_WORDS = 8,     // more words than that, equal by chance, were never seen: 1 to 3
  CS_LOADER_UNSETTLED = 0  // being changed right now, or not to be known
};

struct cs_loader {
  const uint32_t *r_state;  // NULL: this loader never unloads anything (musl)
  const uint32_t *loaded;   // NULL, but r_state: what there is to watch was not found
  const uint64_t *words[CS_LOADER_WORDS];
  uint32_t count;
};

// A number for the images as they are: it changes with each that comes or goes, and does not come
// back (but for 1 in 2^63). CS_LOADER_UNSETTLED: none can be told. The state is read first: an
// image whose place another one may have taken has been counted, or is not consistent yet.
CS_ISLAND static inline uint64_t cs_loader_now(const struct cs_loader *loader) {
  if (loader->r_state == NULL) return 1;
  if (loader->loaded == NULL || cs_load_acquire(loader->r_state) != 0) return CS_LOADER_UNSETTLED;
  uint64_t now = cs_load_acquire(loader->loaded);
  for (uint32_t i = 0; i < loader->count; i++)
    now = (now ^ now >> 29) * 0x9E3779B97F4A7C15ull + cs_load_acquire(loader->words[i]);
  return now | 1ull << 63;
}

#endif
