// SPDX-License-Identifier: MIT
// The registry identifies threads by what they are, not by their place in memory. Threads that the
// runtime has not created end before the runtime reports it, and it reports it on another thread.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "threads/altstack.h"
#include "threads/native_stack.h"
#include "threads/registry.h"

enum { FIRST = 0x1000, SECOND = 0x2000, STACK_BYTES = 256 << 10 };

static uint32_t own_tid(void) {
  return (uint32_t)syscall(SYS_gettid);
}

// ---- A thread in another one's place ----

struct seen {
  uint64_t id, pointer;
  struct cs_thread *self, *own, *registered;
};

static void *look_and_register(void *data) {
  struct seen *seen = data;
  seen->pointer = cs_thread_pointer();
  seen->self = cs_registry_self();
  seen->own = cs_registry_self_cached();
  seen->registered = cs_registry_assigned(seen->id, own_tid());
  if (cs_registry_self() != seen->registered || cs_registry_self_cached() != seen->registered)
    seen->registered = NULL;
  return NULL;
}

// Runs `body` on a thread that always has the same stack, whose end holds the thread's own record.
static void run_in_place(void *stack, void *(*body)(void *), void *data) {
  pthread_attr_t attr;
  pthread_t thread;
  assert_int_equal(pthread_attr_init(&attr), 0);
  assert_int_equal(pthread_attr_setstack(&attr, stack, STACK_BYTES), 0);
  assert_int_equal(pthread_create(&thread, &attr, body, data), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  (void)pthread_attr_destroy(&attr);
}

static void test_place(void **state) {
  struct seen first = {.id = FIRST}, second = {.id = SECOND};
  (void)state;
  void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(stack != MAP_FAILED);
  run_in_place(stack, look_and_register, &first);
  run_in_place(stack, look_and_register, &second);
  assert_true(first.pointer == second.pointer);  // otherwise the test shows nothing
  assert_null(first.self);
  assert_null(second.self);
  assert_null(second.own);
  assert_non_null(first.registered);
  assert_non_null(second.registered);
  assert_ptr_not_equal(first.registered, second.registered);
  cs_registry_destroyed(FIRST);
  cs_registry_destroyed(SECOND);
  assert_int_equal(munmap(stack, STACK_BYTES), 0);
}

// ---- An id, or a tid, of another thread ----

static void *register_only(void *data) {
  (void)cs_registry_assigned(*(const uint64_t *)data, own_tid());
  return NULL;
}

static void test_id_again(void **state) {
  uint64_t id = FIRST;
  pthread_t thread;
  (void)state;
  assert_int_equal(pthread_create(&thread, NULL, register_only, &id), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  struct cs_thread *before = cs_registry_find(FIRST);
  uint32_t generation = before->generation;
  struct cs_thread *now = cs_registry_assigned(FIRST, own_tid());
  assert_int_equal(now->tid, own_tid());
  assert_true(now != before || now->generation != generation);
  // The same OS thread becomes another thread of the runtime's, and the first one is forgotten.
  struct cs_thread *next = cs_registry_assigned(SECOND, own_tid());
  assert_ptr_equal(cs_registry_self(), next);
  assert_int_equal(cs_registry_find(FIRST)->tid, 0);
  cs_registry_destroyed(SECOND);
  cs_registry_destroyed(FIRST);
}

// The thread that has pinned the entry may be waiting for the runtime to stop, and the runtime for
// the new thread.
static void test_id_again_while_walked(void **state) {
  uint64_t id = FIRST;
  pthread_t thread;
  (void)state;
  assert_int_equal(pthread_create(&thread, NULL, register_only, &id), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  struct cs_thread *before = cs_registry_find(FIRST);
  assert_true(cs_thread_pin(before, FIRST));
  struct cs_thread *now = cs_registry_assigned(FIRST, own_tid());
  assert_ptr_not_equal(now, before);
  assert_ptr_equal(cs_registry_find(FIRST), now);
  assert_ptr_equal(cs_registry_self(), now);
  assert_int_equal(before->tid, 0);
  assert_false(cs_thread_pin(before, FIRST));
  cs_thread_unpin(before);
  // The entry is free afterwards.
  assert_ptr_equal(cs_registry_created(SECOND), before);
  cs_registry_destroyed(SECOND);
  cs_registry_destroyed(FIRST);
}

// ---- The alternate stack of a thread whose end another one reports ----

static volatile sig_atomic_t taken;
static void on_alternate(int signo) {
  (void)signo;
  taken = taken + 1;
}

struct parked {
  uint64_t id, altstack;
  uint32_t registered, forgotten;
};

static void wait_for(const uint32_t *word) {
  while (cs_load_acquire(word) == 0) (void)usleep(100);
}

static void *park(void *data) {
  struct parked *p = data;
  struct cs_thread *self = cs_registry_assigned(p->id, own_tid());
  p->altstack = self->altstack.sp;
  cs_store_release(&p->registered, 1u);
  wait_for(&p->forgotten);
  (void)raise(SIGUSR1);  // on the alternate stack that is still registered
  return NULL;
}

static bool is_mapped(uint64_t page) {
  return msync((void *)(uintptr_t)page, 1, MS_ASYNC) == 0;
}

static void test_altstack(void **state) {
  struct sigaction action = {.sa_handler = on_alternate, .sa_flags = SA_ONSTACK};
  struct parked p = {.id = FIRST};
  pthread_t thread;
  (void)state;
  assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
  assert_int_equal(pthread_create(&thread, NULL, park, &p), 0);
  wait_for(&p.registered);
  assert_true(is_mapped(p.altstack));
  cs_registry_destroyed(FIRST);  // as the finalizer's thread does
  assert_true(is_mapped(p.altstack));
  cs_store_release(&p.forgotten, 1u);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(taken, 1);
  // The stack is freed when later threads are made, once the kernel has finished with its thread.
  for (int i = 0; i < 100 && is_mapped(p.altstack); i++) {
    struct cs_altstack other;
    (void)usleep(10000);
    cs_altstack_map(&other, own_tid());
    if (other.sp == p.altstack) break;  // it was unmapped, and the place is taken
    cs_altstack_free(&other);
    if (i == 99) fail_msg("the alternate stack of a thread that has ended stays");
  }
}

// ---- Many threads ----

enum { MANY = 1000, ROUNDS = 60, NO_TID = 1 << 23 };  // above all tids that Linux gives

static uint64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Does what a program does between walks: its own data displaces the registry's from the caches.
static void empty_caches(void) {
  static volatile char junk[8 << 20];
  for (size_t i = 0; i < sizeof junk; i += 64) junk[i]++;
}

static void *find_id(uint32_t i) {
  return cs_registry_find(FIRST + i);
}
static void *find_tid(uint32_t i) {
  return cs_registry_find_tid(NO_TID + MANY + i);
}

// The time of the fastest look-up that finds nothing.
static uint64_t measure(void *(*find)(uint32_t)) {
  uint64_t best = UINT64_MAX;
  for (uint32_t i = 0; i < ROUNDS; i++) {
    empty_caches();
    uint64_t begin = now_ns();
    assert_null(find(i));
    uint64_t took = now_ns() - begin;
    if (took < best) best = took;
  }
  return best;
}

// A walk looks up its caller by tid. Most callers are the profiler's own threads, which are not
// found. Like a look-up by ThreadID, this one reads a dense table and no entry.
static void test_many(void **state) {
  (void)state;
  for (uint32_t i = 0; i < MANY; i++)
    assert_non_null(cs_registry_attached(FIRST * MANY + i * 8, NO_TID + i));
  for (uint32_t i = 0; i < MANY; i++)
    assert_ptr_equal(cs_registry_find_tid(NO_TID + i), cs_registry_find(FIRST * MANY + i * 8));
  uint64_t by_id = measure(find_id), by_tid = measure(find_tid);
  // Reading each entry would take some fifty times as long.
  if (by_tid > by_id * 6)
    fail_msg("a look-up by tid takes %llu ns, one by ThreadID %llu", (unsigned long long)by_tid,
             (unsigned long long)by_id);
  for (uint32_t i = 0; i < MANY; i++) cs_registry_destroyed(FIRST * MANY + i * 8);
  for (uint32_t i = 0; i < MANY; i++) assert_null(cs_registry_find_tid(NO_TID + i));
}

int main(void) {
  struct cs_error err;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_place),
      cmocka_unit_test(test_id_again),
      cmocka_unit_test(test_id_again_while_walked),
      cmocka_unit_test(test_altstack),
      cmocka_unit_test(test_many),
  };
  if (!cs_registry_init(&err)) return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
