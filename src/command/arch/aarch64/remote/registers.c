// SPDX-License-Identifier: MIT
// The registers of a stopped thread, by ptrace. Signal-safe: no.
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/cpu.h"
#include "remote/remote.h"

static bool is_system_call(int tid, uint64_t at) {
  enum { SVC_0 = 0xD4000001u };
  errno = 0;
  long word = ptrace(PTRACE_PEEKTEXT, tid, (void *)(uintptr_t)at, NULL);
  return errno == 0 && (uint32_t)word == SVC_0;
}

// A blocking system call ends early when its thread is stopped. Before a tracer sees the thread,
// the kernel has forgotten the call, and, if it is to be restarted, gone back to its instruction,
// with the arguments in place again; so a thread that is just about to make its call looks the
// same. A call that is not restarted has ended with EINTR, or has timed out.
static int waiting_call(int tid, const struct user_regs_struct *u) {
  int64_t result = -(int64_t)u->regs[0];
  bool waits = is_system_call(tid, u->pc) || ((result == EINTR || result == ETIMEDOUT) &&
                                              is_system_call(tid, u->pc - CS_SYSCALL_BYTES));
  return waits && u->regs[CS_X8] <= INT32_MAX ? (int)u->regs[CS_X8] : -1;
}

bool cs_remote_registers(int tid, struct cs_regs *regs, uint64_t *thread_pointer, int *call) {
  struct user_regs_struct u;
  struct iovec io = {.iov_base = &u, .iov_len = sizeof u};
  struct iovec tls = {.iov_base = thread_pointer, .iov_len = sizeof *thread_pointer};
  if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) != 0 || io.iov_len != sizeof u ||
      ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_TLS, &tls) != 0 ||
      tls.iov_len < sizeof *thread_pointer)
    return false;
  *regs = (struct cs_regs){.known = CS_REGS_ALL};
  memcpy(regs->r, u.regs, sizeof u.regs);  // x0 to x30, which is lr
  regs->r[CS_SP] = u.sp;
  regs->r[CS_IP] = u.pc;
  *call = waiting_call(tid, &u);
  return true;
}
