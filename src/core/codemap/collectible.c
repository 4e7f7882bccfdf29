// SPDX-License-Identifier: MIT
// Copies of memory that may be unloaded, for the duration of one walk. Signal-safe: yes; a lease is
// taken and returned by one atomic operation each, and no walk waits for one.
#include "codemap/collectible.h"

static struct cs_collectible_cache leases[CS_COLLECTIBLE_LEASES];
static uint64_t taken;  // one bit for each lease

_Static_assert(CS_COLLECTIBLE_LEASES == 64, "a bit each");

CS_ISLAND static struct cs_collectible_cache *take(void) {
  uint64_t now = cs_load_relaxed(&taken);
  while (~now != 0) {
    uint64_t lowest = ~now & (now + 1);
    if (!cs_cas(&taken, &now, now | lowest)) continue;
    struct cs_collectible_cache *lease = &leases[__builtin_ctzll(lowest)];
    lease->use++;
    lease->next = 0;
    return lease;
  }
  return NULL;
}

CS_ISLAND void cs_collectible_release(struct cs_near *near) {
  struct cs_collectible_cache *lease = near->cache;
  if (lease == NULL) return;
  near->cache = NULL;
  (void)__atomic_fetch_and(&taken, ~(1ull << (lease - leases)), __ATOMIC_RELEASE);
}

// Returns a copy of the page at `address`, or NULL if it cannot be read.
CS_ISLAND static const uint8_t *page_at(const struct cs_mem *mem,
                                        struct cs_collectible_cache *lease, uint64_t address) {
  for (unsigned i = 0; i < CS_COLLECTIBLE_PAGES; i++)
    if (lease->page[i] == address && lease->page_use[i] == lease->use) return lease->bytes[i];
  unsigned i = lease->next % CS_COLLECTIBLE_PAGES;
  lease->page_use[i] = 0;
  if (!cs_mem_read_guarded(mem, address, lease->bytes[i], CS_COLLECTIBLE_PAGE_BYTES)) return NULL;
  lease->page[i] = address;
  lease->page_use[i] = lease->use;
  lease->next++;
  return lease->bytes[i];
}

CS_ISLAND bool cs_collectible_read(const struct cs_mem *mem, struct cs_near *near, uint64_t addr,
                                   void *dst, size_t len) {
  if (near->cache == NULL && (near->cache = take()) == NULL)
    return cs_mem_read_guarded(mem, addr, dst, len);
  uint8_t *to = dst;
  for (size_t done = 0; done < len;) {
    uint64_t at = addr + done, within = at & (CS_COLLECTIBLE_PAGE_BYTES - 1);
    size_t n = CS_COLLECTIBLE_PAGE_BYTES - within;
    if (n > len - done) n = len - done;
    const uint8_t *page = page_at(mem, near->cache, at - within);
    // Tests, and some readers of other processes, cannot read whole pages.
    if (page == NULL) return cs_mem_read_guarded(mem, addr, dst, len);
    cs_copy(to + done, page + within, n);
    done += n;
  }
  return true;
}

CS_ISLAND struct cs_collectible_frame *cs_collectible_slot(const struct cs_near *near,
                                                           uint64_t ip) {
  if (near->cache == NULL) return NULL;
  return &near->cache->frames[(ip ^ ip >> 6) % CS_COLLECTIBLE_FRAMES];
}

CS_ISLAND const struct cs_collectible_frame *cs_collectible_find(const struct cs_near *near,
                                                                 uint64_t ip) {
  const struct cs_collectible_frame *frame = cs_collectible_slot(near, ip);
  return frame != NULL && frame->ip == ip && frame->use == near->cache->use ? frame : NULL;
}

CS_ISLAND void cs_collectible_keep(const struct cs_near *near, struct cs_collectible_frame *frame,
                                   uint64_t ip) {
  frame->ip = ip;
  frame->use = near->cache->use;
}
