// SPDX-License-Identifier: MIT
// Lets a program that is linked here run with glibc 2.27, the oldest that .NET 10 runs with, and a
// library with musl: what glibc has added or moved to another library since then is defined here,
// hidden, by what 2.27 has.
// Part of packages only (CLRSNAP_PORTABLE); tests/package/check.sh fails if a symbol is missing here.
// Signal-safe: as the functions themselves. No handler calls them: the island calls nothing.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "first_versions.h"

// ---- Moved from libpthread.so.0 and libdl.so.2 to libc.so.6, with a new version ----

#define MOVED_IN(version, result, name, parameters, arguments) \
  extern __typeof__(name) old_##name;                          \
  __asm__(".symver old_" #name "," #name "@GLIBC_" version);   \
  result name parameters {                                     \
    return old_##name arguments;                               \
  }
#define MOVED(...) MOVED_IN(FIRST_GLIBC, __VA_ARGS__)

MOVED(int, pthread_create,
      (pthread_t *restrict thread, const pthread_attr_t *restrict attr, void *(*start)(void *),
       void *restrict data),
      (thread, attr, start, data))
MOVED(int, pthread_join, (pthread_t thread, void **result), (thread, result))
MOVED(int, pthread_detach, (pthread_t thread), (thread))
MOVED(int, pthread_once, (pthread_once_t * once, void (*call)(void)), (once, call))
MOVED(int, pthread_key_create, (pthread_key_t * key, void (*end)(void *)), (key, end))
MOVED(void *, pthread_getspecific, (pthread_key_t key), (key))
MOVED(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
MOVED(int, pthread_getattr_np, (pthread_t thread, pthread_attr_t *attr), (thread, attr))
MOVED(int, pthread_attr_getstack,
      (const pthread_attr_t *restrict attr, void **restrict stack, size_t *restrict size),
      (attr, stack, size))
MOVED(int, pthread_attr_setstacksize, (pthread_attr_t * attr, size_t size), (attr, size))
MOVED_IN(CONDATTR_SETCLOCK_GLIBC, int, pthread_condattr_setclock,
         (pthread_condattr_t * attr, clockid_t clock), (attr, clock))
MOVED(int, pthread_sigmask, (int how, const sigset_t *restrict set, sigset_t *restrict old),
      (how, set, old))
MOVED(int, pthread_rwlock_init,
      (pthread_rwlock_t *restrict lock, const pthread_rwlockattr_t *restrict attr), (lock, attr))
MOVED(int, pthread_rwlock_destroy, (pthread_rwlock_t * lock), (lock))
MOVED(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
MOVED(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock))
MOVED(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
MOVED(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
MOVED(void *, dlopen, (const char *file, int mode), (file, mode))
MOVED(void *, dlsym, (void *restrict library, const char *restrict name), (library, name))
MOVED(int, dlclose, (void *library), (library))
MOVED(char *, dlerror, (void), ())
MOVED(int, dladdr, (const void *address, Dl_info *info), (address, info))

// ---- Added: system calls ----

int stat(const char *restrict path, struct stat *restrict out) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}
int fstat(int fd, struct stat *out) {
  return (int)syscall(SYS_fstat, fd, out);
}
int statx(int at, const char *restrict path, int flags, unsigned mask, struct statx *restrict out) {
  return (int)syscall(SYS_statx, at, path, flags, mask, out);
}
pid_t gettid(void) {
  return (pid_t)syscall(SYS_gettid);
}
int close_range(unsigned first, unsigned last, int flags) {
  return (int)syscall(SYS_close_range, first, last, flags);
}

// librt.so.1 had these. Only timers that send signals to threads are made, which are the kernel's.
int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer) {
  int id;
  if (syscall(SYS_timer_create, clock, event, &id) != 0) return -1;
  *timer = (timer_t)(intptr_t)id;
  return 0;
}
int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict when,
                  struct itimerspec *restrict old) {
  return (int)syscall(SYS_timer_settime, (int)(intptr_t)timer, flags, when, old);
}
int timer_delete(timer_t timer) {
  return (int)syscall(SYS_timer_delete, (int)(intptr_t)timer);
}

// ---- By a name that musl lacks ----

// libgcc's, on arm64, when it finds out which atomic instructions the processor has.
unsigned long __getauxval(unsigned long type);
unsigned long __getauxval(unsigned long type) {
  return getauxval(type);
}

// ---- Added: texts ----

const char *strerrordesc_np(int error) {
  return strerror(error);
}

// With an older glibc errors have numbers instead of names.
const char *strerrorname_np(int error) {
  static __thread char text[32];
  const char *(*newer)(int) = NULL;
  *(void **)&newer = dlsym(RTLD_NEXT, "strerrorname_np");
  if (newer != NULL) return newer(error);
  (void)snprintf(text, sizeof text, "error %d", error);
  return text;
}
