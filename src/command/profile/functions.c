// SPDX-License-Identifier: MIT
// Frames by function: same method, same module. One thread. Signal-safe: no.
#include "profile/functions.h"

#include <stdlib.h>
#include <string.h>

void cs_functions_make(struct cs_functions *f, const struct cs_profile *p, bool apart) {
  struct cs_strings names = {0};
  struct cs_map ids = {0};
  f->of = cs_allocate(p->frame_count * sizeof *f->of);
  f->frame = cs_allocate(p->frame_count * sizeof *f->frame);
  f->count = 0;
  for (uint32_t i = 0; i < p->frame_count; i++) {
    size_t len;
    const char *name = cs_profile_method(p, i, &len);
    uint64_t key = (uint64_t)cs_strings_add(&names, name, len) << 32 | p->frames[i].module;
    if (apart && p->frames[i].inlined) key |= 1ull << 63;
    bool added;
    f->of[i] = cs_map_put(&ids, key, f->count, &added);
    // Prefer a frame that knows its source file.
    if (added) f->frame[f->count++] = i;
    if (p->frames[f->frame[f->of[i]]].file == CS_NO_TEXT) f->frame[f->of[i]] = i;
  }
  cs_strings_free(&names);
  cs_map_free(&ids);
}

void cs_functions_free(struct cs_functions *f) {
  free(f->of);
  free(f->frame);
}
