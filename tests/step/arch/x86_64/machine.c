// SPDX-License-Identifier: MIT
// x86-64: a call pushes its return address, and is over when the stack pointer has passed it.
#include "machine.h"

#include <string.h>
#include <sys/syscall.h>

bool machine_called(const struct insn *insn, const struct cs_regs *before,
                    const struct cs_regs *after, struct entry *entry) {
  uint64_t sp = after->r[CS_RSP];
  *entry = (struct entry){ENTRY_CALL, sp, before->r[CS_RIP] + insn->length};
  return insn->kind == INSN_CALL && sp == before->r[CS_RSP] - 8;
}

bool machine_has_ended(const struct entry *entry, uint64_t sp, uint64_t ip) {
  if (entry->kind == ENTRY_TRIPPED)
    return sp > entry->slot + 8 || (sp == entry->slot + 8 && ip == entry->ip);
  return entry->slot < sp;
}

// The return address is then the C library's trampoline: mov rax, 15; syscall.
bool machine_entered_handler(struct oracle *oracle, uint64_t sp_before) {
  static const uint8_t trampoline[] = {0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05};
  uint8_t bytes[sizeof trampoline];
  uint64_t sp = oracle->thread.regs.r[CS_RSP];
  return sp != sp_before &&
         cs_remote_read(oracle->remote, oracle_stack_word(oracle, sp), bytes, sizeof bytes) &&
         memcmp(bytes, trampoline, sizeof bytes) == 0;
}

void machine_signal(struct oracle *oracle, struct entry *interrupted, struct entry *trampoline) {
  enum { GREGS = 40, GREG_RSP = 15, GREG_RIP = 16 };  // of the ucontext
  uint64_t sp = oracle->thread.regs.r[CS_RSP], gregs = sp + 8 + GREGS;
  *interrupted =
      (struct entry){ENTRY_INTERRUPTED, oracle_stack_word(oracle, gregs + GREG_RSP * 8) - 8,
                     oracle_stack_word(oracle, gregs + GREG_RIP * 8)};
  *trampoline = (struct entry){ENTRY_TRAMPOLINE, sp, oracle_stack_word(oracle, sp)};
}

struct entry machine_made(struct oracle *oracle) {
  uint64_t sp = oracle->thread.regs.r[CS_RSP];
  return (struct entry){ENTRY_MADE, sp, oracle_stack_word(oracle, sp)};
}

bool machine_jumped(const struct insn *insn, uint64_t ip_before, uint64_t ip) {
  (void)insn;
  return ip - ip_before > INSN_MAX;
}

bool machine_is_plt(struct oracle *oracle, uint64_t ip) {
  uint8_t b[8];
  return cs_remote_read(oracle->remote, ip & ~15ull, b, sizeof b) &&  // they are 16 bytes each
         ((b[0] == 0xFF && b[1] == 0x25) || (b[0] == 0xF3 && b[1] == 0x0F && b[2] == 0x1E &&
                                             b[3] == 0xFA && b[4] == 0xFF && b[5] == 0x25));
}

// A new thread may inherit the trap flag, and the process would be killed by its trap.
static bool makes_a_thread(const struct insn *insn, const struct cs_regs *regs) {
  uint64_t number = regs->r[NUMBER_REG];
  return insn->kind == INSN_SYSCALL &&
         (number == SYS_clone || number == SYS_clone3 || number == SYS_fork || number == SYS_vfork);
}

enum tracee_event machine_step(struct oracle *oracle, const struct insn *insn, int *signal) {
  int delivered = *signal;
  enum tracee_event event = delivered == 0 && makes_a_thread(insn, &oracle->thread.regs)
                                ? tracee_system_call(&oracle->tracee, signal)
                                : tracee_step(&oracle->tracee, signal);
  if (event == TRACEE_STEPPED && insn->kind == INSN_LOAD_FLAGS)
    tracee_clear_trap_flag(&oracle->tracee);
  return event;
}
