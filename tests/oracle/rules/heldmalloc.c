// SPDX-License-Identifier: MIT
// malloc and its family on top of glibc's, with one lock around all of them while a test requests
// it. Invariant: while the target is inside, a thread that allocates or frees waits for it, as it
// would wait for the lock of an arena. Threads: any. Signal-safe: no.
#include "heldmalloc.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *block);
EXPORT void *malloc(size_t size);
EXPORT void *calloc(size_t count, size_t size);
EXPORT void *realloc(void *old, size_t size);
EXPORT void free(void *block);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t armed, wanted, inside, may_leave, stopped, at_most;
static __thread uint32_t is_target __attribute__((tls_model("initial-exec")));

static uint32_t load(const uint32_t *word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
static void store(uint32_t *word, uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void stand_inside(void) {
  uint64_t until = at_most == 0 ? UINT64_MAX : now_ms() + at_most;
  store(&inside, 1);
  while (!load(&may_leave) && now_ms() < until) __builtin_ia32_pause();
  store(&inside, 0);
}

// Returns whether the lock has been taken.
static uint32_t enter(void) {
  if (!load(&armed)) return 0;
  pthread_mutex_lock(&lock);
  if (is_target && __atomic_exchange_n(&wanted, 0, __ATOMIC_ACQ_REL)) stand_inside();
  return 1;
}
static void leave(uint32_t locked) {
  if (locked) pthread_mutex_unlock(&lock);
}

void *malloc(size_t size) {
  uint32_t locked = enter();
  void *block = __libc_malloc(size);
  leave(locked);
  return block;
}
void *calloc(size_t count, size_t size) {
  uint32_t locked = enter();
  void *block = __libc_calloc(count, size);
  leave(locked);
  return block;
}
void *realloc(void *old, size_t size) {
  uint32_t locked = enter();
  void *block = __libc_realloc(old, size);
  leave(locked);
  return block;
}
void free(void *block) {
  uint32_t locked = enter();
  __libc_free(block);
  leave(locked);
}

EXPORT void held_malloc_target(void) {
  is_target = 1;
  for (size_t n = 0; !load(&stopped); n++) {
    void *block = malloc(1000 + n % 50000);
    __asm__ volatile("" : : "r"(block) : "memory");
    free(block);
  }
  is_target = 0;
}
EXPORT void held_malloc_stop(void) {
  store(&stopped, 1);
}

EXPORT void held_malloc_enter(uint32_t at_most_ms) {
  at_most = at_most_ms;
  store(&may_leave, 0);
  store(&armed, 1);
  store(&wanted, 1);
  while (load(&wanted) || (at_most_ms == 0 && !load(&inside))) sched_yield();
}
EXPORT void held_malloc_leave(void) {
  store(&may_leave, 1);
}
EXPORT void held_malloc_finish(void) {
  store(&may_leave, 1);
  while (load(&inside)) sched_yield();
  store(&armed, 0);
}
