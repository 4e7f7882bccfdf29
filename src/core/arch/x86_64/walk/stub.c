// SPDX-License-Identifier: MIT
// Stubs of the runtime have no unwind data: precode, call-counting, dispatch, resolve and lookup
// stubs, delay-load thunks, jump stubs, and write barriers that were copied to executable memory.
// They run as leaves: most push nothing, a few push one or two words (a resolve stub its cache
// entry, a lookup stub and a delay-load thunk their arguments). So the caller's return address is
// one of the topmost words of the stack, and is recognised by the call before it in the code that
// it points into. Nothing else is accepted. Signal-safe: yes.
#include "walk/bridge.h"

enum {
  MAX_PUSHED = 3,  // words that a stub may have pushed: slow resolve path 2, delay-load thunk 2, +1
  LONGEST_CALL = 8,   // prefix, FF /2, SIB, disp32
  SHORTEST_CALL = 2,  // call reg
  // Bytes of a stub; the longest, a copied write barrier, has about 160.
  LONGEST_STUB = 256,
};

// Returns the length of the `FF /2` call whose opcode is at b[0], or 0.
CS_ISLAND static unsigned indirect_call_length(const uint8_t *b, unsigned room) {
  if (room < 2 || b[0] != 0xFF || (b[1] & 0x38) != 0x10) return 0;
  unsigned mod = b[1] >> 6, rm = b[1] & 7;
  unsigned length = 2;
  if (mod == 3) return length;
  if (rm == 4) length++;  // SIB
  if (mod == 1) length += 1;
  if (mod == 2 || (mod == 0 && rm == 5)) length += 4;
  if (mod == 0 && rm == 4 && room > 2 && (b[2] & 7) == 5) length += 4;
  return length;
}

CS_ISLAND static bool ends_with_call(const uint8_t *b, unsigned len) {
  if (len >= 5 && b[len - 5] == 0xE8) return true;
  for (unsigned n = SHORTEST_CALL; n < LONGEST_CALL && n <= len; n++)
    if (indirect_call_length(b + len - n, n) == n) return true;
  return false;
}

CS_ISLAND bool cs_is_return_address(const struct cs_world *world, uint64_t ip) {
  struct cs_code code;
  uint8_t before[LONGEST_CALL];
  if (ip < LONGEST_CALL || cs_codemap_find(world, ip - 1, &code) != CS_STOP_NONE) return false;
  if (!cs_code_is_managed(&code) && code.kind != CS_CODE_NATIVE) return false;
  unsigned len = ip - code.begin < LONGEST_CALL ? (unsigned)(ip - code.begin) : LONGEST_CALL;
  // Native text is read guarded, since a stale word may point into an image that is being unloaded.
  bool read = code.collectible || code.kind == CS_CODE_NATIVE
                  ? cs_mem_read_guarded(&world->mem, ip - len, before, len)
                  : cs_mem_read(&world->mem, ip - len, before, len);
  return read && ends_with_call(before, len);
}

// An optional endbr64, then jmp [rip + n]. .NET's libraries are linked with -z now, so the lazy
// half of an entry (push, jmp) never runs.
CS_ISLAND static bool is_plt_entry(const uint8_t *b, unsigned len) {
  static const uint8_t endbr[4] = {0xF3, 0x0F, 0x1E, 0xFA};
  bool is_endbr = len >= 6;
  for (unsigned i = 0; i < sizeof endbr && is_endbr; i++) is_endbr = b[i] == endbr[i];
  return len >= 2 && ((b[0] == 0xFF && b[1] == 0x25) || (is_endbr && b[4] == 0xFF && b[5] == 0x25));
}

// syscall; test rax, rax; jl ...; je +1; ret: glibc's clone and clone3 have no rule from the system
// call on, because the child returns there on another stack. In the child rax is 0.
CS_ISLAND static bool is_clone(const uint8_t *b, unsigned len, uint64_t rax) {
  static const uint8_t code[] = {0x0F, 0x05, 0x48, 0x85, 0xC0, 0x7C, 0, 0x74, 0x01, 0xC3};
  static const uint8_t starts[] = {0, 2, 5, 7, 9};  // offsets of the instructions
  for (unsigned i = 0; i < CS_COUNT(starts); i++) {
    unsigned at = starts[i], n = 0;
    while (at + n < sizeof code && n < len && (b[n] == code[at + n] || at + n == 6)) n++;
    if (at + n == sizeof code) return at == 0 || at == 9 || rax != 0;
  }
  return false;
}

// In all of these, rsp is as the caller's call left it.
CS_ISLAND enum cs_stop cs_bridge_unruled(const struct cs_walk *walk, struct cs_regs *regs) {
  enum { LONGEST = 10 };
  uint8_t b[LONGEST];
  unsigned len = LONGEST;
  uint64_t word;
  while (len != 0 && !cs_mem_read_guarded(&walk->world->mem, regs->r[CS_RIP], b, len)) len--;
  if (len == 0) return CS_STOP_UNREADABLE;
  if (!is_plt_entry(b, len) && !is_clone(b, len, regs->r[CS_RAX])) return CS_STOP_NO_NATIVE_RULE;
  if (!cs_stack_u64(&walk->world->mem, &walk->stack, regs->r[CS_RSP], &word)) return CS_STOP_BAD_SP;
  if (!cs_is_return_address(walk->world, word)) return CS_STOP_NO_NATIVE_RULE;
  regs->r[CS_RIP] = word;
  regs->r[CS_RSP] += 8;
  regs->known &= CS_REGS_PRESERVED;
  return CS_STOP_NONE;
}

CS_ISLAND enum cs_stop cs_bridge_stub(const struct cs_walk *walk, struct cs_regs *regs) {
  uint64_t sp = regs->r[CS_RSP];
  if ((sp & 7) != 0) return CS_STOP_BAD_SP;
  for (unsigned pushed = 0; pushed <= MAX_PUSHED; pushed++) {
    uint64_t word;
    if (!cs_stack_u64(&walk->world->mem, &walk->stack, sp + pushed * 8, &word))
      return CS_STOP_BAD_SP;
    if (!cs_is_return_address(walk->world, word)) continue;
    regs->r[CS_RIP] = word;
    regs->r[CS_RSP] = sp + pushed * 8 + 8;
    regs->known &= CS_REGS_PRESERVED;
    return CS_STOP_NONE;
  }
  return CS_STOP_STUB;
}

// Finds the target of the call that ends at `ip`, if it is call rel32 or call [rip + disp32].
CS_ISLAND static bool call_target(const struct cs_mem *mem, uint64_t ip, uint64_t *target) {
  enum { DIRECT = 5, BY_CELL = 6 };
  uint8_t b[BY_CELL];
  int32_t distance;
  if (!cs_mem_read_guarded(mem, ip - BY_CELL, b, BY_CELL)) return false;
  for (unsigned i = 0; i < sizeof distance; i++)
    ((uint8_t *)&distance)[i] = b[BY_CELL - sizeof distance + i];
  *target = ip + (uint64_t)(int64_t)distance;
  if (b[0] == 0xFF && b[1] == 0x15)
    return cs_mem_read_guarded(mem, *target, target, sizeof *target);
  return b[BY_CELL - DIRECT] == 0xE8;
}

// Follows jmp [rip + disp32] at *at, as a precode begins.
CS_ISLAND static bool follow_jump(const struct cs_mem *mem, uint64_t *at) {
  enum { LENGTH = 6 };
  uint8_t b[LENGTH];
  int32_t distance;
  if (!cs_mem_read_guarded(mem, *at, b, LENGTH) || b[0] != 0xFF || b[1] != 0x25) return false;
  for (unsigned i = 0; i < sizeof distance; i++) ((uint8_t *)&distance)[i] = b[2 + i];
  return cs_mem_read_guarded(mem, *at + LENGTH + (uint64_t)(int64_t)distance, at, sizeof *at);
}

CS_ISLAND static bool leads_to(const struct cs_mem *mem, uint64_t target, uint64_t ip) {
  enum { MAX_JUMPS = 2 };  // a precode, which leads to a call counting stub
  for (unsigned jumps = 0; ip < target || ip - target >= LONGEST_STUB; jumps++)
    if (jumps == MAX_JUMPS || !follow_jump(mem, &target)) return false;
  return true;
}

CS_ISLAND enum cs_stop cs_bridge_called_stub(const struct cs_walk *walk, struct cs_regs *regs) {
  const struct cs_mem *mem = &walk->world->mem;
  uint64_t word, target, sp = regs->r[CS_RSP], ip = regs->r[CS_RIP];
  if ((sp & 7) != 0 || !cs_stack_u64(mem, &walk->stack, sp, &word)) return CS_STOP_BAD_SP;
  if (!cs_is_return_address(walk->world, word) || !call_target(mem, word, &target) ||
      !leads_to(mem, target, ip))
    return CS_STOP_STUB;
  regs->r[CS_RIP] = word;
  regs->r[CS_RSP] = sp + 8;
  regs->known &= CS_REGS_PRESERVED;
  return CS_STOP_NONE;
}

// The call has pushed its return address just below the call site's sp.
CS_ISLAND uint64_t cs_bridge_call_in_progress(const struct cs_walk *walk, uint64_t ip,
                                              uint64_t sp) {
  struct cs_code noted, pushed;
  uint64_t word;
  if (sp < 8 || !cs_bridge_get(walk, sp - 8, &word) || word == ip) return ip;
  if (cs_codemap_find_managed(walk->world, ip - 1, &noted) != CS_STOP_NONE ||
      noted.kind != CS_CODE_R2R ||
      cs_codemap_find_managed(walk->world, word - 1, &pushed) != CS_STOP_NONE ||
      pushed.kind != CS_CODE_R2R || pushed.begin != noted.begin ||
      !cs_is_return_address(walk->world, word))
    return ip;
  return word;
}
