// SPDX-License-Identifier: MIT
// UNWIND_INFO and epilogs: a step over a managed frame whose registers, stack, code and unwind data
// come from the input. The step must return, and must read nothing else.
#include <string.h>

#include "fuzz.h"
#include "unwind/managed.h"

enum { BASE = 0x10000, STACK = 0x200000, STACK_BYTES = 512, REGISTERS = 16 };
static const uint8_t *bytes;
static size_t byte_count;
static uint8_t stack_bytes[STACK_BYTES];

static bool read_at(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  (void)mem;
  if (address >= BASE && address - BASE <= byte_count && len <= byte_count - (address - BASE)) {
    memcpy(dst, bytes + (address - BASE), len);
    return true;
  }
  if (address >= STACK && address - STACK <= STACK_BYTES &&
      len <= STACK_BYTES - (address - STACK)) {
    memcpy(dst, stack_bytes + (address - STACK), len);
    return true;
  }
  return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct cs_world world = {.mem = {.read = read_at, .guard_works = true}};
  struct cs_stack stack = {.lo = STACK, .hi = STACK + STACK_BYTES};
  struct cs_regs regs = {0};
  uint16_t head[4];
  if (size < sizeof head + REGISTERS + 8) return 0;
  memcpy(head, data, sizeof head);
  for (unsigned i = 0; i < REGISTERS; i++) regs.r[i] = STACK + data[sizeof head + i] * 2u;
  bytes = data + sizeof head + REGISTERS;
  byte_count = size - sizeof head - REGISTERS;
  for (size_t i = 0; i < STACK_BYTES; i++) stack_bytes[i] = bytes[i % byte_count];
  world.layout.runtime_function.unwind_data = 8;
  struct cs_code code = {.kind = CS_CODE_JIT, .collectible = head[3] & 1, .base = BASE};
  code.begin = BASE + head[0] % byte_count;
  code.end = code.begin + head[1] % 256;
  code.unwind_info = BASE + head[2] % byte_count;
  code.method_start = code.begin;
  regs.r[CS_RIP] = code.begin + (head[3] >> 1) % 256;
  regs.known = UINT32_MAX;
  (void)cs_unwind_managed(&world, &code, &stack, (head[3] & 2) != 0, &regs);
  return 0;
}
