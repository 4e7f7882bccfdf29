// SPDX-License-Identifier: MIT
// How libgcc continues where a C++ exception is caught. It overwrites the registers that its own
// function has saved, the return address included, with those of the catching frame
// (uw_install_context), and leaves by restoring "its caller's". From then on .eh_frame describes a
// caller that is a mixture of two frames. Such a function is recognised by its .eh_frame: it saves
// rax and rdx, which no other function does, and its CFA ends up in rcx. The registers are copied
// by its last call but one; the last one calls an empty function, for debuggers. From that copying
// on, the corrected rules lead to the catching frame. From the place on where the CFA is in rcx,
// they say that the registers have their final values. Invariant: if the code has another form, all
// rows stay as they are. Not for handlers.
#include "native/ehreturn.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "native/cfi_private.h"

enum { CALL = 0xE8, CALL_BYTES = 5, NEAR = 64, MAX_FUNCTION = 64 << 10 };

// Returns the target of the call at code[at], as an offset in the text.
static uint64_t target(const uint8_t *code, size_t at, uint64_t offset) {
  int32_t by;
  memcpy(&by, code + at + 1, sizeof by);
  return offset + at + CALL_BYTES + (uint64_t)(int64_t)by;
}

// Returns whether a function begins at `offset`. If not, the call was in the middle of an
// instruction.
static bool is_function(const struct cs_rows *rows, uint64_t offset) {
  uint32_t lo = 0, hi = rows->count;
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (rows->ip[mid] < offset)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < rows->count && rows->ip[lo] == offset && offset % 16 == 0;
}

// An optional endbr64, then ret: _Unwind_DebugHook.
static bool is_empty(struct cs_process_memory *process, uint64_t address) {
  static const uint8_t endbr[] = {0xF3, 0x0F, 0x1E, 0xFA};
  uint8_t code[sizeof endbr + 1];
  if (!cs_process_memory_read(process, address, code, sizeof code)) return false;
  return code[memcmp(code, endbr, sizeof endbr) == 0 ? sizeof endbr : 0] == 0xC3;
}

// Returns the offset in the function at which the copying is called, or 0.
static size_t find_install(struct cs_process_memory *process, uint64_t begin,
                           const struct cs_rows *rows, const uint8_t *code, size_t size,
                           uint64_t offset) {
  size_t hook = 0;  // offset of the call to the empty function, once it is found
  for (size_t at = size >= CALL_BYTES ? size - CALL_BYTES : 0; at > 0; at--) {
    if (hook != 0 && hook - at > NEAR) return 0;
    if (code[at] != CALL || !is_function(rows, target(code, at, offset))) continue;
    if (hook != 0) return at;
    if (!is_empty(process, begin + target(code, at, offset))) return 0;
    hook = at;
  }
  return 0;
}

// Returns the rule that replaces `rule` while the registers are being copied, and after that.
static uint16_t rule_while_copied(struct cs_rules *rules, uint16_t rule) {
  struct cs_cfi_rule r = rules->rule[rule];
  if (rule == CS_NO_RULE || r.cfa_how != CS_CFA_REG) return rule;
  r.cfa_how = CS_CFA_EH_RETURN;
  return cs_rules_intern(rules, &r);
}

// Returns the rule that replaces `rule` at the end, where all registers have been loaded.
static uint16_t rule_at_exit(struct cs_rules *rules, uint16_t rule) {
  if (rule == CS_NO_RULE) return rule;
  struct cs_cfi_rule r = rules->rule[rule];
  if (r.cfa_how == CS_CFA_REG && r.cfa_reg == CS_RSP && r.cfa_off == 0) {  // jmp rcx
    r.cfa_how = CS_CFA_RESUME;
    r.cfa_add = CS_RSP;
  }
  for (unsigned i = 0; i < CS_CFI_RA; i++)
    if (r.slot[i].how == CS_CFI_AT_CFA) r.slot[i].how = CS_CFI_SAME, r.slot[i].off = 0;
  return cs_rules_intern(rules, &r);
}

// Uses rule_while_copied in [from, leave_ip), and rule_at_exit from `leave_ip` until the CFA is
// relative to rbp again.
static bool correct(struct cs_rules *rules, uint32_t from, uint32_t leave_ip, uint32_t function_end,
                    struct cs_rows *rows) {
  struct cs_rows out = {0};
  bool ok = true, begun = false, end = false;
  for (uint32_t i = 0; ok && i < rows->count; i++) {
    uint32_t ip = rows->ip[i], next = i + 1 < rows->count ? rows->ip[i + 1] : UINT32_MAX;
    uint16_t rule = rows->rule[i];
    bool by_rbp = rule == CS_NO_RULE || rules->rule[rule].cfa_reg == CS_RBP;
    if ((ip > leave_ip && by_rbp) || ip >= function_end) end = true;
    if (!begun && next > from) {
      begun = true;
      ok = ip >= from || cs_rows_add(&out, ip, rule);
      ip = ip < from ? from : ip;
    }
    if (begun && ip < leave_ip)
      rule = rule_while_copied(rules, rule);
    else if (begun && !end)
      rule = rule_at_exit(rules, rule);
    ok = ok && cs_rows_add(&out, ip, rule);
  }
  if (!ok) {
    cs_rows_free(&out);
    return false;
  }
  cs_rows_free(rows);
  *rows = out;
  return true;
}

static bool apply_one(struct cs_process_memory *process, uint64_t begin, uint32_t from,
                      uint32_t leave_ip, uint32_t function_end, struct cs_rules *rules,
                      struct cs_rows *rows) {
  size_t size = leave_ip - from;
  uint8_t *code = size <= MAX_FUNCTION ? malloc(size) : NULL;
  size_t at = 0;
  if (code != NULL && cs_process_memory_read(process, begin + from, code, size))
    at = find_install(process, begin, rows, code, size, from);
  free(code);
  if (at == 0) {
    cs_log("the copying of the catching frame's registers is not found in the function at 0x%llx",
           (unsigned long long)(begin + from));
    return true;
  }
  // A return address is looked up one byte before it.
  return correct(rules, from + (uint32_t)at + 1, leave_ip, function_end, rows);
}

bool cs_ehreturn_apply(struct cs_process_memory *process, uint64_t begin,
                       const struct cs_cfi_stats *stats, struct cs_rules *rules,
                       struct cs_rows *rows) {
  bool ok = true;
  for (uint32_t i = 0; ok && i < stats->eh_returns; i++)
    ok = apply_one(process, begin, stats->eh_return[i].ip, stats->eh_return[i].leave_ip,
                   stats->eh_return[i].end, rules, rows);
  return ok;
}
