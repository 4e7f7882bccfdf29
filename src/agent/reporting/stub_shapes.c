// SPDX-License-Identifier: MIT
// Names for code that is in no map, or only in a range of stubs: the runtime makes it in memory of
// its own and registers it nowhere (docs/code-without-unwind-data.md). Only its instructions tell
// what it is. Invariant: a name is given only if the ip lies between the first byte of a shape and
// its greatest length, on one page. The agent's thread only. Signal-safe: no.
#include "reporting/stub_shapes.h"

#include "life/library.h"

enum { ANY = 0x100, PAGE = 4096, SHAPE_BYTES = 20 };

struct shape {
  const char *name;
  uint16_t align;  // of its first byte
  uint16_t size;   // of the longest instance
  uint16_t count;  // of `bytes`
  uint16_t bytes[SHAPE_BYTES];
};
static const struct shape shapes[] = {
    // jmp [target]; mov r10, [method]; jmp [prestub], and the older form without the first
    {"[precode stub]",
     8,
     24,
     15,
     {0xFF, 0x25, ANY, ANY, 0x00, 0x00, 0x4C, 0x8B, 0x15, ANY, ANY, 0x00, 0x00, 0xFF, 0x25}},
    {"[precode stub]", 8, 24, 9, {0x4C, 0x8B, 0x15, ANY, ANY, 0x00, 0x00, 0xFF, 0x25}},
    // mov rax, [counter]; dec word [rax]; je; jmp; jmp
    {"[call counting stub]", 8, 24, 20, {0x48, 0x8B, 0x05, ANY,  ANY,  0x00, 0x00,
                                         0x66, 0xFF, 0x08, 0x74, 0x06, 0xFF, 0x25,
                                         ANY,  ANY,  0x00, 0x00, 0xFF, 0x25}},
    // mov rax, rsp; mov r11, rdi; then arguments move
    {"[delegate shuffle thunk]", 8, 128, 6, {0x48, 0x8B, 0xC4, 0x49, 0x89, 0xFB}},
    // add rdi, 8; mov rax, target; jmp rax: calls a boxed value's method
    {"[unboxing stub]", 8, 16, 6, {0x48, 0x83, 0xC7, 0x08, 0x48, 0xB8}},
    // mov rsi, [rdi] before it: the type is a hidden argument
    {"[unboxing stub]", 8, 19, 9, {0x48, 0x8B, 0x37, 0x48, 0x83, 0xC7, 0x08, 0x48, 0xB8}},
    // mov rsi, type; mov rax, target; jmp rax: passes shared generic code its hidden argument
    {"[instantiating stub]",
     8,
     22,
     12,
     {0x48, 0xBE, ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY, 0x48, 0xB8}},
    {"[instantiating stub]",
     8,
     25,
     15,
     {0x48, 0x89, 0xF2, 0x48, 0xBE, ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY, 0x48, 0xB8}},
    // mov [rdi], rsi; then as one of the templates in libcoreclr goes on
    {"[write barrier]", 16, 0x140, 8, {0x48, 0x89, 0x37, 0x49, 0x89, 0xF8, 0x48, 0xB8}},
    {"[write barrier]", 16, 0x140, 8, {0x48, 0x89, 0x37, 0x48, 0x89, 0xF8, 0x49, 0xBA}},
    {"[write barrier]", 16, 0x140, 8, {0x48, 0x89, 0x37, 0x48, 0x89, 0xF8, 0x49, 0xB8}},
    {"[write barrier]", 16, 0x140, 8, {0x48, 0x89, 0x37, 0x0F, 0x1F, 0x00, 0x48, 0xB8}},
    {"[write barrier]", 16, 0x140, 8, {0x48, 0x89, 0x37, 0x0F, 0x1F, 0x00, 0x49, 0xB8}},
};

static bool begins_at(const struct shape *shape, const uint8_t *code) {
  for (unsigned i = 0; i < shape->count; i++)
    if (shape->bytes[i] != ANY && shape->bytes[i] != code[i]) return false;
  return true;
}

// `at`: the ip's offset in the page.
static bool holds(const struct shape *shape, const uint8_t *page, unsigned at) {
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
  for (unsigned i = 0; i < CS_COUNT(shapes); i++)
    if (holds(&shapes[i], page, (unsigned)(ip - begin))) return shapes[i].name;
  return NULL;
}
