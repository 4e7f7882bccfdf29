// SPDX-License-Identifier: MIT
// The calling thread's stack for signal handlers, without the C library, which allocates and locks
// to find it. Any thread. Async-signal-safe: raw system calls only, errno untouched.
//
// Invariant: the result is the mapping that holds the sp, so all of it is readable. It may be
// larger than the stack proper; then fewer wrong addresses are recognised as such.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

#include "threads/bounds.h"

enum { BUFFER = 1024 };

struct maps {
  int fd;
  size_t at, size;
  char buffer[BUFFER];
};

// Returns the next character, or -1 at the end.
static int next_char(struct maps *maps) {
  if (maps->at == maps->size) {
    long n = cs_syscall4(SYS_read, maps->fd, (long)(uintptr_t)maps->buffer, BUFFER, 0);
    if (n <= 0) return -1;
    maps->size = (size_t)n;
    maps->at = 0;
  }
  return (unsigned char)maps->buffer[maps->at++];
}

// Reads a hexadecimal number, and in *end the character after it.
static uint64_t next_number(struct maps *maps, int *end) {
  uint64_t value = 0;
  for (;;) {
    int c = next_char(maps);
    if (c >= '0' && c <= '9')
      value = value << 4 | (uint64_t)(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value << 4 | (uint64_t)(c - 'a' + 10);
    else {
      *end = c;
      return value;
    }
  }
}

bool cs_stack_by_maps(uint64_t sp, struct cs_stack *stack) {
  static const char path[] = "/proc/self/maps";
  struct maps maps;
  bool found = false;
  maps.at = maps.size = 0;
  maps.fd = (int)cs_syscall4(SYS_openat, AT_FDCWD, (long)(uintptr_t)path, O_RDONLY | O_CLOEXEC, 0);
  if (maps.fd < 0) return false;
  for (int c = 0; c != -1 && !found;) {
    uint64_t lo = next_number(&maps, &c), hi = c == '-' ? next_number(&maps, &c) : 0;
    int readable = next_char(&maps);
    found = sp >= lo && sp < hi && readable == 'r';
    if (found) *stack = (struct cs_stack){.lo = lo, .hi = hi};
    while (c != -1 && c != '\n') c = next_char(&maps);
  }
  (void)cs_syscall4(SYS_close, maps.fd, 0, 0, 0);
  return found;
}

void cs_altstack_of_self(struct cs_stack *stack) {
  stack_t now = {.ss_flags = SS_DISABLE};
  stack->alt_lo = stack->alt_hi = 0;
  if (cs_syscall4(SYS_sigaltstack, 0, (long)(uintptr_t)&now, 0, 0) != 0 ||
      (now.ss_flags & SS_DISABLE) != 0)
    return;
  stack->alt_lo = (uint64_t)(uintptr_t)now.ss_sp;
  stack->alt_hi = stack->alt_lo + now.ss_size;
}
