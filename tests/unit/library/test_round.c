// SPDX-License-Identifier: MIT
// Rounds of walks, with plain threads as targets: all are asked at the first walk, and each walk is one
// of that round; nothing of it is left over, and nobody waits for the round but those who are asked.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "life/function.h"
#include "life/start.h"
#include "snapshot/round.h"
#include "support/target.h"
#include "threads/ask.h"
#include "threads/registry.h"

enum { TARGETS = 3, FLAGS = CS_REQUEST_PLAIN | CS_REQUEST_ROUND };
static struct target *targets[TARGETS];

static int setup(void **state) {
  (void)state;
  struct cs_error err = {0};
  // Threads are asked whatever the kernel says of them: the tests do not depend on who runs.
  struct clrsnap_opts opts = {.size = sizeof opts, .flags = CLRSNAP_ALWAYS_SIGNAL};
  assert_int_equal(cs_library_start_native(&opts, &err), S_OK);
  for (int i = 0; i < TARGETS; i++) targets[i] = target_start((struct target_opts){0});
  return 0;
}

static int teardown(void **state) {
  (void)state;
  cs_round_end();
  targets_end();
  clrsnap_stop();
  return 0;
}

static void all_slots_are_free(void) {
  for (int i = 0; i < CS_REQUEST_ALL; i++)
    assert_int_equal(CS_REQUEST_STATE(cs_load_acquire(&cs_requests[i].word)), CS_REQUEST_FREE);
}

static struct cs_request *take(int i, uint32_t flags) {
  struct cs_thread *thread = cs_registry_find(target_id(targets[i]));
  assert_non_null(thread);
  assert_true(cs_thread_pin(thread, target_id(targets[i])));
  struct cs_request *request = cs_round_take(thread, flags);
  cs_thread_unpin(thread);
  return request;
}

static uint32_t in_target(const struct cs_request *request) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < request->capture.count; i++)
    found += target_owns_ip(cs_record_ip(&request->capture.records[i]));
  return found;
}

// A machine may be so busy that a thread does not answer in time; then it is asked alone.
static uint32_t take_all(uint64_t begin, uint32_t flags) {
  uint32_t taken = 0;
  for (int i = 0; i < TARGETS; i++) {
    struct cs_request *request = take(i, flags);
    if (request == NULL) continue;
    taken++;
    assert_int_equal(request->tid, atomic_load(&targets[i]->tid));
    assert_true(request->entry_tsc >= begin);
    if (SIGNALS_AT_ONCE) assert_true(in_target(request) > 0);
    (void)cs_request_release(request);
    assert_null(take(i, flags));  // one walk is handed out once
  }
  return taken;
}

static void each_round_has_walks_of_its_own(void **state) {
  (void)state;
  uint32_t taken = 0;
  for (int round = 0; round < 50; round++) {
    uint64_t begin = cs_tsc();
    cs_round_begin();
    taken += take_all(begin, round % 4 == 3 ? CS_REQUEST_ROUND : FLAGS);
    cs_round_end();
    all_slots_are_free();
    assert_null(take(0, FLAGS));  // outside of a round
  }
  assert_true(taken >= 20 * TARGETS);
}

static void what_nobody_takes_is_given_up(void **state) {
  (void)state;
  cs_round_begin();
  struct cs_request *request = take(0, FLAGS);
  if (request != NULL) (void)cs_request_release(request);
  cs_round_begin();                             // a caller that has not ended its round
  assert_true(take_all(cs_tsc(), FLAGS) <= 1);  // the others were not wanted in the last one
  cs_round_end();
  all_slots_are_free();
  for (int i = 0; i < TARGETS; i++)
    target_wait_for_beats(targets[i], atomic_load(&targets[i]->beats) + 10);
}

static void nobody_waits_for_a_round_that_does_not_end(void **state) {
  (void)state;
  cs_round_begin();
  struct cs_request *request = take(0, FLAGS);
  for (int i = 0; i < TARGETS; i++)
    target_wait_for_beats(targets[i], atomic_load(&targets[i]->beats) + 10);
  target_end(targets[1]);  // asked, and not taken
  struct cs_thread *gone = cs_registry_find(target_id(targets[1]));
  assert_null(gone);
  if (request != NULL) (void)cs_request_release(request);
  cs_round_end();
  all_slots_are_free();
}

static void a_walk_does_not_outlive_code(void **state) {
  (void)state;
  cs_round_begin();
  struct cs_request *request = take(0, FLAGS);  // all have been asked
  if (request != NULL) (void)cs_request_release(request);
  (void)usleep(50000);
  cs_library_code_died(false);
  for (int i = 1; i < TARGETS; i++) assert_null(take(i, FLAGS));
  cs_round_end();
  all_slots_are_free();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(each_round_has_walks_of_its_own),
      TEST(what_nobody_takes_is_given_up),
      TEST(nobody_waits_for_a_round_that_does_not_end),
      TEST(a_walk_does_not_outlive_code),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
