// SPDX-License-Identifier: MIT
// What one walk has read of collectible code, which may be unloaded. A guarded read is a system
// call of 0.9 us, and finding the method and unwind data of such a frame takes about ten of them.
// The data is close together, and reading a page costs no more than reading a word, so a walk keeps
// copies of the pages that it has needed and of the frames that it has found. Both belong to that
// walk alone, and are dropped when it ends. Signal-safe: yes.
//
// A copy is as good as another read: nothing that a walk has read is freed before the walk ends,
// because freeing waits for the epoch, and code that is created meanwhile cannot be on the walked
// stack, which does not change.
//
// The copies are in static memory, since a handler's stack has no room for a page. A walk takes a
// lease when it first meets collectible code. If all leases are taken, it reads without one.
#pragma once

#include "codemap/codemap.h"
#include "images/images.h"

enum {
  CS_COLLECTIBLE_LEASES = 64,  // walks that can have one at a time
  CS_COLLECTIBLE_PAGES = 16,
  CS_COLLECTIBLE_PAGE_BYTES = 4096,
  CS_COLLECTIBLE_FRAMES = 64,
};

// A return address in collectible code.
struct cs_collectible_frame {
  uint64_t ip;
  uint32_t use;   // the lease's `use` when it was found
  bool has_rule;  // if not, its unwind data is decoded each time
  struct cs_cfi_rule rule;
  struct cs_code code;
};

struct cs_collectible_cache {
  uint32_t use;   // incremented for each walk; entries with another number are stale
  uint32_t next;  // the slot of the page that is replaced next
  uint32_t page_use[CS_COLLECTIBLE_PAGES];
  uint64_t page[CS_COLLECTIBLE_PAGES];  // addresses of the pages
  struct cs_collectible_frame frames[CS_COLLECTIBLE_FRAMES];
  uint8_t bytes[CS_COLLECTIBLE_PAGES][CS_COLLECTIBLE_PAGE_BYTES];
};

// A guarded read for the walk that `near` belongs to. Takes a lease if the walk has none yet.
CS_ISLAND bool cs_collectible_read(const struct cs_mem *mem, struct cs_near *near, uint64_t addr,
                                   void *dst, size_t len);
// Returns the frame that was kept for this return address, or NULL.
CS_ISLAND const struct cs_collectible_frame *cs_collectible_find(const struct cs_near *near,
                                                                 uint64_t ip);
// Returns the slot for this return address, or NULL. The caller fills in the slot, and
// cs_collectible_keep makes it valid.
CS_ISLAND struct cs_collectible_frame *cs_collectible_slot(const struct cs_near *near, uint64_t ip);
CS_ISLAND void cs_collectible_keep(const struct cs_near *near, struct cs_collectible_frame *frame,
                                   uint64_t ip);
// Gives the lease back at the end of the walk.
CS_ISLAND void cs_collectible_release(struct cs_near *near);
