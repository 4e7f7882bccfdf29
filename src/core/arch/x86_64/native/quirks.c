// SPDX-License-Identifier: MIT
// Hand-written code of CoreCLR whose .eh_frame is wrong. (On .NET 10.0.12 and 10.0.14 one walk in
// 10,000 ended in unknown code for that reason while collections ran back to back.) Each function
// is recognised by its code, which differs between versions, and gets rows of its own; if it is not
// found, the rows stay as they are. Not for handlers.
//
//   OnHijackTripThread
//       is not called but returned to: the runtime has overwritten a return address with its
//       address. It pushes a word in place of the one that the return has popped, for the runtime
//       to fill in the true address, so the caller's frame is one word nearer than after a call,
//       which .eh_frame describes. It also saves the callee-saved registers, in which the collector
//       may move objects.
//   ResolveWorkerChainLookupAsmStub
//       is jumped to from a resolve stub that has pushed two words, and pops them one by one;
//       .eh_frame describes an untouched stack.
//   Helpers with a transition block (allocation's slow path, throw, rethrow)
//       push all callee-saved registers for the collector to see, and use them: RhpNewObject keeps
//       the type in rbx. .eh_frame describes the pushes but not which registers they save, so the
//       caller would get the helper's rbx. There are several such helpers, which differ only in
//       what they call; all of that shape are corrected.
//   Delay-load helpers
//       have two epilogs, of which the second ends with a jump; .eh_frame takes the pops of the
//       first to hold for what follows it.
#include "native/quirks.h"

#include <stdlib.h>
#include <string.h>

#include "base/regs.h"

struct piece {  // bytes that must be at an offset
  uint8_t at, size;
  const char *bytes;
};
struct place {  // from offset `at` on, the CFA is rsp + cfa, and `saved` registers are pushed
  uint8_t at, cfa, saved;
  uint8_t context;  // if not 0: the register that points to a CONTEXT, or JUMPS or TRIP
};
enum {
  JUMPS = 0xFF,  // all registers are those of the place where it continues, whose address is in rax
  TRIP = 0xFE,   // as with 0, but the call-site cache must not step over it: the word in place
                 // of the return address has to be checked each time
};
struct quirk {
  const char *name;
  struct piece piece[4];
  unsigned pieces;
  uint8_t size;
  const struct place *place;
  unsigned places;
};

// push rax; push rbp, rbx, r15, r14, r13, r12; push rcx, rdx, rax; mov rdi, rsp; lea rsp,
// [rsp-20h]; ... call ...; lea rsp, [rsp+20h]; and all pops. CFA 0: no rule (at the first
// instruction, where the slot is below the sp).
static const struct place trip_places[] = {
    {0x00, 0, 0, 0},  {0x01, 8, 0, 0},      {0x02, 16, 1, 0}, {0x03, 24, 2, 0}, {0x05, 32, 3, 0},
    {0x07, 40, 4, 0}, {0x09, 48, 5, 0},     {0x0B, 56, 6, 0}, {0x0C, 64, 6, 0}, {0x0D, 72, 6, 0},
    {0x0E, 80, 6, 0}, {0x16, 112, 6, TRIP}, {0x36, 80, 6, 0}, {0x37, 72, 6, 0}, {0x38, 64, 6, 0},
    {0x39, 56, 6, 0}, {0x3B, 48, 5, 0},     {0x3D, 40, 4, 0}, {0x3F, 32, 3, 0}, {0x41, 24, 2, 0},
    {0x42, 16, 1, 0}, {0x43, 8, 0, 0},
};
// .NET 9's: the same without rcx, and with 28h bytes instead of 20h.
static const struct place trip_places_9[] = {
    {0x00, 0, 0, 0},      {0x01, 8, 0, 0},  {0x02, 16, 1, 0}, {0x03, 24, 2, 0}, {0x05, 32, 3, 0},
    {0x07, 40, 4, 0},     {0x09, 48, 5, 0}, {0x0B, 56, 6, 0}, {0x0C, 64, 6, 0}, {0x0D, 72, 6, 0},
    {0x15, 112, 6, TRIP}, {0x35, 72, 6, 0}, {0x36, 64, 6, 0}, {0x37, 56, 6, 0}, {0x39, 48, 5, 0},
    {0x3B, 40, 4, 0},     {0x3D, 32, 3, 0}, {0x3F, 24, 2, 0}, {0x40, 16, 1, 0}, {0x41, 8, 0, 0},
};
// mov rax, 1; and rax, r11; pop rax; jne ...; pop rdx; jmp rax; ...; pop rdx; push r10; jmp ...
static const struct place resolve_places[] = {
    {0x00, 24, 0, 0}, {0x0B, 16, 0, 0}, {0x33, 8, 0, 0},
    {0x35, 16, 0, 0}, {0x44, 8, 0, 0},  {0x46, 16, 0, 0},
};
static const struct place resolve_places_9[] = {
    {0x00, 24, 0, 0}, {0x0B, 16, 0, 0}, {0x32, 8, 0, 0},
    {0x34, 16, 0, 0}, {0x43, 8, 0, 0},  {0x45, 16, 0, 0},
};
// push rbp; mov r10, rdi; mov r11, rsi; loads; mov rax, [r10+rip]; mov rsp, [r10+rsp]; jmp rax; and
// for a CONTEXT without control registers pop rbp; ret. At the jump, the sp is already the
// target's.
static const struct place restore_places[] = {
    {0x00, 8, 0, 0},     {0x01, 0, 0, CS_RDI}, {0x04, 0, 0, CS_R10},
    {0xA0, 0, 0, JUMPS}, {0xA2, 16, 1, 0},     {0xA3, 8, 0, 0},
};
static const struct quirk quirks[] = {
    {"OnHijackTripThread",
     {{0x00, 22,
       "\x50\x55\x53\x41\x57\x41\x56\x41\x55\x41\x54\x51\x52\x50\x48\x89\xE7\x48\x8D\x64\x24\xE0"},
      {0x31, 19, "\x48\x8D\x64\x24\x20\x58\x5A\x59\x41\x5C\x41\x5D\x41\x5E\x41\x5F\x5B\x5D\xC3"}},
     2,
     0x44,
     trip_places,
     CS_COUNT(trip_places)},
    {"ResolveWorkerChainLookupAsmStub",
     {{0x00, 12, "\x48\xC7\xC0\x01\x00\x00\x00\x4C\x21\xD8\x58\x75"},
      {0x32, 3, "\x5A\xFF\xE0"},
      {0x43, 4, "\x5A\x41\x52\xE9"}},
     3,
     0x4B,
     resolve_places,
     CS_COUNT(resolve_places)},
    {"OnHijackTripThread",
     {{0x00, 21,
       "\x50\x55\x53\x41\x57\x41\x56\x41\x55\x41\x54\x52\x50\x48\x89\xE7\x48\x8D\x64\x24\xD8"},
      {0x30, 18, "\x48\x8D\x64\x24\x28\x58\x5A\x41\x5C\x41\x5D\x41\x5E\x41\x5F\x5B\x5D\xC3"}},
     2,
     0x42,
     trip_places_9,
     CS_COUNT(trip_places_9)},
    {"ResolveWorkerChainLookupAsmStub",
     {{0x00, 12, "\x48\xC7\xC0\x01\x00\x00\x00\x4C\x21\xD8\x58\x75"},
      {0x31, 3, "\x5A\xFF\xE0"},
      {0x42, 4, "\x5A\x41\x52\xE9"}},
     3,
     0x4A,
     resolve_places_9,
     CS_COUNT(resolve_places_9)},
    {"RtlRestoreContext",
     {{0x00, 14, "\x55\x49\x89\xFA\x49\x89\xF3\x41\xF6\x42\x30\x02\x74\x54"},
      {0x62, 7, "\x41\xF6\x42\x30\x01\x74\x39"},
      {0x92, 18, "\x49\x8B\x82\xF8\x00\x00\x00\x49\x8B\xA2\x98\x00\x00\x00\xFF\xE0\x5D\xC3"}},
     3,
     0xA4,
     restore_places,
     CS_COUNT(restore_places)},
};

static bool matches(const struct quirk *quirk, const uint8_t *code, size_t room) {
  if (room < quirk->size) return false;
  for (unsigned i = 0; i < quirk->pieces; i++)
    if (memcmp(code + quirk->piece[i].at, quirk->piece[i].bytes, quirk->piece[i].size) != 0)
      return false;
  return true;
}

// Returns the function's offset in the text, which is not aligned on .NET 9, or UINT32_MAX if the
// function is not found, or found twice.
static uint32_t locate(const struct quirk *quirk, const uint8_t *text, size_t size) {
  const struct piece *first = &quirk->piece[0];
  const uint8_t *from = text, *end = text + size, *found;
  uint32_t at = UINT32_MAX;
  for (; (found = memmem(from, (size_t)(end - from), first->bytes, first->size)) != NULL;
       from = found + 1) {
    if (!matches(quirk, found, (size_t)(end - found))) continue;
    if (at != UINT32_MAX) return UINT32_MAX;
    at = (uint32_t)(found - text);
  }
  return at;
}

static uint16_t rule_at(const struct place *place, struct cs_rules *rules) {
  static const uint8_t pushed[] = {CS_CFI_RBP, CS_CFI_RBX, CS_CFI_R15,
                                   CS_CFI_R14, CS_CFI_R13, CS_CFI_R12};
  if (place->cfa == 0 && place->context == 0) return CS_RULE_NONE;
  struct cs_cfi_rule rule;
  memset(&rule, 0, sizeof rule);
  if (place->context == JUMPS) {
    rule.cfa_how = CS_CFA_RESUME;
    rule.cfa_reg = rule.cfa_add = CS_RSP;
    rule.slot[CS_CFI_RA].how = CS_CFI_IN_REG;
    rule.slot[CS_CFI_RA].off = CS_RAX;
    return cs_rules_intern(rules, &rule);
  }
  if (place->context != 0 && place->context != TRIP) {
    rule.cfa_how = CS_CFA_CONTEXT;
    rule.cfa_reg = place->context;
    return cs_rules_intern(rules, &rule);
  }
  rule.cfa_how = CS_CFA_REG;
  rule.cfa_reg = CS_RSP;
  rule.cfa_off = place->cfa;
  bool trip = place->context == TRIP;
  rule.slot[CS_CFI_RA].how = trip ? CS_CFI_AT_SP : CS_CFI_AT_CFA;
  rule.slot[CS_CFI_RA].off = trip ? place->cfa - 8 : -8;
  for (unsigned i = 0; i < place->saved; i++) {
    rule.slot[pushed[i]].how = CS_CFI_AT_CFA;
    rule.slot[pushed[i]].off = -16 - 8 * (int32_t)i;
  }
  return cs_rules_intern(rules, &rule);
}

// Replaces the rows of [at, at + size).
static bool replace(const struct quirk *quirk, uint32_t at, struct cs_rules *rules,
                    struct cs_rows *rows) {
  uint32_t end = at + quirk->size, first = 0, n = 0;
  uint16_t after = CS_NO_RULE;  // the rule at `end` is kept
  while (first < rows->count && rows->ip[first] < at) after = rows->rule[first++];
  uint32_t last = first;
  while (last < rows->count && rows->ip[last] < end) after = rows->rule[last++];
  bool has_end = last < rows->count && rows->ip[last] == end;
  uint32_t count = rows->count + quirk->places + 1;
  struct cs_rows out = {0};
  if (!cs_rows_reserve(&out, count)) return false;
  uint32_t *ip = out.ip;
  uint16_t *rule = out.rule;
  for (; n < first; n++) ip[n] = rows->ip[n], rule[n] = rows->rule[n];
  for (unsigned i = 0; i < quirk->places; i++, n++) {
    ip[n] = at + quirk->place[i].at;
    rule[n] = rule_at(&quirk->place[i], rules);
  }
  if (!has_end) ip[n] = end, rule[n++] = after;
  for (uint32_t i = last; i < rows->count; i++, n++) ip[n] = rows->ip[i], rule[n] = rows->rule[i];
  out.count = n;
  cs_rows_free(rows);
  *rows = out;
  return true;
}

// ---- Functions that are recognised by their shape ----

enum { SHAPE_MAX = 160, SHAPE_PLACES = 32 };

static void add_places(const struct place *place, unsigned count, unsigned at,
                       struct place places[SHAPE_PLACES], unsigned *n) {
  for (unsigned i = 0; i < count; i++) {
    places[*n] = place[i];
    places[(*n)++].at = (uint8_t)(at + place[i].at);
  }
}

static unsigned find_bytes(const uint8_t *code, unsigned from, const char *bytes, unsigned size) {
  enum { BODY = 64 };
  for (unsigned i = from; i < from + BODY && i + size < SHAPE_MAX; i++)
    if (memcmp(code + i, bytes, size) == 0) return i;
  return 0;
}

// The helpers with a transition block: push rbp, rbx, r15, r14, r13, r12; lea rsp, [rsp-38h]; a
// body that does not change rsp; lea rsp, [rsp+38h] and all pops; ret. Or a je across that epilog
// to a second body, whose epilog ends with a jump.
enum { BLOCK_PROLOG = 15, BLOCK_EPILOG = 15 };
static const char block_prolog[] = "\x55\x53\x41\x57\x41\x56\x41\x55\x41\x54\x48\x8D\x64\x24\xC8";
static const char block_epilog[] = "\x48\x8D\x64\x24\x38\x41\x5C\x41\x5D\x41\x5E\x41\x5F\x5B\x5D";
static const struct place block_entry[] = {{0x00, 8, 0, 0},  {0x01, 16, 1, 0}, {0x02, 24, 2, 0},
                                           {0x04, 32, 3, 0}, {0x06, 40, 4, 0}, {0x08, 48, 5, 0},
                                           {0x0A, 56, 6, 0}, {0x0F, 112, 6, 0}};
static const struct place block_exit[] = {{0x05, 56, 6, 0}, {0x07, 48, 5, 0}, {0x09, 40, 4, 0},
                                          {0x0B, 32, 3, 0}, {0x0D, 24, 2, 0}, {0x0E, 16, 1, 0},
                                          {0x0F, 8, 0, 0}};

// Describes the function at `code`, of which SHAPE_MAX bytes can be read. Returns false if it does
// not have this shape.
static bool describe_block(const uint8_t *code, struct place places[SHAPE_PLACES],
                           struct quirk *quirk) {
  enum { JE = 0x74, RET = 0xC3, JMP = 0xE9, JMP_BYTES = 5 };
  if (memcmp(code, block_prolog, BLOCK_PROLOG) != 0) return false;
  unsigned n = 0, at = find_bytes(code, BLOCK_PROLOG, block_epilog, BLOCK_EPILOG);
  if (at == 0) return false;
  unsigned end = at + BLOCK_EPILOG + 1;
  if (code[end - 1] != RET) return false;
  bool twice = code[at - 2] == JE && at + code[at - 1] == end;
  add_places(block_entry, CS_COUNT(block_entry), 0, places, &n);
  add_places(block_exit, CS_COUNT(block_exit), at, places, &n);
  if (twice) {
    places[n++] = (struct place){(uint8_t)end, 112, 6, 0};
    at = find_bytes(code, end, block_epilog, BLOCK_EPILOG);
    if (at == 0 || code[at + BLOCK_EPILOG] != JMP) return false;
    end = at + BLOCK_EPILOG + JMP_BYTES;
    add_places(block_exit, CS_COUNT(block_exit), at, places, &n);
  }
  *quirk = (struct quirk){
      .name = "transition block", .size = (uint8_t)end, .place = places, .places = n};
  return true;
}

// The delay-load helpers, from their first epilog on: lea rsp, [rsp+88h]; add rsp, 30h (on .NET 9
// the pops of the argument registers); pop r12, r13, r14, r15, rbx, rbp; ret; a second body; the
// same lea; pop rdi, rsi, rdx, rcx, r8, r9, and the others as before; jmp rax.
#define HELPER_FREE "\x48\x8D\xA4\x24\x88\x00\x00\x00"
#define HELPER_POPS "\x41\x5C\x41\x5D\x41\x5E\x41\x5F\x5B\x5D"
#define HELPER_TAIL HELPER_FREE "\x5F\x5E\x5A\x59\x41\x58\x41\x59" HELPER_POPS
static const char helper_jump[] = HELPER_TAIL "\x48\xFF\xE0";
static const struct place helper_tail[] = {
    {0x00, 240, 6, 0}, {0x08, 104, 6, 0}, {0x09, 96, 6, 0}, {0x0A, 88, 6, 0}, {0x0B, 80, 6, 0},
    {0x0C, 72, 6, 0},  {0x0E, 64, 6, 0},  {0x10, 56, 6, 0}, {0x12, 48, 5, 0}, {0x14, 40, 4, 0},
    {0x16, 32, 3, 0},  {0x18, 24, 2, 0},  {0x19, 16, 1, 0}, {0x1A, 8, 0, 0}};
static const struct place helper_return[] = {{0x00, 240, 6, 0}, {0x08, 104, 6, 0}, {0x0C, 56, 6, 0},
                                             {0x0E, 48, 5, 0},  {0x10, 40, 4, 0},  {0x12, 32, 3, 0},
                                             {0x14, 24, 2, 0},  {0x15, 16, 1, 0},  {0x16, 8, 0, 0}};
static const struct {
  const char *bytes;
  unsigned size;
  const struct place *place;
  unsigned places;
} helper_first[] = {
    {HELPER_FREE "\x48\x83\xC4\x30" HELPER_POPS "\xC3", 23, helper_return, CS_COUNT(helper_return)},
    {HELPER_TAIL "\xC3", 27, helper_tail, CS_COUNT(helper_tail)},
};

// As describe_block, for the first epilog at `code`.
static bool describe_helper(const uint8_t *code, struct place places[SHAPE_PLACES],
                            struct quirk *quirk) {
  const unsigned jump = sizeof helper_jump - 1;
  for (unsigned i = 0; i < CS_COUNT(helper_first); i++) {
    unsigned n = 0, end = helper_first[i].size;
    if (memcmp(code, helper_first[i].bytes, end) != 0) continue;
    unsigned at = find_bytes(code, end, helper_jump, jump);
    if (at == 0) return false;
    add_places(helper_first[i].place, helper_first[i].places, 0, places, &n);
    places[n++] = (struct place){(uint8_t)end, 240, 6, 0};
    add_places(helper_tail + 1, CS_COUNT(helper_tail) - 1, at, places, &n);
    *quirk = (struct quirk){
        .name = "delay-load helper", .size = (uint8_t)(at + jump), .place = places, .places = n};
    return true;
  }
  return false;
}

// Calls `use` for each function of these shapes, until it returns false. Returns what it returned.
static bool each_shape(const uint8_t *text, size_t size,
                       bool (*use)(const struct quirk *quirk, uint32_t at, void *data),
                       void *data) {
  struct place places[SHAPE_PLACES];
  struct quirk quirk;
  if (size < SHAPE_MAX) return true;
  for (size_t at = 0; at <= size - SHAPE_MAX; at += 16)
    if (describe_block(text + at, places, &quirk) && !use(&quirk, (uint32_t)at, data)) return false;
  const uint8_t *from = text, *end = text + size - SHAPE_MAX;
  while ((from = memmem(from, (size_t)(end - from), HELPER_FREE, sizeof HELPER_FREE - 1)) != NULL) {
    if (describe_helper(from, places, &quirk) && !use(&quirk, (uint32_t)(from - text), data))
      return false;
    from++;
  }
  return true;
}

struct correction {
  struct cs_rules *rules;
  struct cs_rows *rows;
};

static bool correct(const struct quirk *quirk, uint32_t at, void *data) {
  const struct correction *c = data;
  return replace(quirk, at, c->rules, c->rows);
}

// Between the code that faulted and the runtime's handler is a frame that was not called:
// CallSignalHandlerWrapper, whose rows lead to the ip and rbp that its creator has pushed. They
// present the handler's own rbx and r12 to r15 as the interrupted ones, and its caller is not at a
// call. It is recognised by a return address beyond the red zone, where no call pushes one.
static bool correct_faults(struct cs_rules *rules, struct cs_rows *rows) {
  enum { RED_ZONE = 128 };
  static const uint8_t lost[] = {CS_CFI_RBX, CS_CFI_R12, CS_CFI_R13, CS_CFI_R14, CS_CFI_R15};
  for (uint32_t i = 0; i < rows->count; i++) {
    if (rows->rule[i] == CS_NO_RULE || rows->rule[i] == CS_RULE_NONE) continue;
    struct cs_cfi_rule rule = rules->rule[rows->rule[i]];
    if (rule.cfa_how != CS_CFA_REG || rule.slot[CS_CFI_RA].how != CS_CFI_AT_CFA ||
        rule.slot[CS_CFI_RA].off >= -RED_ZONE)
      continue;
    rule.cfa_how = CS_CFA_FAULT;
    for (unsigned r = 0; r < CS_COUNT(lost); r++) rule.slot[lost[r]].how = CS_CFI_UNDEFINED;
    rows->rule[i] = cs_rules_intern(rules, &rule);
    if (rows->rule[i] == CS_RULE_NONE) return false;
  }
  return true;
}

// push rbp; call; pop rbp; ret; and before it, aligned, the offset of the return address, which is
// 6.
static bool is_fault_wrapper(const uint8_t *text, uint32_t at) {
  static const uint8_t offset[] = {6, 0, 0, 0};
  const uint8_t *code = text + at;
  if (at < 16 || memcmp(code, "\x55\xE8", 2) != 0 || memcmp(code + 6, "\x5D\xC3", 2) != 0)
    return false;
  return memcmp(code - 16, offset, sizeof offset) == 0 ||
         memcmp(code - 8, offset, sizeof offset) == 0;
}

struct finding {
  struct cs_quirk_range *found;
  unsigned count;
};

static bool note(const struct quirk *quirk, uint32_t at, void *data) {
  struct finding *f = data;
  if (f->count < CS_QUIRK_MAX)
    f->found[f->count++] = (struct cs_quirk_range){quirk->name, at, at + quirk->size};
  return true;
}

unsigned cs_quirks_find(const uint8_t *text, size_t size,
                        struct cs_quirk_range found[CS_QUIRK_MAX]) {
  enum { WRAPPER = 8 };
  struct finding f = {found, 0};
  for (unsigned i = 0; i < CS_COUNT(quirks); i++) {
    uint32_t at = locate(&quirks[i], text, size);
    if (at != UINT32_MAX) (void)note(&quirks[i], at, &f);
  }
  (void)each_shape(text, size, note, &f);
  static const struct quirk wrapper = {.name = "CallSignalHandlerWrapper", .size = WRAPPER};
  for (uint32_t at = 0; at + WRAPPER <= size; at += 16)
    if (is_fault_wrapper(text, at)) (void)note(&wrapper, at, &f);
  return f.count;
}

bool cs_quirks_apply(const uint8_t *text, size_t size, struct cs_rules *rules, struct cs_rows *rows,
                     unsigned *found) {
  *found = 0;
  for (unsigned i = 0; i < CS_COUNT(quirks); i++) {
    uint32_t at = locate(&quirks[i], text, size);
    if (at == UINT32_MAX) continue;
    if (!replace(&quirks[i], at, rules, rows)) return false;
    (*found)++;
  }
  struct correction c = {rules, rows};
  return each_shape(text, size, correct, &c) && correct_faults(rules, rows);
}
