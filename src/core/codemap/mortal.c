// SPDX-License-Identifier: MIT
// Copies of what may be unloaded, for as long as one walk. Signal-safe: yes; a lease is taken and
// given back by one atomic operation each, and nobody waits for one.
#include "codemap/mortal.h"

static struct cs_mortal leases[CS_MORTAL_LEASES];
static uint64_t taken;  // a bit for each

_Static_assert(CS_MORTAL_LEASES == 64, "a bit each");

CS_ISLAND static struct cs_mortal *take(void) {
  uint64_t now = cs_load_relaxed(&taken);
  while (~now != 0) {
    uint64_t lowest = ~now & (now + 1);
    if (!cs_cas(&taken, &now, now | lowest)) continue;
    struct cs_mortal *lease = &leases[__builtin_ctzll(lowest)];
    lease->turn++;
    lease->next = 0;
    return lease;
  }
  return NULL;
}

CS_ISLAND void cs_mortal_release(struct cs_near *near) {
  struct cs_mortal *lease = near->mortal;
  if (lease == NULL) return;
  near->mortal = NULL;
  (void)__atomic_fetch_and(&taken, ~(1ull << (lease - leases)), __ATOMIC_RELEASE);
}

// The copy of the page at that address; NULL if it cannot be read.
CS_ISLAND static const uint8_t *page_at(const struct cs_mem *mem, struct cs_mortal *lease,
                                        uint64_t address) {
  for (unsigned i = 0; i < CS_MORTAL_PAGES; i++)
    if (lease->page[i] == address && lease->page_turn[i] == lease->turn) return lease->bytes[i];
  unsigned i = lease->next % CS_MORTAL_PAGES;
  lease->page_turn[i] = 0;
  if (!cs_mem_read_guarded(mem, address, lease->bytes[i], CS_MORTAL_PAGE_BYTES)) return NULL;
  lease->page[i] = address;
  lease->page_turn[i] = lease->turn;
  lease->next++;
  return lease->bytes[i];
}

CS_ISLAND bool cs_mortal_read(const struct cs_mem *mem, struct cs_near *near, uint64_t addr,
                              void *dst, size_t len) {
  if (near->mortal == NULL && (near->mortal = take()) == NULL)
    return cs_mem_read_guarded(mem, addr, dst, len);
  uint8_t *to = dst;
  for (size_t done = 0; done < len;) {
    uint64_t at = addr + done, within = at & (CS_MORTAL_PAGE_BYTES - 1);
    size_t n = CS_MORTAL_PAGE_BYTES - within;
    if (n > len - done) n = len - done;
    const uint8_t *page = page_at(mem, near->mortal, at - within);
    // Memory that is no whole page: what a test or another process' reader has.
    if (page == NULL) return cs_mem_read_guarded(mem, addr, dst, len);
    cs_copy(to + done, page + within, n);
    done += n;
  }
  return true;
}

CS_ISLAND struct cs_mortal_frame *cs_mortal_place(const struct cs_near *near, uint64_t ip) {
  if (near->mortal == NULL) return NULL;
  return &near->mortal->frames[(ip ^ ip >> 6) % CS_MORTAL_FRAMES];
}

CS_ISLAND const struct cs_mortal_frame *cs_mortal_find(const struct cs_near *near, uint64_t ip) {
  const struct cs_mortal_frame *frame = cs_mortal_place(near, ip);
  return frame != NULL && frame->ip == ip && frame->turn == near->mortal->turn ? frame : NULL;
}

CS_ISLAND void cs_mortal_keep(const struct cs_near *near, struct cs_mortal_frame *frame,
                              uint64_t ip) {
  frame->ip = ip;
  frame->turn = near->mortal->turn;
}
