// SPDX-License-Identifier: MIT
// x86-64: the trap flag, and a return address that is replaced for a while.
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "tracee.h"

void tracee_clear_trap_flag(const struct tracee *tracee) {
  const unsigned long trap_flag = 0x100;
  struct user_regs_struct regs;
  if (ptrace(PTRACE_GETREGS, tracee->tid, NULL, &regs) != 0 || !(regs.eflags & trap_flag)) return;
  regs.eflags &= ~trap_flag;
  (void)ptrace(PTRACE_SETREGS, tracee->tid, NULL, &regs);
}

void tracee_note_mark(struct tracee *tracee) {
  struct user_regs_struct regs;
  if (ptrace(PTRACE_GETREGS, tracee->tid, NULL, &regs) == 0) tracee->mark = regs.rip - 1;
}

enum tracee_event tracee_system_call(const struct tracee *tracee, int *signal) {
  *signal = 0;
  tracee_clear_trap_flag(tracee);
  for (int stop = 0; stop < 2; stop++) {  // before and after it
    if (ptrace(PTRACE_SYSCALL, tracee->tid, NULL, NULL) != 0) return TRACEE_ENDED;
    enum tracee_event event = tracee_wait_stop(tracee, signal);
    if (event != TRACEE_STEPPED) return event;
  }
  return TRACEE_STEPPED;
}

enum tracee_event tracee_return(const struct tracee *tracee, uint64_t slot, uint64_t ip) {
  struct user_regs_struct regs;
  if (tracee->mark == 0 || ptrace(PTRACE_POKEDATA, tracee->tid, (void *)(uintptr_t)slot,
                                  (void *)(uintptr_t)tracee->mark) != 0)
    return TRACEE_ENDED;
  enum tracee_event event = tracee_run(tracee);
  if (event != TRACEE_STEPPED) return event;
  if (ptrace(PTRACE_GETREGS, tracee->tid, NULL, &regs) != 0) return TRACEE_ENDED;
  if (regs.rip != tracee->mark + 1 || regs.rsp != slot + 8) return event;
  regs.rip = ip;
  return ptrace(PTRACE_SETREGS, tracee->tid, NULL, &regs) == 0 ? event : TRACEE_ENDED;
}
