// SPDX-License-Identifier: MIT
// Preloaded (small.sh): threads of a library's own, some of whose stacks have no room for a signal:
// 7,000 bytes are free, less the thread's own record and variables. Some compute all the time,
// others sleep now and then. With SMALL_OWN the small stacks lie in the middle of a larger mapping,
// and what lies below them is watched.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { FREE = 9384, LARGE = 1 << 20, ROUNDS = 1024, SLEEP_US = 1000 };

struct kind {
  const char *name;
  void *(*begin)(void *kind);
  size_t stack;
  int sleeps;
};
static void *small_stack(void *kind);
static void *large_busy(void *kind);
static void *large_sleeps(void *kind);
static const struct kind kinds[] = {
    {"small-16", small_stack, 16 << 10, 0},        {"small-32", small_stack, 32 << 10, 0},
    {"small-16-sleeps", small_stack, 16 << 10, 1}, {"large-busy", large_busy, LARGE, 0},
    {"large-sleeps", large_sleeps, LARGE, 1},
};
enum { KINDS = sizeof kinds / sizeof *kinds, GAP = 64 << 10 };
static const unsigned char *own;  // each a gap, and a stack in as much

static __attribute__((noinline)) unsigned compute(size_t used) {
  volatile unsigned char *at = __builtin_alloca(used);
  memset((void *)at, 0, used);
  for (unsigned i = 0; i < 1000u * ROUNDS; i++) at[i % used]++;
  return at[1];
}

// Nobody writes below a stack.
static void watch(void) {
  for (size_t i = 0; i < KINDS && own != NULL; i++)
    for (size_t at = 0; at < GAP; at++)
      if (own[2 * i * GAP + at] != 0) abort();
}

static inline __attribute__((always_inline)) void *run(void *data) {
  const struct kind *kind = data;
  (void)prctl(PR_SET_NAME, kind->name);
  size_t used = kind->stack < LARGE ? kind->stack - FREE : FREE;
  for (;;) {
    (void)compute(used);
    watch();
    if (kind->sleeps) (void)usleep(SLEEP_US);
  }
  return NULL;
}

// So that each can be told from the others in a stack.
static __attribute__((no_icf)) void *small_stack(void *kind) {
  return run(kind);
}
static __attribute__((no_icf)) void *large_busy(void *kind) {
  return run(kind);
}
static __attribute__((no_icf)) void *large_sleeps(void *kind) {
  return run(kind);
}

static __attribute__((constructor)) void begin(void) {
  char program[256];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = '\0';
  if (strstr(program, "dotnet") == NULL) return;  // a shell's, env's
  unsigned char *memory =
      mmap(NULL, 2 * KINDS * GAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  if (getenv("SMALL_OWN") != NULL) own = memory;
  for (size_t i = 0; i < KINDS; i++) {
    pthread_attr_t attr;
    pthread_t thread;
    size_t stack = kinds[i].stack;
    (void)pthread_attr_init(&attr);
    int failed = own != NULL && stack < LARGE
                     ? pthread_attr_setstack(&attr, memory + (2 * i + 1) * GAP, stack)
                     : pthread_attr_setstacksize(&attr, stack);
    if (failed != 0 ||
        pthread_create(&thread, &attr, kinds[i].begin, (void *)(uintptr_t)&kinds[i]) != 0)
      abort();
  }
}
