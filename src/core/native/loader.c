// SPDX-License-Identifier: MIT
// See images/loader.h. Everything that is watched is in the data of ld.so, which is never unmapped.
// Invariant: a word is watched only if it had, under the loader's lock, the value that it must
// have. Not for handlers.
#include "native/native.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "base/libc.h"
#include "base/log.h"

struct search {
  struct cs_loader *loader;
  const struct r_debug *debug;
  const uint8_t *global;  // _rtld_global
  size_t size;
  bool found;
};

static uint32_t count_images(const struct link_map *map) {
  uint32_t n = 0;
  for (; map != NULL; map = map->l_next) n++;
  return n;
}

// Called under the lock. In the known layout the first two members are the list of images and their
// number.
static bool is_known_layout(const struct search *s) {
  enum { FIRST = 0, LOADED = 8 };
  uint64_t first;
  uint32_t loaded;
  if (s->size < 64) return false;
  memcpy(&first, s->global + FIRST, sizeof first);
  memcpy(&loaded, s->global + LOADED, sizeof loaded);
  return first == (uint64_t)(uintptr_t)s->debug->r_map && loaded == count_images(s->debug->r_map);
}

static int find_words(struct dl_phdr_info *info, size_t size, void *arg) {
  enum { LOADED = 8, FIRST_WORD = 16 };
  struct search *s = arg;
  struct cs_loader *loader = s->loader;
  if (size < offsetof(struct dl_phdr_info, dlpi_subs) || !is_known_layout(s)) return 1;
  for (size_t at = FIRST_WORD; at + 8 <= s->size; at += 8) {
    const uint64_t *word = (const uint64_t *)(const void *)(s->global + at);
    if (*word != info->dlpi_adds) continue;
    if (loader->count == CS_LOADER_WORDS) return 1;
    loader->words[loader->count++] = word;
  }
  s->found = loader->count != 0;
  loader->loaded = (const uint32_t *)(const void *)(s->global + LOADED);
  return 1;  // one call is enough
}

bool cs_loader_init(struct cs_loader *loader) {
  struct search s = {.loader = loader};
  Dl_info info;
  const ElfW(Sym) *symbol = NULL;
  *loader = (struct cs_loader){0};
  if (cs_libc_is_musl()) return true;  // dlclose does nothing
  // Looked up and not linked, since musl lacks it and one library serves both.
  __typeof__(dladdr1) *extent = NULL;
  *(void **)&extent = dlsym(RTLD_DEFAULT, "dladdr1");
  s.debug = dlsym(RTLD_DEFAULT, "_r_debug");
  s.global = dlsym(RTLD_DEFAULT, "_rtld_global");
  static const uint32_t never = 1;
  loader->r_state = &never;
  if (extent != NULL && s.debug != NULL && s.global != NULL &&
      extent(s.global, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL &&
      info.dli_saddr == s.global) {
    s.size = (size_t)symbol->st_size;
    (void)dl_iterate_phdr(find_words, &s);
  }
  if (s.found) {
    loader->r_state = (const uint32_t *)(const void *)&s.debug->r_state;
    return true;
  }
  loader->loaded = NULL;
  cs_log("the dynamic loader's counters are not found: native images are checked in each walk");
  return false;
}
