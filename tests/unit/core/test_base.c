// SPDX-License-Identifier: MIT
// Errors, the log, the clock.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/own_thread.h"

static void an_error_is_one_bounded_line(void **state) {
  (void)state;
  struct cs_error err;
  assert_false(cs_error_set(&err, "cannot do %d\nthings", 3));
  assert_string_equal(err.text, "cannot do 3 things");
  char long_text[600];
  memset(long_text, 'a', sizeof long_text - 1);
  long_text[sizeof long_text - 1] = '\0';
  assert_false(cs_error_set(&err, "%s", long_text));
  assert_int_equal(strlen(err.text), sizeof err.text - 1);
  assert_false(cs_error_set(NULL, "nobody listens"));
}

static bool is_same_file(int a, int b) {
  struct stat first, second;
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// Reads back stderr and the log's file. The log opens its file once, so one test covers everything.
static void the_log_has_every_line_and_stderr_each_sentence_once(void **state) {
  (void)state;
  char log_path[] = "/tmp/clrsnap-log-XXXXXX", err_path[] = "/tmp/clrsnap-err-XXXXXX";
  int log_fd = mkstemp(log_path), err_fd = mkstemp(err_path), real_stderr = dup(STDERR_FILENO);
  assert_true(log_fd >= 0 && err_fd >= 0 && real_stderr >= 0);
  assert_int_equal(setenv(CS_LOG_ENV, log_path, 1), 0);
  assert_int_equal(dup2(err_fd, STDERR_FILENO), STDERR_FILENO);
  cs_log("quiet %d", 1);
  cs_log_important("loud %d", 2);
  cs_log_important("loud %d", 2);
  char big[3000];
  memset(big, 'b', sizeof big - 1);
  big[sizeof big - 1] = '\0';
  cs_log("%s", big);
  // The program closes the log, and opens a file of its own under that number.
  int mine = memfd_create("program", MFD_CLOEXEC), taken = 0;
  for (int fd = 3; fd < 10000; fd++)
    if (fd != log_fd && is_same_file(fd, log_fd) && dup2(mine, fd) == fd) taken++;
  assert_int_equal(taken, 1);
  cs_log("anew");
  assert_int_equal(lseek(mine, 0, SEEK_END), 0);
  assert_int_equal(dup2(real_stderr, STDERR_FILENO), STDERR_FILENO);

  char text[8192] = "";
  ssize_t n = pread(err_fd, text, sizeof text - 1, 0);
  assert_true(n > 0);
  assert_string_equal(text, "clrsnap: loud 2\n");
  n = pread(log_fd, text, sizeof text - 1, 0);
  assert_true(n > 0);
  text[n] = '\0';
  int lines = 0;
  for (char *p = text; *p != '\0'; p++) lines += *p == '\n';
  assert_int_equal(lines, 5);
  assert_non_null(strstr(text, " quiet 1\n"));
  assert_non_null(strstr(text, " loud 2\n"));
  assert_non_null(strstr(text, " anew\n"));
  assert_int_equal(text[n - 1], '\n');
  (void)unlink(log_path);
  (void)unlink(err_path);
}

// The counter's time must lie between two readings of the clock, give or take the error of the
// calibration itself. That holds however slow the machine is.
static void the_counter_agrees_with_the_clock(void **state) {
  (void)state;
  cs_clock_init();
  cs_clock_refine();
  struct timespec nap = {0, 20000000};
  for (int i = 0; i < 5; i++) {
    uint64_t before = cs_clock_now_ns();
    uint64_t counter = cs_clock_tsc_to_ns(cs_tsc());
    uint64_t after = cs_clock_now_ns();
    const uint64_t slack = 1000000;
    assert_true(counter + slack >= before && counter <= after + slack);
    (void)nanosleep(&nap, NULL);
    cs_clock_refine();
  }
  uint64_t a = cs_tsc(), b = a + 1000000;
  uint64_t span = cs_clock_tsc_to_ns(b) - cs_clock_tsc_to_ns(a);
  uint64_t same = cs_clock_ticks_to_ns(1000000);
  assert_true(span + 1 >= same && span <= same + 1);
}

static void *look_at_own_stack(void *size) {
  pthread_attr_t attr;
  void *at;
  *(size_t *)size = 0;
  if (pthread_getattr_np(pthread_self(), &attr) != 0) return NULL;
  (void)pthread_attr_getstack(&attr, &at, size);
  (void)pthread_attr_destroy(&attr);
  return NULL;
}

// Also where the program's limit for stacks, which glibc takes for its default, is lower.
static void an_own_thread_has_the_stack_it_asks_for(void **state) {
  (void)state;
  pthread_t thread;
  size_t size;
  assert_int_equal(cs_own_thread_begin(&thread, look_at_own_stack, &size), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_in_range(size, CS_OWN_STACK - 65536, CS_OWN_STACK + 65536);
}

// ---- Own threads ----

static uint32_t own_id, is_own_inside, is_own_at_end;

// Called when the thread's main function has returned, but the thread is still there.
static void look_at_the_end(void *unused) {
  (void)unused;
  cs_own_threads_sweep();
  cs_store_release(&is_own_at_end, (uint32_t)cs_own_thread_is((uint32_t)gettid()));
}

static void *note_own(void *unused) {
  static pthread_key_t key;
  assert_int_equal(pthread_key_create(&key, look_at_the_end), 0);
  assert_int_equal(pthread_setspecific(key, &key), 0);
  cs_store_release(&own_id, (uint32_t)gettid());
  cs_store_release(&is_own_inside, (uint32_t)cs_own_thread_is((uint32_t)gettid()));
  return unused;
}

static void threads_of_ours_are_known_by_their_id(void **state) {
  (void)state;
  pthread_t thread;
  assert_int_equal(cs_own_thread_begin(&thread, note_own, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(cs_load_acquire(&is_own_inside), 1);
  assert_int_equal(cs_load_acquire(&is_own_at_end), 1);
  do  // the kernel lets it be joined shortly before it is gone
    cs_own_threads_sweep();
  while (syscall(SYS_tgkill, getpid(), cs_load_acquire(&own_id), 0) == 0);
  cs_own_threads_sweep();
  assert_false(cs_own_thread_is(cs_load_acquire(&own_id)));
  assert_false(cs_own_thread_is((uint32_t)gettid()));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_error_is_one_bounded_line),
      cmocka_unit_test(the_log_has_every_line_and_stderr_each_sentence_once),
      cmocka_unit_test(an_own_thread_has_the_stack_it_asks_for),
      cmocka_unit_test(the_counter_agrees_with_the_clock),
      cmocka_unit_test(threads_of_ours_are_known_by_their_id),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
