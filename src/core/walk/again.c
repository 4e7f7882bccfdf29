// SPDX-License-Identifier: MIT
// Finds out whether the rest of a stack is that of the last walk. Signal-safe: yes.
//
// A step by a site depends only on the return address, the sp and the frame pointer of its frame,
// and on the words of the stack that it reads: the caller's return address and frame pointer. So if
// a frame has all three in common with a kept one, and the words that lead from it to the base are
// unchanged, the frames up to the base are unchanged, too.
//
// Invariant: only the walked thread's own stack is compared, above the frame that the walk has
// reached, and nothing writes there meanwhile. Sites of native code are right for one set of images
// only, so a kept walk is used only with the same set. Managed code that can be unloaded is not
// kept.
#include "walk/again.h"

#include "unwind/sites.h"

enum { TRIES = 8 };  // of one walk, since each leaves the fast loop

CS_ISLAND void cs_again_begin(struct cs_again_search *search, const struct cs_again *again,
                              const struct cs_walk *walk) {
  bool fits = again->count != 0 && again->clr_thread == walk->clr_thread &&
              again->stack_hi == walk->stack.hi && walk->sites_valid &&
              again->loaded == walk->loaded && walk->world->mem.read == NULL;
  *search = (struct cs_again_search){.again = fits ? again : NULL, .tries = TRIES};
}

CS_ISLAND static inline uint64_t word_at(uint64_t addr) {
  return *(const volatile cs_any_u64 *)(uintptr_t)addr;
}

// Returns the first record after `at` to which the stack no longer leads, or `count` if there is
// none.
CS_ISLAND static uint32_t first_changed(const struct cs_record *records, uint32_t at,
                                        uint32_t count) {
  while (++at < count) {
    const struct cs_record *record = &records[at];
    uint64_t cfa = cs_record_sp(record), ip = cs_record_ip(record);
    int64_t fp_at = record->fp_at;
    uint64_t fp = fp_at != 0 ? record->preserved[CS_PRESERVED_FP] : ip;
    if (fp_at == 0) fp_at = CS_SITE_RA;  // not saved: compare the other word twice
    if (word_at(cfa + (uint64_t)(CS_SITE_RA * 8)) != ip ||
        word_at(cfa + (uint64_t)(fp_at * 8)) != fp)
      break;
  }
  return at;
}

CS_ISLAND uint64_t cs_again_match(struct cs_again_search *search, uint64_t ip, uint64_t sp,
                                  uint64_t fp, uint32_t frames) {
  const struct cs_again *again = search->again;
  if (again == NULL) return ~0ull;
  const struct cs_record *records = again->records + again->start;
  uint32_t at = search->at < again->from ? again->from : search->at;
  while (at < again->count && cs_record_sp(&records[at]) < sp) at++;
  if (at < again->count && cs_record_sp(&records[at]) == sp) {
    const struct cs_record *record = &records[at];
    uint32_t found = at;
    at++;
    if (cs_record_ip(record) == ip && record->preserved[CS_PRESERVED_FP] == fp &&
        frames <= again->start + found) {
      at = first_changed(records, found, again->count);
      if (at == again->count) {
        search->at = found;
        search->matched = true;
        return 0;
      }
    }
    if (search->tries-- == 0) at = again->count;
  }
  search->at = at;
  if (at < again->count) return cs_record_sp(&records[at]);
  search->again = NULL;
  return ~0ull;
}

// If the walk ends at a base that a site marks, its end depends only on what is compared.
CS_ISLAND void cs_again_note(struct cs_again *last, const struct cs_walk *walk, uint32_t count,
                             uint32_t from) {
  bool ends_by_site = walk->stop == CS_STOP_BASE && walk->site != 0 && CS_SITE_IS_BASE(walk->site);
  bool fits = ends_by_site && walk->faults == 0 && walk->sites_valid && count <= CS_AGAIN_MAX;
  last->clr_thread = walk->clr_thread;
  last->stack_hi = walk->stack.hi;
  last->loaded = walk->loaded;
  last->from = from;
  last->count = fits ? count : 0;
}
