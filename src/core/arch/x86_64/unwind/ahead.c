// SPDX-License-Identifier: MIT
// Prefetches what a walk over new code will probably read. Signal-safe: yes.
//
// Invariant: only the walked thread's own stack, above its sp, the map of a code heap and the word
// before a method that the map names are read. What that word points to is prefetched, but not
// read. So if `fp` is no frame pointer, that costs some cache lines, and nothing else.
#include "unwind/ahead.h"

#include "codemap/jit.h"
#include "unwind/sites.h"

enum { FRAMES = 16 };  // as many lines as a processor fetches at the same time, or more

// Prefetches the code header of a jitted method.
CS_ISLAND static void prefetch_header(const struct cs_world *world, const struct cs_near *near,
                                      uint64_t ip) {
  struct cs_range range = {
      near->begin, near->end, 0, near->heap, near->flags, true, {&world->mem, false, NULL}};
  uint64_t start, header;
  if (ip <= near->begin || ip >= near->end || near->heap == 0 ||
      cs_jit_start(world, &range, ip - 1, &start) != CS_STOP_NONE || start == 0 ||
      !cs_mem_u64(&world->mem, start - 8, &header))
    return;
  __builtin_prefetch((const void *)(uintptr_t)header);
  __builtin_prefetch((const void *)(uintptr_t)(header + world->layout.code_header.unwind_infos));
}

CS_ISLAND void cs_prefetch_ahead(const struct cs_world *world, struct cs_near *near,
                                 const struct cs_stack *stack, uint64_t fp) {
  uint64_t ips[FRAMES], from = stack->lo;
  unsigned count = 0;
  while (count < FRAMES && (fp & 7) == 0 && fp >= from && fp < stack->hi && stack->hi - fp >= 16) {
    const volatile cs_any_u64 *frame = (const volatile cs_any_u64 *)(uintptr_t)fp;
    ips[count++] = frame[1];
    __builtin_prefetch(&world->sites->words[CS_SITE_PLACE(CS_SITE_HASH(frame[1]))], 1);
    near->prefetched = from = fp + 8;
    fp = frame[0];
  }
  for (unsigned i = 0; i < count; i++) prefetch_header(world, near, ips[i]);
}
