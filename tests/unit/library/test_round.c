// SPDX-License-Identifier: MIT
// Rounds of walks, with plain threads as targets: all are asked at the first walk, each walk is one
// of that round, nobody is held, and a thread has at most one signal on its way.
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
#include "snapshot/take.h"
#include "support/target.h"
#include "threads/ask.h"
#include "threads/registry.h"

enum { TARGETS = 3, BLOCKED = 2, ANSWER_MS = 1000, PLAIN = CS_REQUEST_PLAIN | CS_REQUEST_ROUND };
static struct target *targets[TARGETS];

static void start(bool blocks) {
  struct cs_error err = {0};
  // Threads are asked whatever the kernel says of them: the tests do not depend on who runs.
  struct clrsnap_opts opts = {.size = sizeof opts, .flags = CLRSNAP_ALWAYS_SIGNAL};
  if (blocks) opts.answer_timeout_ms = ANSWER_MS;
  assert_int_equal(cs_library_start_native(&opts, &err), S_OK);
  for (int i = 0; i < TARGETS; i++)
    targets[i] = target_start((struct target_opts){.block_signal = blocks && i == BLOCKED});
}

static int setup(void **state) {
  (void)state;
  start(false);
  return 0;
}
static int setup_blocked(void **state) {
  (void)state;
  start(true);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  cs_round_end();
  targets_end();
  clrsnap_stop();
  return 0;
}

static enum cs_request_state state_of(int slot) {
  return CS_REQUEST_STATE(cs_load_acquire(&cs_requests[slot].word));
}

static int slots_in(enum cs_request_state state, int from) {
  int count = 0;
  for (int i = from; i < CS_REQUEST_ALL; i++) count += state_of(i) == state;
  return count;
}

static struct cs_thread *thread_of(int i) {
  struct cs_thread *thread = cs_registry_find(target_id(targets[i]));
  assert_non_null(thread);
  return thread;
}

// Returns the walk that was asked ahead, or NULL if the target has to be asked alone.
static struct cs_request *take(int i, uint32_t flags) {
  struct cs_thread *thread = thread_of(i);
  struct cs_ahead ahead;
  assert_true(cs_thread_pin(thread, target_id(targets[i])));
  bool asked = cs_round_take(thread, flags, &ahead);
  if (!asked) cs_round_note(thread, flags);
  bool answered = asked && cs_request_wait(ahead.request, ANSWER_MS);
  if (asked && !answered) cs_round_give_back(thread, &ahead);
  cs_thread_unpin(thread);
  return answered ? ahead.request : NULL;
}

static void take_and_release(int i, uint32_t flags) {
  struct cs_request *request = take(i, flags);
  if (request != NULL) (void)cs_request_release(request);
}

static uint32_t in_target(const struct cs_request *request) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < request->capture.count; i++)
    found += target_owns_ip(cs_record_ip(&request->capture.records[i]));
  return found;
}

// Returns how many were asked ahead, and have answered: on a busy machine a thread may be late.
static uint32_t take_all(uint64_t begin, uint32_t flags) {
  uint32_t taken = 0;
  for (int i = 0; i < TARGETS; i++) {
    struct cs_request *request = take(i, flags);
    if (request == NULL) continue;
    taken++;
    assert_int_equal(request->tid, atomic_load(&targets[i]->tid));
    assert_int_equal(request->answer, CS_ANSWER_WALKED);
    assert_true(request->entry_tsc >= begin);
    if (SIGNALS_AT_ONCE) assert_true(cs_round_is_good(request));
    if (SIGNALS_AT_ONCE) assert_true(in_target(request) > 0);
    (void)cs_request_release(request);
    struct cs_ahead again;
    assert_false(cs_round_take(thread_of(i), flags, &again));  // one walk is handed out once
  }
  return taken;
}

static void each_round_has_walks_of_its_own(void **state) {
  (void)state;
  uint32_t taken = 0;
  for (int round = 0; round < 50; round++) {
    uint64_t begin = cs_tsc();
    cs_round_begin();
    taken += take_all(begin, PLAIN);
    cs_round_end();
    struct cs_ahead outside;
    assert_false(cs_round_take(thread_of(0), PLAIN, &outside));
  }
  assert_true(taken >= 25 * TARGETS);
}

static void nobody_is_asked_before_the_first_walk(void **state) {
  (void)state;
  int before = slots_in(CS_REQUEST_FREE, 0);
  cs_round_begin();
  (void)usleep(1000);
  assert_int_equal(slots_in(CS_REQUEST_FREE, 0), before);
  cs_round_end();
}

static void all_are_asked_at_the_first_walk(void **state) {
  (void)state;
  cs_round_begin();
  take_and_release(0, PLAIN);
  int others = CS_REQUEST_AHEAD - slots_in(CS_REQUEST_FREE, CS_REQUEST_SLOTS);
  assert_in_range(others, TARGETS - 1, TARGETS);
  cs_round_end();
}

static void nobody_is_held_by_a_round_that_does_not_end(void **state) {
  (void)state;
  cs_round_begin();
  take_and_release(0, PLAIN);
  for (int i = 0; i < TARGETS; i++)
    target_wait_for_beats(targets[i], atomic_load(&targets[i]->beats) + 10);
  target_end(targets[1]);  // asked, and not taken
  assert_null(cs_registry_find(target_id(targets[1])));
  cs_round_end();
}

static void a_walk_does_not_outlive_code(void **state) {
  (void)state;
  uint32_t taken = 0;
  cs_round_begin();
  take_and_release(0, PLAIN);  // all have been asked
  for (int i = 1; i < TARGETS; i++) {
    struct cs_request *request = take(i, PLAIN);
    if (request == NULL) continue;
    taken++;
    if (SIGNALS_AT_ONCE) assert_true(cs_round_is_good(request));
    cs_library_code_died(false);
    assert_false(cs_round_is_good(request));
    (void)cs_request_release(request);
    break;
  }
  cs_round_end();
  assert_true(taken > 0);
}

// The registers that a CONTEXT needs are recorded from the round on after the one that wants them.
static void registers_are_recorded_for_who_wants_them(void **state) {
  (void)state;
  struct cs_ahead ahead;
  cs_round_begin();
  take_and_release(0, PLAIN);
  assert_false(cs_round_take(thread_of(1), CS_REQUEST_ROUND, &ahead));
  cs_round_note(thread_of(1), CS_REQUEST_ROUND);
  bool with_all = false;
  for (int round = 0; round < 300 && !with_all; round++) {
    cs_round_begin();
    struct cs_request *request = take(1, CS_REQUEST_ROUND);
    if (request != NULL) {
      assert_false(request->capture.plain);
      with_all = true;
      (void)cs_request_release(request);
    } else {
      (void)usleep(10000);  // the signal of the round before is still on its way
    }
    cs_round_end();
  }
  cs_round_end();
  assert_true(with_all);
}

static HRESULT take_other(int i, struct cs_take *result) {
  struct cs_error err = {0};
  struct cs_thread *thread = thread_of(i);
  assert_true(cs_thread_pin(thread, target_id(targets[i])));
  return cs_take_other(result, thread, PLAIN, NULL, &err);
}

static void requests_of_a_round_get_what_was_asked_ahead(void **state) {
  (void)state;
  int ahead = 0;
  for (int round = 0; round < 20; round++) {
    cs_round_begin();
    for (int i = 0; i < TARGETS; i++) {
      struct cs_take result;
      assert_int_equal(take_other(i, &result), S_OK);
      ahead += result.request - cs_requests >= CS_REQUEST_SLOTS;
      (void)cs_take_end(&result);
      assert_int_equal(cs_load_acquire(&thread_of(i)->walkers) & ~CS_THREAD_AWAITED, 0);
    }
    cs_round_end();
    assert_int_equal(slots_in(CS_REQUEST_FREE, 0), CS_REQUEST_ALL);
  }
  if (SIGNALS_AT_ONCE) assert_true(ahead >= 10 * TARGETS);
}

// ---- A thread that blocks the signal ----

static void it_has_one_signal_on_its_way(void **state) {
  (void)state;
  uint64_t word = 0;
  struct cs_request *pending = NULL;
  for (int round = 0; round < 5; round++) {
    cs_round_begin();
    for (int i = 0; i < BLOCKED; i++) take_and_release(i, PLAIN);
    assert_null(take(BLOCKED, PLAIN));
    cs_round_end();
    assert_int_equal(slots_in(CS_REQUEST_PENDING, CS_REQUEST_SLOTS), 1);
    if (pending == NULL)
      for (int i = CS_REQUEST_SLOTS; i < CS_REQUEST_ALL; i++)
        if (state_of(i) == CS_REQUEST_PENDING) pending = &cs_requests[i];
    if (word == 0) word = cs_load_acquire(&pending->word);
    assert_int_equal(cs_load_acquire(&pending->word), word);
  }
  atomic_store(&targets[BLOCKED]->unblock, true);
  while (CS_REQUEST_STATE(cs_load_acquire(&pending->word)) != CS_REQUEST_DONE) (void)usleep(1000);
  uint64_t begin = cs_tsc();  // that walk belongs to no round
  cs_round_begin();
  (void)take_all(begin, PLAIN);
  cs_round_end();
}

static void its_walk_belongs_to_the_round_in_which_it_begins(void **state) {
  (void)state;
  cs_round_begin();
  assert_null(take(BLOCKED, PLAIN));
  cs_round_end();
  uint64_t begin = cs_tsc();
  cs_round_begin();
  atomic_store(&targets[BLOCKED]->unblock, true);
  struct cs_request *request;
  while ((request = take(BLOCKED, PLAIN)) == NULL) {
    cs_round_end();
    begin = cs_tsc();
    cs_round_begin();
  }
  assert_true(request->entry_tsc >= begin);
  (void)cs_request_release(request);
  cs_round_end();
}

static void its_walk_is_refused_in_time(void **state) {
  (void)state;
  struct cs_take result;
  for (int round = 0; round < 3; round++) {
    cs_round_begin();
    assert_int_equal(take_other(BLOCKED, &result), CORPROF_E_STACKSNAPSHOT_UNSAFE);
    cs_round_end();
  }
  assert_int_equal(slots_in(CS_REQUEST_PENDING, 0), 1);
  target_end(targets[BLOCKED]);  // nobody pins it
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_BLOCKED(name) cmocka_unit_test_setup_teardown(name, setup_blocked, teardown)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(each_round_has_walks_of_its_own),
      TEST(nobody_is_asked_before_the_first_walk),
      TEST(all_are_asked_at_the_first_walk),
      TEST(nobody_is_held_by_a_round_that_does_not_end),
      TEST(a_walk_does_not_outlive_code),
      TEST(registers_are_recorded_for_who_wants_them),
      TEST(requests_of_a_round_get_what_was_asked_ahead),
      TEST_BLOCKED(it_has_one_signal_on_its_way),
      TEST_BLOCKED(its_walk_belongs_to_the_round_in_which_it_begins),
      TEST_BLOCKED(its_walk_is_refused_in_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
