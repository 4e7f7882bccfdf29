// SPDX-License-Identifier: MIT
#include "support/fake_clr.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

enum { ARENA = 1 << 20, CODE = 1 << 20, CHUNK = 1 << 17, HEADER = 128, FAKE_FUNCTIONS = 64 };

static void put64(void *base, uint64_t off, uint64_t v) {
  memcpy((uint8_t *)base + off, &v, 8);
}
static void put32(void *base, uint64_t off, uint32_t v) {
  memcpy((uint8_t *)base + off, &v, 4);
}
static uint64_t addr(const void *p) {
  return (uint64_t)(uintptr_t)p;
}

unsigned fake_guarded_reads;
bool fake_counting_read(const struct cs_mem *mem, uint64_t address, void *out, size_t size) {
  (void)mem;
  fake_guarded_reads++;
  memcpy(out, (const void *)(uintptr_t)address, size);
  return true;
}

void *fake_clr_alloc(struct fake_clr *clr, size_t size) {
  uint8_t *p = clr->arena_next;
  clr->arena_next += (size + 15) & ~15ull;
  assert(clr->arena_next <= clr->arena_end);
  return p;
}

static void set_layout(struct cs_layout *l) {
  fake_set_machine(l);
  l->stub_code_block_last = 15;
  l->thread.preemptive_gc_disabled = 4;
  l->thread.frame = 8;
  l->range_fragment.range_begin = 8;
  l->range_fragment.range_end_open = 16;
  l->range_fragment.range_section = 24;
  l->range_section.range_end_open = 8;
  l->range_section.flags = 16;
  l->range_section.jit_manager = 24;
  l->range_section.r2r_module = 32;
  l->range_section.heap_list = 40;
  l->heap_node.start_address = 16;
  l->heap_node.end_address = 24;
  l->heap_node.map_base = 32;
  l->heap_node.header_map = 40;
  l->code_header.gc_info = 16;
  l->code_header.method_desc = 24;
  l->code_header.num_unwind_infos = 32;
  l->code_header.unwind_infos = 36;
  l->module.ready_to_run_info = 704;
  l->r2r_info.runtime_functions = 80;
  l->r2r_info.num_runtime_functions = 88;
  l->r2r_info.delay_load_thunks = 112;
  l->image_data_directory.size = 4;
  l->frame.next = 8;
  l->inlined_call_frame.call_site_sp = 24;
  l->inlined_call_frame.caller_return_address = 32;
  l->inlined_call_frame.callee_saved_fp = 40;
  l->framed_method_frame.transition_block_ptr = 16;
  l->frame_ids.inlined_call = 1;
  l->frame_ids.resumable = 2;
  l->frame_ids.redirected_thread = 3;
  l->frame_ids.faulting_exception = 4;
  l->frame_ids.software_exception = 5;
  l->frame_ids.hijack = 8;
  l->frame_ids.prestub_method = 9;
  l->frame_ids.call_counting_helper = 10;
  l->frame_ids.stub_dispatch = 11;
  l->frame_ids.external_method = 12;
  l->frame_ids.dynamic_helper = 13;
  l->frame_ids.pinvoke_calli = 7;
  l->frame_ids.debugger_u2m_catch = 17;
}

// Enters [begin, end) into the range map.
static void add_range(struct fake_clr *clr, uint64_t begin, uint64_t end, uint32_t flags,
                      uint64_t r2r_module, uint64_t heap) {
  uint8_t *section = fake_clr_alloc(clr, 80);
  put64(section, 0, begin);
  put64(section, 8, end);
  put32(section, 16, flags);
  put64(section, 24, FAKE_JIT_MANAGER);
  put64(section, 32, r2r_module);
  put64(section, 40, heap);
  if (heap != 0) clr->heap_section = section;
  for (uint64_t chunk = begin & ~(uint64_t)(CHUNK - 1); chunk < end; chunk += CHUNK) {
    uint64_t *table = clr->top;
    for (int level = 4; level > 0; level--) {
      uint64_t *slot = &table[(chunk >> (17 + 8 * level)) & 255];
      if (*slot == 0) *slot = addr(fake_clr_alloc(clr, 256 * 8));
      table = (uint64_t *)(uintptr_t)*slot;
    }
    uint64_t *leaf = &table[(chunk >> 17) & 255];
    uint8_t *fragment = fake_clr_alloc(clr, 32);
    put64(fragment, 0, *leaf);
    put64(fragment, 8, begin);
    put64(fragment, 16, end);
    put64(fragment, 24, addr(section));
    *leaf = addr(fragment);
  }
}

void fake_clr_init(struct fake_clr *clr) {
  memset(clr, 0, sizeof *clr);
  uint8_t *m =
      mmap(NULL, ARENA + CODE + CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert(m != MAP_FAILED);
  clr->arena = clr->arena_next = m;
  clr->arena_end = m + ARENA;
  clr->code = (uint8_t *)(uintptr_t)((addr(m) + ARENA + CHUNK - 1) & ~(uint64_t)(CHUNK - 1));
  clr->code_next = clr->code;
  clr->code_end = clr->code + CODE / 2;
  cs_mem_init_self(&clr->world.mem);
  set_layout(&clr->world.layout);
  clr->top = fake_clr_alloc(clr, 256 * 8);
  clr->world.layout.code_range_map = addr(clr->top);
  clr->map_base = addr(clr->code);
  clr->nibbles = fake_clr_alloc(clr, CODE / 2 / 32 / 2 + 4);
  uint8_t *node = fake_clr_alloc(clr, 64);
  put64(node, 16, addr(clr->code));
  put64(node, 24, addr(clr->code_end));
  put64(node, 32, clr->map_base);
  put64(node, 40, addr(clr->nibbles));
  add_range(clr, addr(clr->code), addr(clr->code_end), CS_RANGE_CODE_HEAP, 0, addr(node));
}

void fake_clr_free(struct fake_clr *clr) {
  munmap(clr->arena, ARENA + CODE + CHUNK);
}

// Nibble map: the start's own nibble, and in version 2 pointers in units the method covers whole.
static void set_nibbles(struct fake_clr *clr, uint64_t start, uint64_t size) {
  uint64_t off = start - clr->map_base, first = off / 32;
  clr->nibbles[first / 8] |= (uint32_t)(off % 32 / 4 + 1) << (28 - first % 8 * 4);
  if (clr->world.layout.nibbles_only) return;
  for (uint64_t unit = off / 256 + 1; (unit + 1) * 256 <= off + size; unit++)
    clr->nibbles[unit] = (uint32_t)(off & ~15ull) | (uint32_t)(off % 16 / 4 + 9);
}

// Puts a function's unwind data at `next`, and its RUNTIME_FUNCTION at `entry`. Returns what
// follows.
static uint8_t *put_unwind(uint8_t *next, const uint8_t *base, const struct fake_function *f,
                           uint32_t begin, uint8_t *entry) {
  uint32_t words[FAKE_ENTRY / 4];
  next = (uint8_t *)(((uintptr_t)next + 3) & ~(uintptr_t)3);
  memcpy(next, f->unwind_info, f->unwind_size);
  fake_fit(next, f->size);
  fake_entry(words, begin, begin + f->size, (uint32_t)(next - base));
  memcpy(entry, words, sizeof words);
  return next + f->unwind_size;
}

uint64_t fake_clr_add_method(struct fake_clr *clr, const struct fake_function *functions,
                             unsigned count, uint64_t function_id, unsigned offset) {
  uint8_t *header = fake_clr_alloc(clr, HEADER + (size_t)FAKE_ENTRY * count);
  uint8_t *start = clr->code_next + 64 + offset;
  uint32_t begin[FAKE_FUNCTIONS];
  assert(count <= FAKE_FUNCTIONS);
  clr->code_next = start;
  put64(start, (uint64_t)-8, addr(header));
  put64(header, 24, function_id);
  put32(header, 32, count);
  for (unsigned i = 0; i < count; i++) {
    memcpy(clr->code_next, functions[i].code, functions[i].size);
    begin[i] = (uint32_t)(clr->code_next - clr->code);
    clr->code_next += functions[i].size;
  }
  uint64_t size = (uint64_t)(clr->code_next - start);
  for (unsigned i = 0; i < count; i++) {
    clr->code_next = put_unwind(clr->code_next, clr->code, &functions[i], begin[i],
                                header + 36 + (size_t)FAKE_ENTRY * i);
  }
  set_nibbles(clr, addr(start), size);
  clr->code_next = (uint8_t *)(((uintptr_t)clr->code_next + 31) & ~(uintptr_t)31);
  return addr(start);
}

uint64_t fake_clr_add_stub(struct fake_clr *clr, uint64_t kind, const uint8_t *code,
                           uint32_t size) {
  uint8_t *start = clr->code_next + 64;
  put64(start, (uint64_t)-8, kind);
  memcpy(start, code, size);
  set_nibbles(clr, addr(start), size);
  clr->code_next = (uint8_t *)(((uintptr_t)start + size + 31) & ~(uintptr_t)31);
  return addr(start);
}

uint64_t fake_clr_add_image(struct fake_clr *clr, const struct fake_function *functions,
                            unsigned count, uint64_t starts[]) {
  uint8_t *base = clr->code_end, *next = base + 64;  // right after the code heap
  uint8_t *table = fake_clr_alloc(clr, (size_t)FAKE_ENTRY * (count + 1));
  for (unsigned i = 0; i < count; i++) {
    next = (uint8_t *)(((uintptr_t)next + 15) & ~(uintptr_t)15);
    memcpy(next, functions[i].code, functions[i].size);
    starts[i] = addr(next);
    next += functions[i].size;
  }
  for (unsigned i = 0; i < count; i++) {
    next = put_unwind(next, base, &functions[i], (uint32_t)(starts[i] - addr(base)),
                      table + (size_t)FAKE_ENTRY * i);
  }
  put32(table, (uint64_t)FAKE_ENTRY * count, 0xFFFFFFFFu);
  uint8_t *module = fake_clr_alloc(clr, 1024), *info = fake_clr_alloc(clr, 512);
  uint8_t *directory = fake_clr_alloc(clr, 8);
  put32(directory, 0, 0x10000);  // delay-load thunks: [base + 64 KiB, + 256)
  put32(directory, 4, 256);
  put64(module, 704, addr(info));
  put64(info, 80, addr(table));
  put32(info, 88, count);
  put64(info, 112, addr(directory));
  add_range(clr, addr(base), addr(base) + (1 << 17), 0, addr(module), 0);
  return addr(base);
}

static void mark(uint64_t *table, int level, bool collectible) {
  for (unsigned i = 0; i < 256; i++) {
    if (table[i] == 0) continue;
    uint64_t child = table[i] & ~1ull;
    if (level > 0) mark((uint64_t *)(uintptr_t)child, level - 1, collectible);
    table[i] = child | (collectible ? 1 : 0);
  }
}

void fake_clr_set_collectible(struct fake_clr *clr, bool collectible) {
  mark(clr->top, 4, collectible);
}
