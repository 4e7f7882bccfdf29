// SPDX-License-Identifier: MIT
// Files that stay open in a program that closes descriptors that it does not know.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own_file.h"

static int open_one(void) {
  int fd = open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  return fd;
}

// The program's file under that number.
static void put_there(int number) {
  int fd = memfd_create("program", MFD_CLOEXEC);
  assert_true(fd >= 0 && dup2(fd, number) == number);
  if (fd != number) assert_int_equal(close(fd), 0);
}

static void it_is_high_and_closed_once(void **state) {
  (void)state;
  struct cs_own_file file = {0};
  assert_int_equal(cs_own_file_fd(&file), -1);
  assert_true(cs_own_file_keep(&file, open_one()));
  int fd = cs_own_file_fd(&file);
  assert_true(fd >= cs_own_file_first());
  cs_own_file_close(&file);
  assert_int_equal(fcntl(fd, F_GETFD), -1);
  assert_int_equal(cs_own_file_fd(&file), -1);
  put_there(fd);
  cs_own_file_close(&file);
  assert_true(fcntl(fd, F_GETFD) >= 0);
  assert_int_equal(close(fd), 0);
}

static void a_number_of_the_program_is_neither_used_nor_closed(void **state) {
  (void)state;
  for (int kept = 0; kept < 2; kept++) {
    struct cs_own_file file = {0};
    assert_true(kept ? cs_own_file_keep(&file, open_one()) : cs_own_file_take(&file, open_one()));
    int fd = cs_own_file_fd(&file);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(cs_own_file_fd(&file), -1);
    put_there(fd);
    assert_int_equal(cs_own_file_fd(&file), -1);
    assert_true(cs_own_file_take(&file, open_one()));  // opened anew
    int anew = cs_own_file_fd(&file);
    assert_true(anew >= 0 && anew != fd);
    assert_int_equal(close(anew), 0);
    put_there(anew);
    cs_own_file_close(&file);
    assert_true(fcntl(fd, F_GETFD) >= 0 && fcntl(anew, F_GETFD) >= 0);
    assert_true(close(fd) == 0 && close(anew) == 0);
  }
}

static void what_cannot_be_opened_is_none(void **state) {
  (void)state;
  struct cs_own_file file = {0};
  assert_false(cs_own_file_keep(&file, -1));
  assert_false(cs_own_file_take(&file, -1));
  int closed = open_one();
  assert_int_equal(close(closed), 0);
  assert_false(cs_own_file_keep(&file, closed));
  assert_int_equal(cs_own_file_fd(&file), -1);
}

// No high descriptor is left: the low one will do.
static void a_low_one_where_no_high_one_is_left(void **state) {
  (void)state;
  struct rlimit limit, few;
  struct cs_own_file file = {0};
  int high[16], count = 0, fd;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  few = (struct rlimit){32, limit.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
  while ((fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, cs_own_file_first())) >= 0) high[count++] = fd;
  assert_true(count > 0 && count <= 16);
  assert_true(cs_own_file_keep(&file, open_one()));
  fd = cs_own_file_fd(&file);
  assert_true(fd >= 0 && fd < cs_own_file_first());
  cs_own_file_close(&file);
  assert_int_equal(fcntl(fd, F_GETFD), -1);
  while (count > 0) assert_int_equal(close(high[--count]), 0);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_high_and_closed_once),
      cmocka_unit_test(a_number_of_the_program_is_neither_used_nor_closed),
      cmocka_unit_test(what_cannot_be_opened_is_none),
      cmocka_unit_test(a_low_one_where_no_high_one_is_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
