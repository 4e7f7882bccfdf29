// SPDX-License-Identifier: MIT
// Names for code that is in no map, or only in a range of stubs: the runtime generates it and
// registers it nowhere (docs/code-without-unwind-data.md). Only its instructions show what it is.
// Invariant: a name is given only if the ip lies between the first byte of a shape and the shape's
// greatest length, on one page. The agent's thread only. Signal-safe: no.
#include "reporting/stub_shapes.h"

#include "life/library.h"
#include "reporting/shapes.h"

enum { PAGE = 4096 };

static bool begins_at(const struct cs_shape *shape, const uint8_t *code) {
  for (unsigned i = 0; i < shape->count; i++)
    if (shape->bytes[i] != CS_ANY && shape->bytes[i] != code[i]) return false;
  return true;
}

// `at`: the ip's offset in the page.
static bool holds(const struct cs_shape *shape, const uint8_t *page, unsigned at) {
  unsigned first = at & ~(shape->align - 1u);
  for (unsigned begin = first; begin + shape->size > at; begin -= shape->align) {
    if (begin + shape->count <= PAGE && begins_at(shape, page + begin)) return true;
    if (begin < shape->align) return false;
  }
  return false;
}

const char *cs_stub_shape_name(uint64_t ip) {
  static uint8_t page[PAGE];
  uint64_t begin = ip & ~(uint64_t)(PAGE - 1);
  if (!cs_mem_read_guarded(&cs_library.world.mem, begin, page, sizeof page)) return NULL;
  for (unsigned i = 0; i < CS_COUNT(cs_shapes); i++)
    if (holds(&cs_shapes[i], page, (unsigned)(ip - begin))) return cs_shapes[i].name;
  return NULL;
}
