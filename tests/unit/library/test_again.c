// SPDX-License-Identifier: MIT
// A thread that walks its own stack again and again, at places that it reaches by random calls and
// returns: a walk that meets frames of the last one (walk/again.h) finds what a walk finds that
// knows of no other.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "life/start.h"
#include "threads/ask.h"
#include "threads/registry.h"

enum { MOST = 2048, DEEPEST = 300, WALKS = 5000 };

static uint64_t fake_thread[64];
static struct list {
  uint32_t count, stop;
  struct clrsnap_frame frames[MOST];
} lists[3];
static unsigned long walks, met, met_at_once;
static uint64_t seed = 88172645463325252u;

static uint32_t chance(uint32_t of) {
  return (uint32_t)(cs_random_next(&seed) >> 33) % of;
}

static HRESULT note(const struct clrsnap_frame *frame, void *data) {
  struct list *list = data;
  if (list->count == MOST) return E_FAIL;
  list->frames[list->count++] = *frame;
  return S_OK;
}

// What is in a record is read from the capture of slot 0, which is the only one in use.
// Not optimized, so that the three walks have one return address.
static __attribute__((noinline, optimize("O0"))) void walk_and_compare(void) {
  struct cs_capture *capture = &cs_requests[0].capture;
  for (int i = 0; i < 3; i++) {
    struct clrsnap_walk_result result = {.size = sizeof result};
    lists[i].count = 0;
    if (i == 2) capture->last.count = 0;  // the last one knows nothing
    assert_int_equal(clrsnap_walk((ThreadID)(uintptr_t)fake_thread, note, &lists[i], NULL, &result),
                     S_OK);
    lists[i].stop = result.stop;
    bool meets = capture->records != capture->memory;
    if (i == 0) met += meets;
    if (i == 1) met_at_once += meets && capture->fresh < 4;
    assert_false(i == 2 && meets);
  }
  walks++;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(lists[i].stop, lists[2].stop);
    assert_int_equal(lists[i].count, lists[2].count);
    assert_memory_equal(lists[i].frames, lists[2].frames,
                        lists[2].count * sizeof lists[2].frames[0]);
  }
}

// Functions with frames of several sizes and forms, which call each other at random.
typedef void body(unsigned depth);
static body small, large, with_frame_pointer, saves_much;
static body *const bodies[] = {small, large, with_frame_pointer, saves_much};

static void some_calls(unsigned depth) {
  while (walks < WALKS && depth < DEEPEST && chance(16) != 0) {
    if (chance(4) == 0) walk_and_compare();
    bodies[chance(4)](depth + 1);
  }
}

static __attribute__((noinline)) void small(unsigned depth) {
  some_calls(depth);
  __asm__ volatile("");
}
static __attribute__((noinline)) void large(unsigned depth) {
  volatile char bytes[1000];
  bytes[depth] = 1;
  some_calls(depth);
  (void)bytes[depth];
}
static __attribute__((noinline)) void with_frame_pointer(unsigned depth) {
  volatile char *bytes = __builtin_alloca(16 + chance(100));
  bytes[0] = 1;
  some_calls(depth);
  (void)bytes[0];
}
static __attribute__((noinline)) void saves_much(unsigned depth) {
  uint64_t a = seed, b = seed >> 1, c = seed >> 2, d = seed >> 3, e = seed >> 4, f = seed >> 5;
  __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  some_calls(depth);
  __asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
}

static void a_walk_that_meets_the_last_one_finds_the_same(void **state) {
  (void)state;
  while (walks < WALKS) some_calls(0);
  print_message("%lu walks, %lu met the last one, %lu that of the same place within 4 frames\n",
                walks, met, met_at_once);
#ifdef __x86_64__
  assert_true(met > WALKS / 2);
  assert_true(met_at_once > WALKS / 2);
#endif
}

static int setup(void **state) {
  struct cs_error err = {0};
  (void)state;
  if (cs_library_start_native(NULL, &err) != S_OK) return -1;
  (void)cs_registry_assigned((uint64_t)(uintptr_t)fake_thread, (uint32_t)syscall(SYS_gettid));
  return 0;
}
static int teardown(void **state) {
  (void)state;
  cs_registry_destroyed((uint64_t)(uintptr_t)fake_thread);
  clrsnap_stop();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_walk_that_meets_the_last_one_finds_the_same, setup,
                                      teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
