// SPDX-License-Identifier: MIT
// Files in /proc about this program's threads: which stay open, and what they say once a thread has
// ended.
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "engines/kept_files.h"
#include "support/engine_run.h"

static pthread_barrier_t begun, ended;

static void *live(void *tid) {
  *(uint32_t *)tid = own_tid();
  (void)pthread_barrier_wait(&begun);
  (void)pthread_barrier_wait(&ended);
  return NULL;
}

static void start(pthread_t *thread, uint32_t *tid) {
  assert_int_equal(pthread_barrier_init(&begun, NULL, 2), 0);
  assert_int_equal(pthread_barrier_init(&ended, NULL, 2), 0);
  assert_int_equal(pthread_create(thread, NULL, live, tid), 0);
  (void)pthread_barrier_wait(&begun);
}

static void finish(pthread_t thread) {
  (void)pthread_barrier_wait(&ended);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

// Returns how many descriptors there are, with a thread and without kept files.
static int begin_keeping(pthread_t *thread, uint32_t *tid) {
  start(thread, tid);
  int before = count_fds();
  cs_kept_begin();
  return before;
}

static void end_keeping(int before) {
  cs_kept_end();
  assert_int_equal(count_fds(), before);
}

static bool says(uint32_t id, uint32_t tid, enum cs_kept kind) {
  char text[512], name[32];
  if (!cs_kept_read(id, tid, kind, text, sizeof text)) return false;
  (void)snprintf(name, sizeof name, kind == CS_KEPT_STAT ? "%u (" : "(%u, ", tid);
  return strstr(text, name) != NULL;
}

static void files_stay_open_until_the_end(void **state) {
  (void)state;
  pthread_t thread;
  uint32_t tid;
  int before = begin_keeping(&thread, &tid);
  assert_true(says(1, tid, CS_KEPT_STAT));
  assert_true(says(0, own_tid(), CS_KEPT_STAT));
  int open = count_fds();
  assert_int_equal(open, before + 2);
  for (int i = 0; i < 20; i++) assert_true(says(1, tid, CS_KEPT_STAT));
  assert_int_equal(count_fds(), open);
  finish(thread);
  assert_false(says(1, tid, CS_KEPT_STAT));
  end_keeping(before);
}

// Another thread with the same place is read all the same, and gets the place if it is read more
// often.
static void a_place_has_one_thread(void **state) {
  enum { SAME = 1 + 256, READS = 40 };
  (void)state;
  pthread_t thread;
  uint32_t tid;
  int before = begin_keeping(&thread, &tid);
  for (int i = 0; i < READS; i++) {
    assert_true(says(1, tid, CS_KEPT_STAT));
    assert_true(says(SAME, own_tid(), CS_KEPT_STAT));
    assert_true(count_fds() <= before + 1);
  }
  for (int i = 0; i < READS; i++) assert_true(says(SAME, own_tid(), CS_KEPT_STAT));
  assert_int_equal(count_fds(), before + 1);
  finish(thread);
  end_keeping(before);
}

static int few_are_kept(void) {
  struct rlimit few = {64, 64};  // an eighth of it: four places of two files
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
  int before = count_fds();
  cs_kept_begin();
  for (uint32_t id = 1; id <= 100; id++)
    if (!says(id, own_tid(), CS_KEPT_STAT)) return 2;
  int kept = count_fds() - before;
  cs_kept_end();
  return kept == 4 && count_fds() == before ? 0 : 3;
}

static int none_is_kept(void) {
  struct rlimit none = {12, 12};
  if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 1;
  int before = count_fds();
  cs_kept_begin();
  if (!says(1, own_tid(), CS_KEPT_STAT)) return 2;
  return count_fds() == before ? 0 : 3;
}

static void descriptors_are_left_to_the_program(void **state) {
  (void)state;
  in_child(few_are_kept);
  in_child(none_is_kept);
}

static int program_closes_all(void) {
  cs_kept_begin();
  if (!says(1, own_tid(), CS_KEPT_STAT)) return 1;
  int first = 0;
  for (int fd = 3; fd < 10000; fd++)
    if (close(fd) == 0) first = fd;
  int mine = memfd_create("program", 0);
  if (first == 0 || mine < 0 || write(mine, "own", 3) != 3 || dup2(mine, first) != first) return 2;
  if (!says(1, own_tid(), CS_KEPT_STAT)) return 3;
  cs_kept_end();
  return fcntl(first, F_GETFD) >= 0 ? 0 : 4;
}

static void a_descriptor_of_the_program_is_left_alone(void **state) {
  (void)state;
  in_child(program_closes_all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_stay_open_until_the_end),
      cmocka_unit_test(a_place_has_one_thread),
      cmocka_unit_test(descriptors_are_left_to_the_program),
      cmocka_unit_test(a_descriptor_of_the_program_is_left_alone),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
