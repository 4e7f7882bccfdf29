// SPDX-License-Identifier: MIT
// What is said of a process that ends while it is attached to: that it has ended, and not the first
// of its files that could not be reached any more.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/proc.h"
#include "session/hand_over.h"

// The child stands in /proc until it is waited for.
static pid_t zombie(void) {
  siginfo_t info;
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  assert_true(pid > 0);
  assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
  return pid;
}

static void a_process_that_ends_has_ended(void **state) {
  (void)state;
  struct cs_error err = {""};
  struct cs_handed handed;
  char expected[64];
  pid_t pid = zombie();
  (void)snprintf(expected, sizeof expected, "process %d has ended", (int)pid);
  assert_true(cs_proc_has_ended(pid));
  assert_false(cs_hand_over(pid, "/proc/self/exe", NULL, NULL, &handed, &err));
  assert_string_equal(err.text, expected);
  cs_handed_free(&handed);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
  assert_true(cs_proc_has_ended(pid));
  assert_false(cs_proc_has_ended(getpid()));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_process_that_ends_has_ended),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
