// SPDX-License-Identifier: MIT
// The registers of a stopped thread, by ptrace. Signal-safe: no.
#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "remote/remote.h"

// A blocking system call ends early when its thread is stopped: with EINTR, or with one of the
// kernel's internal errors that restart it. If it has timed out, the thread has not run since,
// either.
static int waiting_call(const struct user_regs_struct *u) {
  enum { ERESTARTSYS = 512, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK = 516 };
  int64_t call = (int64_t)u->orig_rax, result = -(int64_t)u->rax;
  bool ended_early = result == EINTR || result == ETIMEDOUT || result == ERESTARTSYS ||
                     result == ERESTARTNOINTR || result == ERESTARTNOHAND ||
                     result == ERESTART_RESTARTBLOCK;
  return call >= 0 && call <= INT32_MAX && ended_early ? (int)call : -1;
}

bool cs_remote_registers(int tid, struct cs_regs *regs, uint64_t *thread_pointer, int *call) {
  struct user_regs_struct u;
  struct iovec io = {.iov_base = &u, .iov_len = sizeof u};
  if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) != 0 || io.iov_len != sizeof u)
    return false;
  *regs = (struct cs_regs){
      .r = {[CS_RAX] = u.rax,
            [CS_RCX] = u.rcx,
            [CS_RDX] = u.rdx,
            [CS_RBX] = u.rbx,
            [CS_RSP] = u.rsp,
            [CS_RBP] = u.rbp,
            [CS_RSI] = u.rsi,
            [CS_RDI] = u.rdi,
            [CS_R8] = u.r8,
            [CS_R9] = u.r9,
            [CS_R10] = u.r10,
            [CS_R11] = u.r11,
            [CS_R12] = u.r12,
            [CS_R13] = u.r13,
            [CS_R14] = u.r14,
            [CS_R15] = u.r15,
            [CS_RIP] = u.rip},
      .known = CS_REGS_ALL,
  };
  *thread_pointer = u.fs_base;
  *call = waiting_call(&u);
  return true;
}
