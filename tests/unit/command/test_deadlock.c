// SPDX-License-Identifier: MIT
// How `clrsnap stack` prints threads that wait for each other (cli/stack_locks.c): all of a few,
// and of many the first and the last ones, in one line of bounded length.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/stack_parts.h"
#include "util/map.h"

// Each of the threads waits for a lock that the next one holds. Returns the text, from malloc.
static char *print_circle(uint32_t count) {
  struct cs_outside outside = {.count = count, .cycles = 1};
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  outside.threads = cs_allocate(count * sizeof *outside.threads);
  for (uint32_t i = 0; i < count; i++) {
    struct cs_outside_thread *t = &outside.threads[i];
    t->tid = (int)(100 + i);
    (void)snprintf(t->name, sizeof t->name, "t%u", i);
    t->lock = (struct cs_outside_lock){.kind = CS_OUTSIDE_LOCK_MONITOR,
                                       .owner = CS_OUTSIDE_OWNER_THREAD,
                                       .by = (i + 1) % count,
                                       .cycle = 1};
  }
  cs_stack_print_deadlocks(out, &outside);
  assert_int_equal(fclose(out), 0);
  free(outside.threads);
  return text;
}

static uint32_t count_of(const char *text, const char *what) {
  uint32_t count = 0;
  for (; (text = strstr(text, what)) != NULL; text += strlen(what)) count++;
  return count;
}

static void a_few_are_all_printed(void **state) {
  (void)state;
  char *text = print_circle(2);
  assert_string_equal(text,
                      "deadlock: \"t0\" (tid 100) waits for an object held by \"t1\" (tid 101), "
                      "which waits for an object held by \"t0\"\n");
  free(text);
  text = print_circle(12);
  assert_int_equal(count_of(text, " waits for an object held by "), 12);
  assert_null(strstr(text, "and so on"));
  free(text);
}

static void of_many_the_ends_are_printed(void **state) {
  (void)state;
  char *text = print_circle(1500);
  assert_true(strlen(text) < 1000);
  assert_int_equal(count_of(text, " waits for an object held by "), 10);
  assert_non_null(strstr(text,
                         "held by \"t8\" (tid 108), and so on, through 1489 more threads, to "
                         "\"t1498\" (tid 1598), which waits for an object held by \"t1499\" "
                         "(tid 1599), which waits for an object held by \"t0\"\n"));
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_few_are_all_printed),
      cmocka_unit_test(of_many_the_ends_are_printed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
