// SPDX-License-Identifier: MIT
// Another process's memory, page by page: a walk reads the same few dozen pages again and again,
// and a read through the kernel costs 1.5 us whether it is for 8 bytes or for 4 KiB. Invariant: a
// page is only used in the generation in which it was read; that a page is not mapped is
// remembered, too. One thread at a time. Signal-safe: no.
#include <string.h>
#include <sys/mman.h>

#include "base/cpu.h"
#include "base/hash.h"
#include "remote/private.h"

bool cs_page_cache_init(struct cs_page_cache *cache, struct cs_process_memory *process) {
  void *bytes = mmap(NULL, (size_t)CS_PAGE_SLOTS * CS_PAGE_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) return false;
  cache->bytes = bytes;
  cache->process = process;
  cache->generation = 1;
  return true;
}

void cs_page_cache_free(struct cs_page_cache *cache) {
  if (cache->bytes != NULL) (void)munmap(cache->bytes, (size_t)CS_PAGE_SLOTS * CS_PAGE_BYTES);
  cache->bytes = NULL;
}

static unsigned slot_of(uint64_t number) {
  return (unsigned)cs_hash_word(number, 12) % CS_PAGE_SLOTS;
}

// Returns the page's bytes, or NULL if it is not mapped.
static const uint8_t *page_bytes(struct cs_page_cache *cache, uint64_t number) {
  unsigned slot = slot_of(number);
  struct cs_page *page = &cache->page[slot];
  uint8_t *bytes = cache->bytes + (size_t)slot * CS_PAGE_BYTES;
  if (page->number != number || page->generation != cache->generation) {
    page->number = number;
    page->generation = cache->generation;
    page->readable =
        cs_process_memory_read(cache->process, number * CS_PAGE_BYTES, bytes, CS_PAGE_BYTES);
  }
  return page->readable ? bytes : NULL;
}

bool cs_page_cache_read(struct cs_page_cache *cache, uint64_t address, void *dst, size_t len) {
  uint8_t *to = dst;
  if (address >> CS_ADDRESS_BITS != 0 || len > (UINT64_C(1) << CS_ADDRESS_BITS) - address)
    return false;
  while (len != 0) {
    size_t in_page = (size_t)(address % CS_PAGE_BYTES);
    size_t n = CS_PAGE_BYTES - in_page < len ? CS_PAGE_BYTES - in_page : len;
    const uint8_t *bytes = page_bytes(cache, address / CS_PAGE_BYTES);
    if (bytes == NULL) return false;
    memcpy(to, bytes + in_page, n);
    to += n;
    address += n;
    len -= n;
  }
  return true;
}

bool cs_remote_read(struct cs_remote *remote, uint64_t address, void *dst, size_t len) {
  return cs_page_cache_read(&remote->cache, address, dst, len);
}

bool cs_remote_read_large(struct cs_remote *remote, uint64_t address, void *dst, size_t len) {
  return cs_process_memory_read(&remote->process, address, dst, len);
}

void cs_remote_invalidate(struct cs_remote *remote) {
  remote->cache.generation++;
}

void cs_remote_invalidate_range(struct cs_remote *remote, uint64_t begin, uint64_t end) {
  for (uint64_t number = begin / CS_PAGE_BYTES; number * CS_PAGE_BYTES < end; number++) {
    struct cs_page *page = &remote->cache.page[slot_of(number)];
    if (page->number == number) page->generation = 0;
  }
}
