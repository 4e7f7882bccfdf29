// SPDX-License-Identifier: MIT
// A preloaded library: functions that a signal handler must not call report the call and end the
// process if they are called between oracle_trap_set(1) and oracle_trap_set(0) on the same thread.
// They are allocation, locks, printf, waits and mappings, as far as the library under test links to
// them. Threads: any. Signal-safe: yes.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static __thread uint32_t armed __attribute__((tls_model("initial-exec")));

EXPORT void oracle_trap_set(uint32_t on);
EXPORT void oracle_trap_check(const char *name);

void oracle_trap_set(uint32_t on) {
  armed = on;
}

static void say(const char *text) {
  size_t n = 0;
  while (text[n] != '\0') n++;
  ssize_t written = write(2, text, n);
  (void)written;
}

void oracle_trap_check(const char *name) {
  if (__builtin_expect(armed == 0, 1)) return;
  armed = 0;
  say("FAIL: called in a signal handler: ");
  say(name);
  say("\n");
  abort();
}

// All arguments travel in integer registers, so one shape does for all.
typedef long function(long, long, long, long, long, long);
#define TRAPPED(name)                                                           \
  EXPORT function trapped_##name __asm__(#name);                                \
  static function *real_##name;                                                 \
  long trapped_##name(long a, long b, long c, long d, long e, long f) {         \
    oracle_trap_check(#name);                                                   \
    if (real_##name == NULL) real_##name = (function *)dlsym(RTLD_NEXT, #name); \
    return real_##name(a, b, c, d, e, f);                                       \
  }
TRAPPED(pthread_mutex_lock)
TRAPPED(pthread_mutex_unlock)
TRAPPED(pthread_rwlock_rdlock)
TRAPPED(pthread_rwlock_wrlock)
TRAPPED(pthread_getattr_np)
TRAPPED(vsnprintf)
TRAPPED(nanosleep)
TRAPPED(usleep)
TRAPPED(mmap)
TRAPPED(munmap)
TRAPPED(fopen)
TRAPPED(dladdr)
TRAPPED(dlopen)
TRAPPED(sigaltstack)

// dlsym itself may allocate, so these have another way to reach the real functions.
#define ALLOCATOR(name)                                                 \
  extern function __libc_##name;                                        \
  EXPORT function trapped_##name __asm__(#name);                        \
  long trapped_##name(long a, long b, long c, long d, long e, long f) { \
    oracle_trap_check(#name);                                           \
    return __libc_##name(a, b, c, d, e, f);                             \
  }
ALLOCATOR(malloc)
ALLOCATOR(calloc)
ALLOCATOR(realloc)
ALLOCATOR(free)
