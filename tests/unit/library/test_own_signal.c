// SPDX-License-Identifier: MIT
// The library's own real-time signal, when the program changes the signal's disposition later.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#include "life/start.h"
#include "signal/request.h"
#include "support/target.h"
#include "threads/own_signal.h"
#include "threads/threads.h"

static atomic_int theirs_came;
static void theirs(int signo) {
  (void)signo;
  atomic_fetch_add(&theirs_came, 1);
}

static HRESULT ignore(const struct clrsnap_frame *frame, void *data) {
  (void)frame, (void)data;
  return S_OK;
}

static HRESULT walk(struct target *target) {
  return clrsnap_walk(target_id(target), ignore, NULL, NULL, NULL);
}

static int setup(void **state) {
  struct cs_error err;
  *state = target_start((struct target_opts){0});
  return cs_library_start_native(NULL, &err) == S_OK ? 0 : -1;
}
static int teardown(void **state) {
  target_end(*state);
  clrsnap_stop();
  return 0;
}

// The signal's default action ends the process.
static void one_that_is_reset_is_taken_again(void **state) {
  assert_int_equal(walk(*state), S_OK);
  (void)signal(cs_threads.signal_number, SIG_DFL);
  assert_int_equal(walk(*state), S_OK);
}

static void one_that_is_used_is_not_sent(void **state) {
  (void)signal(cs_threads.signal_number, theirs);
  assert_int_not_equal(walk(*state), S_OK);
  assert_non_null(strstr(clrsnap_last_error(), "the program uses signal"));
  assert_int_equal(atomic_load(&theirs_came), 0);
  for (int i = 0; i < CS_REQUEST_SLOTS; i++)
    assert_int_equal(CS_REQUEST_STATE(cs_load_acquire(&cs_requests[i].word)), CS_REQUEST_FREE);
  (void)signal(cs_threads.signal_number, SIG_DFL);
  assert_int_equal(walk(*state), S_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(one_that_is_reset_is_taken_again, setup, teardown),
      cmocka_unit_test_setup_teardown(one_that_is_used_is_not_sent, setup, teardown),
  };
  return cmocka_run_group_tests_name("own_signal", tests, NULL, NULL);
}
