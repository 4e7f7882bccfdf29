// SPDX-License-Identifier: MIT
// The system calls that a sleeping thread may be in, as far as each architecture has its own.
#pragma once

#include <stdbool.h>
#include <sys/syscall.h>

// Returns whether a child of the call may be running on the caller's stack.
static inline bool cs_call_lends_stack(long call) {
  return call == SYS_vfork || call == SYS_clone || call == SYS_clone3;
}

// Returns whether the call waits for events.
static inline bool cs_call_is_for_events(long call) {
  return call == SYS_epoll_wait || call == SYS_epoll_pwait || call == SYS_read;
}
