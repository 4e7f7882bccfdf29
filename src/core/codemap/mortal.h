// SPDX-License-Identifier: MIT
// mortal: what one walk has read of code that may be unloaded. A guarded read is a system call of
// 0.9 us, and to find such a frame's method and unwind data takes some ten of them; what they want
// lies close together, and one read of a page costs no more than one of a word. So a walk keeps
// copies of the pages that it was led to, and the frames that it has found; both are its own, and
// are forgotten when it ends. Signal-safe: yes.
//
// Why a copy is as good as another read: what a walk believes was read at one instant of it, and
// none of it dies before the walk has ended, because whoever lets code go waits for the epoch. Code
// that comes meanwhile is not on a stack that stands still.
//
// The copies lie in static memory, since a handler's stack has no room for a page. A walk takes a
// lease when it meets the first code of that kind; where all are taken it reads without.
#ifndef CS_CODEMAP_MORTAL_H
#define CS_CODEMAP_MORTAL_H

#include "codemap/codemap.h"
#include "images/images.h"

enum {
  CS_MORTAL_LEASES = 64,  // walks at a time that have one; a bit each
  CS_MORTAL_PAGES = 16,
  CS_MORTAL_PAGE_BYTES = 4096,
  CS_MORTAL_FRAMES = 64,
};

// A return address in managed code that may be unloaded.
struct cs_mortal_frame {
  uint64_t ip;
  uint32_t turn;  // of the lease's, in which it was found
  bool has_rule;  // else its unwind data is decoded each time
  struct cs_cfi_rule rule;
  struct cs_code code;
};

struct cs_mortal {
  uint32_t turn;  // a number for each walk that had the lease: what bears another is not there
  uint32_t next;  // the page that is replaced next
  uint32_t page_turn[CS_MORTAL_PAGES];
  uint64_t page[CS_MORTAL_PAGES];  // their addresses
  struct cs_mortal_frame frames[CS_MORTAL_FRAMES];
  uint8_t bytes[CS_MORTAL_PAGES][CS_MORTAL_PAGE_BYTES];
};

// A guarded read of the walk that `near` is of; takes the lease if it has none yet.
CS_ISLAND bool cs_mortal_read(const struct cs_mem *mem, struct cs_near *near, uint64_t addr,
                              void *dst, size_t len);
// The frame that was found before at that return address, or NULL.
CS_ISLAND const struct cs_mortal_frame *cs_mortal_find(const struct cs_near *near, uint64_t ip);
// A place to note it at, or NULL. It counts from cs_mortal_keep on.
CS_ISLAND struct cs_mortal_frame *cs_mortal_place(const struct cs_near *near, uint64_t ip);
CS_ISLAND void cs_mortal_keep(const struct cs_near *near, struct cs_mortal_frame *frame,
                              uint64_t ip);
// The walk has ended.
CS_ISLAND void cs_mortal_release(struct cs_near *near);

#endif
