// SPDX-License-Identifier: MIT
// Where signal handlers return to: the C library's trampoline, which it passes to the kernel with
// each of them. Async-signal-safe.
#include <sys/syscall.h>

#include "snapshot/self.h"

uint64_t cs_handler_return(int signo) {
  struct {
    uint64_t handler, flags, restorer, mask;
  } action = {0};
  (void)cs_syscall4(SYS_rt_sigaction, signo, 0, (long)(uintptr_t)&action, 8);
  return action.restorer;
}
