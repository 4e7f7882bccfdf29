// SPDX-License-Identifier: MIT
// arm64: the kernel's registers of a stopped thread, and breakpoints of the processor, which are
// that thread's own. A step leaves nothing in the flags.
#include <asm/ptrace.h>
#include <elf.h>
#include <signal.h>
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

static bool set_breakpoints(const struct tracee *tracee, const uint64_t *at, unsigned count,
                            uint32_t control) {
  struct user_hwdebug_state state = {.dbg_info = 0};
  struct iovec io = {&state, offsetof(struct user_hwdebug_state, dbg_regs[count])};
  for (unsigned i = 0; i < count; i++) {
    state.dbg_regs[i].addr = at[i];
    state.dbg_regs[i].ctrl = control;
  }
  return ptrace(PTRACE_SETREGSET, tracee->tid, (void *)NT_ARM_HW_BREAK, &io) == 0;
}

enum tracee_event tracee_run_to(const struct tracee *tracee, const uint64_t *at, unsigned count,
                                int *signal) {
  enum { FOUR_BYTES = 0xF << 5, OF_PROGRAMS = 2 << 1, ENABLED = 1 };
  if (!set_breakpoints(tracee, at, count, FOUR_BYTES | OF_PROGRAMS | ENABLED) ||
      ptrace(PTRACE_CONT, tracee->tid, NULL, NULL) != 0) {
    (void)kill(tracee->pid, SIGKILL);
    return TRACEE_ENDED;
  }
  enum tracee_event event = tracee_wait_stop(tracee, signal);
  if (event != TRACEE_ENDED) (void)set_breakpoints(tracee, at, count, FOUR_BYTES | OF_PROGRAMS);
  return event;
}
