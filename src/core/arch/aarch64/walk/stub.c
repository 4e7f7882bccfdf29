// SPDX-License-Identifier: MIT
// Stubs of the runtime have no unwind data: precode, call-counting, dispatch, resolve and lookup
// stubs, delay-load thunks, jump stubs, and write barriers that were copied to executable memory.
// They run as leaves and push nothing, so the caller's return address is in lr. It is accepted only
// if it follows a call in known code. Signal-safe: yes.
#include "walk/bridge.h"

enum { LONGEST_STUB = 256 };  // bytes; the longest is a copied write barrier

// bl, blr, and blr of a signed address.
CS_ISLAND static bool is_call(uint32_t code) {
  return code >> 26 == 0x25 || (code & 0xFFFFFC1F) == 0xD63F0000 ||
         (code & 0xFEFFF800) == 0xD63F0800;
}

// Native text is read guarded, since a stale word may point into an image that is being unloaded.
CS_ISLAND static bool read_code(const struct cs_world *world, const struct cs_code *code,
                                uint64_t at, uint32_t *word) {
  return code->collectible || code->kind == CS_CODE_NATIVE
             ? cs_mem_read_guarded(&world->mem, at, word, sizeof *word)
             : cs_mem_read(&world->mem, at, word, sizeof *word);
}

CS_ISLAND bool cs_is_return_address(const struct cs_world *world, uint64_t ip) {
  struct cs_code code;
  uint32_t before;
  if (ip < 4 || ip % 4 != 0 || cs_codemap_find(world, ip - 1, &code) != CS_STOP_NONE) return false;
  if (!cs_code_is_managed(&code) && code.kind != CS_CODE_NATIVE) return false;
  if (ip - code.begin < 4) return false;
  return read_code(world, &code, ip - 4, &before) && is_call(before);
}

// The call has its return address in lr, which its callee may keep anywhere. But the helper is
// called right before the call, so that is the next one in the code, if no branch comes before it.
CS_ISLAND uint64_t cs_bridge_call_in_progress(const struct cs_walk *walk, uint64_t ip,
                                              uint64_t sp) {
  enum { LONGEST_WAY = 256, BRANCHES = 5, HINT = 0xD503201F, HINT_MASK = 0xFFFFF01F };
  struct cs_code noted;
  uint32_t code;
  (void)sp;
  if (cs_codemap_find_managed(walk->world, ip - 1, &noted) != CS_STOP_NONE ||
      noted.kind != CS_CODE_R2R)
    return ip;
  for (uint64_t at = ip; at - ip < LONGEST_WAY && at + 4 <= noted.end; at += 4) {
    if (!read_code(walk->world, &noted, at, &code)) return ip;
    if (is_call(code)) return at + 4;
    if ((code >> 26 & 7) == BRANCHES && (code & HINT_MASK) != HINT) return ip;
  }
  return ip;
}

// Returns to lr, if that is a return address.
CS_ISLAND static enum cs_stop return_by_lr(const struct cs_walk *walk, struct cs_regs *regs,
                                           enum cs_stop otherwise) {
  if ((regs->r[CS_SP] & 7) != 0) return CS_STOP_BAD_SP;
  if (!(regs->known & CS_REG_BIT(CS_LR))) return otherwise;
  uint64_t ip = cs_ip_of(regs->r[CS_LR]);
  if (!cs_is_return_address(walk->world, ip)) return otherwise;
  regs->r[CS_IP] = ip;
  regs->known &= CS_REGS_PRESERVED;
  return CS_STOP_NONE;
}

// adrp x16; ldr x17, [x16]; add x16, x16; br x17, possibly after a bti. `from`: which of these the
// first word of `code` is. Returns false if it is none of them.
CS_ISLAND static bool is_plt_entry(const uint32_t *code, unsigned *from) {
  static const struct {
    uint32_t mask, code;
  } entry[] = {{0xFFFFFFFF, 0xD503245F},
               {0x9F00001F, 0x90000010},
               {0xFFC003FF, 0xF9400211},
               {0xFFC003FF, 0x91000210},
               {0xFFFFFFFF, 0xD61F0220}};
  for (unsigned start = 0; start < CS_COUNT(entry); start++) {
    unsigned n = 0;
    while (start + n < CS_COUNT(entry) &&
           (code[n] & entry[start + n].mask) == entry[start + n].code)
      n++;
    *from = start;
    if (start + n == CS_COUNT(entry)) return true;
  }
  return false;
}

// The first entry of a PLT, through which functions are bound when they are called first, has
// stp x16, lr, [sp, -16]! before the same instructions. Returns false if the code is no entry of a
// PLT. *pushed: the bytes that it has pushed already.
CS_ISLAND static bool in_plt(const struct cs_mem *mem, uint64_t ip, const uint32_t *code,
                             uint64_t *pushed) {
  enum { ADRP = 1 };
  const uint32_t push = 0xA9BF7BF0;
  uint32_t before;
  unsigned from;
  *pushed = 0;
  if (code[0] == push) return is_plt_entry(code + 1, &from) && from == ADRP;
  if (!is_plt_entry(code, &from)) return false;
  if (from >= ADRP &&
      cs_mem_read_guarded(mem, ip - 4 * (from - ADRP + 1ull), &before, sizeof before) &&
      before == push)
    *pushed = 16;
  return true;
}

// cmp x0, 0; b.eq; b.lt; ret: glibc's clone has no rule from the system call on, because the child
// returns there on another stack. In the child x0 is 0.
CS_ISLAND static bool is_clone(const uint32_t *code, uint64_t x0) {
  static const struct {
    uint32_t mask, code;
  } entry[] = {{0xFFFFFFFF, 0xF100001F},
               {0xFF00001F, 0x54000000},
               {0xFF00001F, 0x5400000B},
               {0xFFFFFFFF, 0xD65F03C0}};
  for (unsigned start = 0; start < CS_COUNT(entry); start++) {
    unsigned n = 0;
    while (start + n < CS_COUNT(entry) &&
           (code[n] & entry[start + n].mask) == entry[start + n].code)
      n++;
    if (start + n == CS_COUNT(entry)) return start + 1 == CS_COUNT(entry) || x0 != 0;
  }
  return false;
}

// In all of these, lr is as the caller's call left it.
CS_ISLAND enum cs_stop cs_bridge_unruled(const struct cs_walk *walk, struct cs_regs *regs) {
  const struct cs_mem *mem = &walk->world->mem;
  uint64_t pushed;
  uint32_t code[6] = {0};
  unsigned size = sizeof code;
  while (size != 0 && !cs_mem_read_guarded(mem, regs->r[CS_IP], code, size)) size -= 4;
  if (size == 0) return CS_STOP_UNREADABLE;
  if (!in_plt(mem, regs->r[CS_IP], code, &pushed) && !is_clone(code, regs->r[CS_X0]))
    return CS_STOP_NO_NATIVE_RULE;
  enum cs_stop stop = return_by_lr(walk, regs, CS_STOP_NO_NATIVE_RULE);
  if (stop == CS_STOP_NONE) regs->r[CS_SP] += pushed;
  return stop;
}

CS_ISLAND enum cs_stop cs_bridge_stub(const struct cs_walk *walk, struct cs_regs *regs) {
  return return_by_lr(walk, regs, CS_STOP_STUB);
}

CS_ISLAND enum cs_stop cs_bridge_called_stub(const struct cs_walk *walk, struct cs_regs *regs) {
  uint32_t call;
  uint64_t ip = regs->r[CS_IP], lr = cs_ip_of(regs->r[CS_LR]);
  if (!(regs->known & CS_REG_BIT(CS_LR)) || lr < 4 ||
      !cs_mem_read_guarded(&walk->world->mem, lr - 4, &call, sizeof call) || call >> 26 != 0x25)
    return CS_STOP_STUB;
  int64_t words = (int32_t)(call << 6) >> 6;
  uint64_t target = lr - 4 + (uint64_t)(words * 4);
  if (ip < target || ip - target >= LONGEST_STUB) return CS_STOP_STUB;
  return return_by_lr(walk, regs, CS_STOP_STUB);
}
