// SPDX-License-Identifier: MIT
// The notes of how long signals hold threads up.
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "signal/handler_times.h"

static struct cs_handler_times notes;

static void half_of_the_handlers_are_empty(void **state) {
  struct cs_thread thread = {.tid = 1};
  uint32_t empty = 0;
  (void)state;
  notes.used = 0;
  for (uint64_t tsc = 1; tsc <= 1000; tsc++) {
    struct cs_handler_time *note = cs_handler_time_begin(&notes, &thread, tsc, true);
    assert_ptr_equal(note, &notes.at[tsc - 1]);
    assert_int_equal(note->entry, tsc);
    assert_int_equal(note->clocked, 1);
    assert_true(note->empty ? note->end >= tsc : note->end == 0);
    empty += note->empty;
  }
  assert_in_range(empty, 400, 600);
}

static void a_thread_at_rest_is_not_noted(void **state) {
  struct cs_thread thread = {.tid = 1, .cooldown = {.until = 2000}};
  (void)state;
  notes.used = 0;
  for (uint64_t tsc = 1000; tsc < 2000; tsc++)
    assert_null(cs_handler_time_begin(&notes, &thread, tsc, false));
  assert_int_equal(notes.used, 0);
}

static void there_is_no_room_for_more(void **state) {
  struct cs_thread thread = {.tid = 1};
  (void)state;
  notes.used = CS_HANDLER_TIMES - 1;
  assert_ptr_equal(cs_handler_time_begin(&notes, &thread, 1, false),
                   &notes.at[CS_HANDLER_TIMES - 1]);
  assert_null(cs_handler_time_begin(&notes, &thread, 2, false));
}

static struct {
  uint8_t page[CS_PERF_PAGE], records[CS_PERF_PAGE];
} ring __attribute__((aligned(CS_PERF_PAGE)));

static void the_kernel_says_when_it_interrupted(void **state) {
  struct perf_event_mmap_page *page = (void *)ring.page;
  uint64_t *record = (void *)ring.records;
  struct cs_thread thread = {.perf = {.ring = ring.page}};
  (void)state;
  assert_int_equal(cs_handler_time_overflow_ns(&thread), 0);  // nothing was written
  record[0] = PERF_RECORD_SAMPLE | (uint64_t)PERF_RECORD_MISC_USER << 32 | 16ull << 48;
  record[1] = 4711;
  page->data_head = 16;
  assert_int_equal(cs_handler_time_overflow_ns(&thread), 4711);
  record[0] = PERF_RECORD_SAMPLE | (uint64_t)PERF_RECORD_MISC_KERNEL << 32 | 16ull << 48;
  assert_int_equal(cs_handler_time_overflow_ns(&thread), 0);
  thread.perf.ring = NULL;
  assert_int_equal(cs_handler_time_overflow_ns(&thread), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(half_of_the_handlers_are_empty),
      cmocka_unit_test(a_thread_at_rest_is_not_noted),
      cmocka_unit_test(there_is_no_room_for_more),
      cmocka_unit_test(the_kernel_says_when_it_interrupted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
