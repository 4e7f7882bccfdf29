// SPDX-License-Identifier: MIT
// arm64: the kernel's registers of a stopped thread. A step leaves nothing in the flags.
#include <elf.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "tracee.h"

void tracee_clear_trap_flag(const struct tracee *tracee) {
  (void)tracee;
}

// The thread stands at the trap, and would execute it again.
void tracee_note_mark(struct tracee *tracee) {
  struct user_regs_struct regs;
  struct iovec io = {&regs, sizeof regs};
  if (ptrace(PTRACE_GETREGSET, tracee->tid, (void *)NT_PRSTATUS, &io) != 0) return;
  tracee->mark = regs.pc;
  regs.pc += 4;
  (void)ptrace(PTRACE_SETREGSET, tracee->tid, (void *)NT_PRSTATUS, &io);
}
