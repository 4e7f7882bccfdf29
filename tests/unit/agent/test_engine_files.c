// SPDX-License-Identifier: MIT
// The descriptors of the perf engine, on threads of this program: when there are few, when the
// program reuses their numbers, in forked children, and after an exec. Skipped, with the engine's
// reason, where this user may not use perf events.
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/perf.h"
#include "support/engine_run.h"

// ---- Descriptors ----

static int few_descriptors(void) {
  char why[256] = "";
  int used = count_fds();
  struct rlimit few = {(rlim_t)used + 1, (rlim_t)used + 1};
  open_recording(999, CS_WIRE_ENGINE_PERF);
  few.rlim_cur = few.rlim_max = (rlim_t)count_fds() + 1;
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
  if (cs_engines_begin(&err) || strstr(err.text, "ulimit -n") == NULL) return 2;
  cs_options.engine = CS_WIRE_ENGINE_AUTO;
  if (!cs_engines_begin(&err)) return 3;
  struct cs_wire_engine engine = told(why);
  if (engine.used == CS_WIRE_ENGINE_PERF || strstr(why, "ulimit -n") == NULL) return 4;
  cs_threads_add_native(own_tid());
  return 0;
}

static volatile bool over;
static void *wait_about(void *unused) {
  (void)unused;
  cs_threads_add_native(own_tid());
  while (!over) (void)usleep(1000);
  return NULL;
}

// The program needs more descriptors after events have taken theirs.
static int fewer_descriptors(void) {
  enum { THREADS = 20, FREE = 400, FILES = 370 };
  char why[256] = "";
  pthread_t threads[THREADS];
  begin(999, CS_WIRE_ENGINE_AUTO);
  int used = count_fds();
  struct rlimit some = {(rlim_t)used + FREE, (rlim_t)used + FREE};
  if (setrlimit(RLIMIT_NOFILE, &some) != 0) return 1;
  (void)cs_engines_poll(cs_clock_now_ns());
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, wait_about, NULL) != 0) return 2;
  for (int i = 0; i < 200 && count_fds() < used + THREADS; i++) (void)usleep(5000);
  if (count_fds() != used + THREADS) return 3;
  for (int i = 0; i < FILES; i++)
    if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) return 4;
  (void)cs_engines_poll(cs_clock_now_ns() + 2000 * MS);
  (void)cs_engines_poll(cs_clock_now_ns() + 2010 * MS);
  if (count_fds() != used + FILES) return 5;  // the events' descriptors are closed
  struct cs_wire_engine engine = told(why);
  if (engine.used == CS_WIRE_ENGINE_PERF || strstr(why, "ulimit -n") == NULL) return 6;
  return 0;
}

// A program that opens files all at once, faster than descriptors are counted, has seven eighths.
static int most_descriptors(void) {
  enum { LIMIT = 240, THREADS = 60 };
  pthread_t threads[THREADS];
  struct rlimit some = {LIMIT, LIMIT};
  if (setrlimit(RLIMIT_NOFILE, &some) != 0) return 1;
  begin(999, CS_WIRE_ENGINE_AUTO);
  int used = count_fds();
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, wait_about, NULL) != 0) return 2;
  for (int i = 0; i < 20; i++) {
    (void)usleep(5000);
    if (count_fds() > used + LIMIT / 8) return 3;
  }
  return 0;
}

static void descriptors_are_left_to_the_program(void **state) {
  (void)state;
  in_child(most_descriptors);
  in_child(few_descriptors);
  in_child(fewer_descriptors);
}

// The program closes descriptors that it does not know, and reuses their numbers.
static int closes_all(void) {
  begin(999, CS_WIRE_ENGINE_PERF);
  cs_threads_add_native(own_tid());
  int first = 3;
  while (first < 20000 && (fcntl(first, F_GETFD) < 0 || first < 512)) first++;
  if (first >= 20000) return 1;  // no event has a high descriptor
  for (int fd = 512; fd < 20000; fd++) (void)close(fd);
  int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dup2(file, first) != first) return 2;
  (void)drain();
  burn(100 * MS);
  if (drain().samples > 1) return 3;  // without its event
  (void)cs_engines_poll(cs_clock_now_ns() + 1000 * MS);
  if (burn_for(50, 100 * MS) < 50) return 4;  // with a new event
  cs_threads_stop();
  cs_engines_end();
  return fcntl(first, F_GETFD) >= 0 ? 0 : 5;
}

static void descriptors_that_the_program_has_closed_are_its_own(void **state) {
  (void)state;
  in_child(closes_all);
}

// A forked child inherits the events' files.
static void a_forked_child_keeps_nothing_alive(void **state) {
  (void)state;
  int status, ready[2];
  char byte = 0;
  assert_int_equal(pipe(ready), 0);
  begin(9999, CS_WIRE_ENGINE_PERF);
  cs_threads_add_native(own_tid());
  burn(5 * MS);
  assert_true(drain().samples > 0);
  pid_t pid = fork();
  if (pid == 0) {
    burn(50 * MS);
    bool quiet = drain().samples == 0;
    (void)!write(ready[1], &byte, 1);
    (void)pause();
    _exit(quiet);
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  cs_threads_stop();
  uint64_t signals = cs_agent.ring.signals;
  (void)signal(SIGURG, on_urg);  // counts any further signal
  handled = 0;
  burn(50 * MS);
  assert_int_equal(handled, 0);
  assert_int_equal(cs_agent.ring.signals, signals);
  (void)signal(SIGURG, SIG_DFL);
  (void)kill(pid, SIGKILL);
  (void)waitpid(pid, &status, 0);
  end();
  (void)close(ready[0]);
  (void)close(ready[1]);
}

// ---- Exec ----

static void *burn_on(void *unused) {
  (void)unused;
  cs_threads_add_native(own_tid());
  for (;;) burn(MS);
  return NULL;
}

static int becomes_another(void) {
  pthread_t thread;
  begin(9999, CS_WIRE_ENGINE_PERF);
  for (int i = 0; i < 3; i++) (void)pthread_create(&thread, NULL, burn_on, NULL);
  cs_threads_add_native(own_tid());
  burn(1 + cs_tsc() % (3 * MS));
  (void)execl("/proc/self/exe", "test_engine_files", "lives", (char *)NULL);
  return 1;
}

static void the_next_program_lives(void **state) {
  (void)state;
  for (int i = 0; i < 100; i++) in_child(becomes_another);
}

// The program after the exec: no old descriptor is open, and no signal comes.
static int live(void) {
  (void)signal(SIGURG, on_urg);
  burn(5 * MS);
  return handled == 0 && count_fds() <= 8 ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "lives") == 0) return live();
  if (!cs_perf_probe(0, true, &err)) {
    printf("skipped: %s\n", err.text);
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(descriptors_are_left_to_the_program),
      cmocka_unit_test(descriptors_that_the_program_has_closed_are_its_own),
      cmocka_unit_test(a_forked_child_keeps_nothing_alive),
      cmocka_unit_test(the_next_program_lives),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
