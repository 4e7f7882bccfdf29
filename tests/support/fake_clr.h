// SPDX-License-Identifier: MIT
// A CoreCLR that consists only of its data structures, for tests of the code map, the unwinder and
// the walk: range-section map, code heap with nibble map and code headers, a ReadyToRun image, a
// Thread. The offsets are those of .NET 10.0's data contract, so that a test reads like code for a
// real runtime.
#pragma once

#include "fake_machine.h"
#include "walk/walk.h"

struct fake_clr {
  struct cs_world world;
  uint8_t *arena, *arena_end, *arena_next;  // everything but code
  uint8_t *code, *code_next, *code_end;     // the code heap, 128 KiB aligned
  uint32_t *nibbles;
  uint64_t map_base;
  uint64_t *top;          // the range map's outermost table
  uint8_t *heap_section;  // the code heap's RangeSection
};
#define FAKE_JIT_MANAGER 0x4A49544Dull  // RangeSection.JitManager of every section

struct fake_function {  // one RUNTIME_FUNCTION of a method: body or funclet
  const uint8_t *code;
  uint32_t size;
  const uint8_t *unwind_info;
  uint32_t unwind_size;
};

void fake_clr_init(struct fake_clr *clr);
void fake_clr_free(struct fake_clr *clr);
// Adds a method to the code heap and returns its start. `offset`: its place in a 32-byte bucket.
uint64_t fake_clr_add_method(struct fake_clr *clr, const struct fake_function *functions,
                             unsigned count, uint64_t function_id, unsigned offset);
// A stub block of the given STUB_CODE_BLOCK_* kind.
uint64_t fake_clr_add_stub(struct fake_clr *clr, uint64_t kind, const uint8_t *code, uint32_t size);
// Adds a ReadyToRun image with these functions in order, aligned to 16 bytes; returns its base.
uint64_t fake_clr_add_image(struct fake_clr *clr, const struct fake_function *functions,
                            unsigned count, uint64_t starts[]);
// Marks all structures on the way to the code heap as collectible, or not.
void fake_clr_set_collectible(struct fake_clr *clr, bool collectible);
void *fake_clr_alloc(struct fake_clr *clr, size_t size);
// For mem.read_guarded: reads without a guard, and counts.
bool fake_counting_read(const struct cs_mem *mem, uint64_t address, void *out, size_t size);
extern unsigned fake_guarded_reads;
