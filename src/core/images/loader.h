// SPDX-License-Identifier: MIT
// Whether images have been loaded or unloaded since a table of them was made, by counters of the
// dynamic loader. Signal-safe: cs_loader_now, which takes no lock, and only loads words that are
// never unmapped.
//
// glibc has no public counter that may be read without its lock, so three things are combined:
//   - r_debug.r_state, which is not RT_CONSISTENT while an image is being mapped or unmapped;
//   - the number of images: the second member of _rtld_global, compared with the list at start;
//   - the number of loads: the private _dl_load_adds. dl_iterate_phdr returns its value, under the
//     lock. Any word of _rtld_global that has this value then may be the counter, so all of them
//     are watched. A word that is something else only causes an unnecessary refresh.
#pragma once

#include "base/base.h"
#include "base/hash.h"

enum {
  CS_LOADER_WORDS = 8,     // 1 to 3 words have been seen with the counter's value
  CS_LOADER_UNSETTLED = 0  // images are changing right now, or it is not known
};

struct cs_loader {
  const uint32_t *r_state;  // NULL: this loader never unloads images (musl)
  const uint32_t *loaded;   // NULL, with r_state set: the counters were not found
  const uint64_t *words[CS_LOADER_WORDS];
  uint32_t count;
};

// Returns a number that identifies the set of images: it changes whenever one is loaded or
// unloaded, and recurs with a probability of 2^-63. CS_LOADER_UNSETTLED: there is no such number
// now. The state is read first, so that if another image may have taken the address range of one,
// either the counters have changed or the state is not consistent yet. The words are added and not
// mixed by an exclusive or, because two counters that grow together must not cancel each other out.
CS_ISLAND static inline uint64_t cs_loader_now(const struct cs_loader *loader) {
  if (loader->r_state == NULL) return 1;
  if (loader->loaded == NULL || cs_load_acquire(loader->r_state) != 0) return CS_LOADER_UNSETTLED;
  uint64_t now = cs_load_acquire(loader->loaded);
  for (uint32_t i = 0; i < loader->count; i++)
    now = (now ^ now >> 29) * CS_HASH_GOLDEN + cs_load_acquire(loader->words[i]);
  return now | 1ull << 63;
}
