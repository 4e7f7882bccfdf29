// SPDX-License-Identifier: MIT
// arm64: a call leaves its return address in lr and the stack pointer as it was. It is over when
// the thread is at that address with that stack pointer, or when the stack pointer has passed it.
// An entry's slot is where x86-64 would have pushed the address: 8 below that stack pointer.
#include "machine.h"

static struct entry entry_at(enum entry_kind kind, uint64_t sp, uint64_t ip) {
  return (struct entry){kind, sp - 8, ip};
}

bool machine_called(const struct insn *insn, const struct cs_regs *before,
                    const struct cs_regs *after, struct entry *entry) {
  *entry = entry_at(ENTRY_CALL, after->r[CS_SP], before->r[CS_IP] + insn->length);
  return insn->kind == INSN_CALL && after->r[CS_LR] == entry->ip;
}

bool machine_has_ended(const struct entry *entry, uint64_t sp, uint64_t ip) {
  return sp > entry->slot + 8 || (sp == entry->slot + 8 && ip == entry->ip);
}

// The return address is then the kernel's trampoline: mov x8, 139; svc 0.
bool machine_entered_handler(struct oracle *oracle, uint64_t sp_before) {
  uint32_t code[2];
  const struct cs_regs *regs = &oracle->thread.regs;
  return regs->r[CS_SP] != sp_before &&
         cs_remote_read(oracle->remote, regs->r[CS_LR], code, sizeof code) &&
         code[0] == 0xD2801168 && code[1] == 0xD4000001;
}

// The kernel's frame, at sp: siginfo, then the ucontext, with the fault's address, x0 to x30, sp
// and pc in its uc_mcontext.
void machine_signal(struct oracle *oracle, struct entry *interrupted, struct entry *trampoline) {
  enum { SIGINFO = 128, MCONTEXT = 176, SP_AT = 8 + 31 * 8, PC_AT = SP_AT + 8 };
  const struct cs_regs *regs = &oracle->thread.regs;
  uint64_t mcontext = regs->r[CS_SP] + SIGINFO + MCONTEXT;
  *interrupted = entry_at(ENTRY_INTERRUPTED, oracle_stack_word(oracle, mcontext + SP_AT),
                          oracle_stack_word(oracle, mcontext + PC_AT));
  *trampoline = entry_at(ENTRY_TRAMPOLINE, regs->r[CS_SP], regs->r[CS_LR]);
}

struct entry machine_made(struct oracle *oracle) {
  const struct cs_regs *regs = &oracle->thread.regs;
  return entry_at(ENTRY_MADE, regs->r[CS_SP], regs->r[CS_LR]);
}

bool machine_jumped(const struct insn *insn, uint64_t ip_before, uint64_t ip) {
  (void)ip_before;
  (void)ip;
  return insn->kind == INSN_JUMP || insn->kind == INSN_RET;
}

// adrp x16; ldr x17, [x16, ...]; add x16, x16, ...; br x17
bool machine_is_plt(struct oracle *oracle, uint64_t ip) {
  uint32_t code[4];
  for (uint64_t back = 0; back < sizeof code; back += sizeof code[0])
    if (cs_remote_read(oracle->remote, ip - back, code, sizeof code) &&
        (code[0] & 0x9F00001F) == 0x90000010 && (code[1] & 0xFFC003FF) == 0xF9400211 &&
        (code[2] & 0xFFC003FF) == 0x91000210 && code[3] == 0xD61F0220)
      return true;
  return false;
}

// Returns whether the instruction may branch, and to where.
static bool branches(uint32_t code, uint64_t ip, uint64_t *to) {
  int64_t words;
  if (code >> 26 == 0x05) {  // b
    words = (int32_t)(code << 6) >> 6;
  } else if ((code & 0xFF000010) == 0x54000000 || (code & 0x7E000000) == 0x34000000) {
    words = (int32_t)(code << 8) >> 13;  // b.cond, cbz, cbnz
  } else if ((code & 0x7E000000) == 0x36000000) {
    words = (int32_t)(code << 13) >> 18;  // tbz, tbnz
  } else {
    return false;
  }
  *to = ip + (uint64_t)(words * 4);
  return true;
}

// Finds where the thread can leave the instructions from an exclusive load to its store: after the
// store, and by branches. Returns the number of exits, or 0 if there is no store.
static unsigned find_exits(struct oracle *oracle, uint64_t begin, uint64_t exits[TRACEE_EXITS]) {
  enum { LONGEST = 16 };
  uint32_t code[LONGEST];
  uint64_t to;
  unsigned n = 0, end = 0;
  if (!cs_remote_read(oracle->remote, begin, code, sizeof code)) return 0;
  // STXR, STLXR, STXP, STLXP
  while (end < LONGEST && (code[end] & 0x3FC00000) != 0x08000000) end++;
  if (end == LONGEST) return 0;
  exits[n++] = begin + 4 * (end + 1ull);
  for (unsigned i = 1; i < end; i++) {
    if (decode((const uint8_t *)&code[i], sizeof code[i]).kind != INSN_OTHER) return 0;
    if (!branches(code[i], begin + 4ull * i, &to) || (to > begin && to <= begin + 4ull * end))
      continue;
    if (n == TRACEE_EXITS) return 0;
    exits[n++] = to;
  }
  return n;
}

// A step in between would let an exclusive store fail, and a loop over one would never end. So the
// thread runs from the load until it is past the store, or has branched away.
enum tracee_event machine_step(struct oracle *oracle, const struct insn *insn, int *signal) {
  const struct cs_regs *regs = &oracle->thread.regs;
  uint64_t exits[TRACEE_EXITS];
  if (insn->kind != INSN_EXCLUSIVE || *signal != 0) return tracee_step(&oracle->tracee, signal);
  unsigned count = find_exits(oracle, regs->r[CS_IP], exits);
  if (count == 0) oracle_die("an exclusive load has no store that is known", "");
  oracle->excuse[EXCUSE_EXCLUSIVE]++;
  return tracee_run_to(&oracle->tracee, exits, count, signal);
}

// The only runtime for arm64 that can be had is part of a program, and its JIT with it; so calls
// into the JIT are not recognised, and are stepped until the scene's number of instructions is
// reached.
bool machine_mind_jit(struct oracle *oracle, struct jit_call *call) {
  (void)oracle;
  (void)call;
  return true;
}
