// SPDX-License-Identifier: MIT
// The chain of frame pointers that is followed ahead of a walk: nothing but the stack is read,
// wherever a chain leads.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "unwind/ahead.h"
#include "unwind/sites.h"

enum { PAGE = 4096, WORDS = PAGE / 8, SP = 64 };  // the words below SP are not the stack's

static struct cs_sites sites;
static struct cs_world world = {.sites = &sites};
static uint64_t *page;  // between two that cannot be read
static struct cs_stack stack;

static uint64_t at(unsigned word) {
  return (uint64_t)(uintptr_t)&page[word];
}

// How far the chain from `fp` has been followed.
static uint64_t followed(uint64_t fp) {
  struct cs_near near = {.begin = 1, .end = 2};
  cs_prefetch_ahead(&world, &near, &stack, fp);
  return near.prefetched;
}

static void chain(unsigned first, unsigned step, unsigned count) {
  for (unsigned i = 0; i < count; i++) page[first + i * step] = at(first + (i + 1) * step);
}

static void follows_some_frames(void **state) {
  (void)state;
  chain(SP, 4, 12);
  page[SP + 12 * 4] = 0;
  assert_int_equal(followed(at(SP)), at(SP + 12 * 4) + 8);
  chain(SP, 4, 100);
  uint64_t once = followed(at(SP));
  assert_in_range(once, at(SP + 9 * 4), at(SP + 99 * 4));
  assert_true(followed(at(SP + 40)) > once);
}

static void stays_on_the_stack(void **state) {
  (void)state;
  const uint64_t bad[] = {
      0,         8,          at(SP) - 8,      at(0) - 8,       at(0) - PAGE, at(WORDS - 1),
      at(WORDS), at(SP) + 1, at(WORDS) + 800, UINT64_MAX - 15, UINT64_MAX};
  for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(followed(bad[i]), 0);
    page[SP + 2] = bad[i];
    assert_int_equal(followed(at(SP + 2)), at(SP + 2) + 8);
  }
  assert_int_equal(followed(at(WORDS - 2)), at(WORDS - 2) + 8);
}

static void does_not_go_back(void **state) {
  (void)state;
  page[SP + 10] = at(SP + 20);
  page[SP + 20] = at(SP + 10);
  assert_int_equal(followed(at(SP + 10)), at(SP + 20) + 8);
  page[SP + 10] = at(SP + 10);
  assert_int_equal(followed(at(SP + 10)), at(SP + 10) + 8);
}

int main(void) {
  uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE) != 0) return 1;
  page = (uint64_t *)(void *)(pages + PAGE);
  stack = (struct cs_stack){.lo = at(SP), .hi = at(WORDS)};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(follows_some_frames),
      cmocka_unit_test(stays_on_the_stack),
      cmocka_unit_test(does_not_go_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
