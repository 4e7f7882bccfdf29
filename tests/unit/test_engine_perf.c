// SPDX-License-Identifier: MIT
// The engine perf on threads of this very program, without a runtime: the rate, what samples stand
// for, and everything by which an event, its descriptor or its signal could do the program harm.
// Where the machine has no perf events for this user, it is skipped with what the engine itself
// says.
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

#include "agent/engine.h"
#include "agent/perf_cost.h"
#include "base/clock.h"
#include "base/perf.h"
#include "snapshot/registry.h"
#include "support/fake_clr.h"
#include "wire/consumer.h"
#include "wire/decode.h"

#define MS 1000000ull

static struct fake_clr clr;
static struct cs_consumer consumer;
static struct cs_error err;

static uint64_t own_cpu(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void burn(uint64_t ns) {
  static volatile unsigned sink;
  for (uint64_t until = own_cpu() + ns; own_cpu() < until;)
    for (unsigned i = 0; i < 5000; i++) sink += i;
}

static uint32_t own_tid(void) {
  return (uint32_t)syscall(SYS_gettid);
}

// ---- A recording ----

static void open_recording(uint32_t hz, enum cs_wire_engine_kind engine) {
  struct cs_consumer_opts opts = {.capacity = 65536, .hz = hz, .max_depth = 64};
  assert_true(cs_consumer_create(&consumer, &opts, &err));
  assert_true(cs_producer_open(&cs_agent.wire, consumer.path, &err));
  assert_true(cs_producer_claim(&cs_agent.wire));
  cs_agent.modes = CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU);
  cs_agent.engine = engine;
  cs_agent.hz = hz;
  cs_agent.period_ns = 1000000000u / hz;
  assert_true(cs_sample_ring_open(&cs_agent.ring, CS_SAMPLE_RING_BYTES, 64));
  cs_threads_start();
  cs_store_release(&cs_agent.state, (uint32_t)CS_AGENT_RECORDING);
  cs_store_release(&cs_signal.ring, &cs_agent.ring);
}

static void begin(uint32_t hz, enum cs_wire_engine_kind engine) {
  open_recording(hz, engine);
  if (!cs_engines_begin(&err)) fail_msg("%s", err.text);
}

static void end(void) {
  cs_threads_stop();
  cs_engines_end();
  cs_store_release(&cs_agent.state, (uint32_t)CS_AGENT_PASSIVE);
  cs_store_release(&cs_signal.ring, (struct cs_sample_ring *)NULL);
  assert_true(cs_epoch_wait());
  cs_asks_end();
  cs_threads_free_all();
  cs_sample_ring_close(&cs_agent.ring);
  cs_producer_close(&cs_agent.wire);
  cs_consumer_destroy(&consumer);
}

struct sums {
  uint64_t samples, weight;
};
static struct sums drain(void) {
  struct sums sums = {0, 0};
  const struct cs_sample *s;
  while ((s = cs_sample_ring_peek(&cs_agent.ring)) != NULL) {
    sums.samples++;
    sums.weight += s->weight;
    cs_sample_ring_pop(&cs_agent.ring, s);
  }
  return sums;
}

// What was told last.
static struct cs_wire_engine told(char why[256]) {
  struct cs_wire_engine engine = {0};
  struct cs_text text[CS_ENGINE_TEXTS];
  const struct cs_wire_record *r;
  assert_true(cs_engines_tell());
  while ((r = cs_consumer_next(&consumer)) != NULL) {
    assert_true(cs_decode_engine(r, &engine, text));
    (void)snprintf(why, 256, "%.*s", (int)text[CS_ENGINE_WHY].len, text[CS_ENGINE_WHY].data);
  }
  return engine;
}

static int count_fds(void) {
  int count = 0;
  for (int fd = 0; fd < 20000; fd++)
    if (fcntl(fd, F_GETFD) >= 0) count++;
  return count;
}

// Runs it in a process of its own, because it changes what a process has once.
static void in_child(int (*test)(void)) {
  int status = 0;
  pid_t pid = fork();
  if (pid == 0) {
    cs_signal.pid = getpid();
    _exit(test());
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail_msg("the child ended with %#x", (unsigned)status);
}

// ---- Waits ----

static void waits_are_random_and_a_period_on_average(void **state) {
  (void)state;
  enum { COUNT = 100000, PERIOD = 1000000, BINS = 10 };
  struct cs_perf_event event = {.due_ns = 5000, .random = 1234567};
  unsigned phases[BINS] = {0};
  uint64_t now = event.due_ns, begin_ns = now;
  for (int i = 0; i < COUNT; i++) {
    uint64_t wait = cs_perf_wait(&event, now, PERIOD, 0);
    assert_in_range(wait, PERIOD / 4, PERIOD * 7 / 4);
    now += wait + 7000;  // each is somewhat late
    phases[now % PERIOD * BINS / PERIOD]++;
  }
  double mean = (double)(now - begin_ns) / COUNT;
  assert_true(mean > 0.99 * PERIOD && mean < 1.01 * PERIOD);
  // A program that repeats itself with the same period is seen everywhere.
  for (int i = 0; i < BINS; i++)
    assert_in_range(phases[i], COUNT / BINS * 9 / 10, COUNT / BINS * 11 / 10);
  uint64_t wait =
      cs_perf_wait(&event, now + 50 * PERIOD, PERIOD, 0);  // what was missed is not caught up
  assert_in_range(wait, PERIOD / 2, PERIOD * 3 / 2);
  assert_true(cs_perf_wait(&event, event.due_ns, PERIOD, 9 * PERIOD) == 9 * PERIOD);
}

// ---- The rate and the weights ----

static void check_rate(uint32_t hz, uint64_t ns) {
  char why[256];
  begin(hz, CS_WIRE_ENGINE_PERF);
  uint64_t from = own_cpu();
  cs_threads_add_native(own_tid());
  burn(ns);
  struct sums sums = drain();
  uint64_t used = own_cpu() - from;
  double want = (double)used * hz / 1e9, period = 1e9 / hz;
  if ((double)sums.samples < 0.9 * want || (double)sums.samples > 1.1 * want)
    fail_msg("%lu samples at %u Hz, not %.0f", (unsigned long)sums.samples, hz, want);
  double off = (double)sums.weight - (double)used;
  if (off < -2 * period || off > 2 * period)
    fail_msg("%u Hz: they stand for %.3f ms of %.3f", hz, (double)sums.weight / 1e6,
             (double)used / 1e6);
  cs_threads_stop();
  struct cs_wire_engine engine = told(why);
  assert_int_equal(engine.had, CS_WIRE_ENGINE_PERF);
  assert_true((double)engine.cpu_ns > 0.9 * (double)used &&
              (double)engine.cpu_ns < 1.1 * (double)used);
  end();
}

static void the_rate_is_the_one_that_was_asked_for(void **state) {
  (void)state;
  check_rate(499, 1000 * MS);
  check_rate(1000, 1000 * MS);
  check_rate(9999, 500 * MS);
}

static uint64_t short_used;
static void *live_shortly(void *unused) {
  (void)unused;
  cs_threads_add_native(own_tid());
  uint64_t from = own_cpu();
  burn(400000);
  short_used += own_cpu() - from;
  return NULL;
}

// Threads that live for less than a period, by turns with one that stays.
static void threads_that_come_and_go_have_their_share(void **state) {
  (void)state;
  enum { COUNT = 2500 };
  uint64_t weight = 0;
  begin(1000, CS_WIRE_ENGINE_PERF);
  int before = count_fds();
  for (int i = 0; i < COUNT; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, live_shortly, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    cs_threads_sweep_native();  // it has not been seen
    (void)cs_engines_turn(cs_clock_now_ns());
    weight += drain().weight;
    cs_threads_free_dead();
  }
  cs_threads_sweep_native();
  (void)cs_engines_turn(cs_clock_now_ns());
  assert_int_equal(count_fds(), before);
  double share = (double)weight / (double)short_used;
  if (share < 0.85 || share > 1.15) fail_msg("samples stand for %.3f of their time", share);
  end();
}

// ---- Signals ----

static unsigned long queued(void) {
  char line[128];
  unsigned long count = 0;
  FILE *in = fopen("/proc/self/status", "re");
  while (fgets(line, sizeof line, in) != NULL) (void)sscanf(line, "SigQ: %lu", &count);
  (void)fclose(in);
  return count;
}

static void a_thread_that_blocks_the_signal_has_one_pending_at_most(void **state) {
  (void)state;
  sigset_t urg, before, pending;
  begin(9999, CS_WIRE_ENGINE_PERF);
  (void)sigemptyset(&urg);
  (void)sigaddset(&urg, SIGURG);
  unsigned long queue = queued();
  (void)pthread_sigmask(SIG_BLOCK, &urg, &before);
  cs_threads_add_native(own_tid());
  for (uint64_t i = 0; i < 10; i++) {
    burn(20 * MS);
    (void)cs_engines_turn(cs_clock_now_ns() + i * 1000 * MS);  // each time it looks at all events
  }
  (void)sigpending(&pending);
  assert_int_equal(sigismember(&pending, SIGURG), 1);  // else nothing was tried
  assert_true(queued() < queue + 200);  // of this user; 2,000 expirations could have been queued
  assert_int_equal(drain().samples, 0);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  burn(50 * MS);
  assert_true(drain().samples > 300);  // and it is sampled from then on
  end();
}

static int without_pending_signals(void) {
  struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_SIGPENDING, &none) != 0) return 1;
  begin(9999, CS_WIRE_ENGINE_PERF);
  cs_threads_add_native(own_tid());
  burn(100 * MS);
  return drain().samples > 800 ? 0 : 2;
}

static void no_signal_may_be_queued(void **state) {
  (void)state;
  in_child(without_pending_signals);
}

static void foreign_signals_are_nothing_to_it(void **state) {
  (void)state;
  begin(1, CS_WIRE_ENGINE_PERF);
  cs_threads_add_native(own_tid());
  (void)raise(SIGURG);
  (void)kill(getpid(), SIGURG);
  siginfo_t info;
  memset(&info, 0, sizeof info);
  for (int fd = -1; fd < 5000; fd++) {  // as the kernel would, of every file but those of events
    info.si_signo = SIGURG;
    info.si_code = POLL_IN;
    info.si_fd = fd == 4096 ? -5 : fd;
    (void)syscall(SYS_rt_tgsigqueueinfo, getpid(), own_tid(), SIGURG, &info);
    if (fd == 4090) fd = 4300;
  }
  assert_int_equal(cs_agent.ring.signals, 0);
  end();
}

static int handled;
static void on_urg(int number) {
  (void)number;
  handled++;
}

static int uses_urg(void) {
  char why[256] = "";
  (void)signal(SIGURG, on_urg);
  open_recording(999, CS_WIRE_ENGINE_PERF);
  if (cs_engines_begin(&err) || strstr(err.text, "SIGURG") == NULL) return 1;
  begin(999, CS_WIRE_ENGINE_AUTO);
  struct cs_wire_engine engine = told(why);
  if (engine.had == CS_WIRE_ENGINE_PERF || strstr(why, "SIGURG") == NULL) return 2;
  (void)raise(SIGURG);
  return handled == 1 ? 0 : 3;
}

static int begins_to_use_urg(void) {
  char why[256] = "";
  begin(999, CS_WIRE_ENGINE_AUTO);
  cs_threads_add_native(own_tid());
  (void)signal(SIGURG, on_urg);
  (void)cs_engines_turn(cs_clock_now_ns());
  struct cs_wire_engine engine = told(why);
  if (engine.had == CS_WIRE_ENGINE_PERF || strstr(why, "SIGURG") == NULL) return 1;
  handled = 0;
  burn(300 * MS);
  if (handled != 0) return 2;
  end();
  struct sigaction now;
  (void)sigaction(SIGURG, NULL, &now);
  return now.sa_handler == on_urg ? 0 : 3;
}

static void a_program_that_uses_the_signal_keeps_it(void **state) {
  (void)state;
  in_child(uses_urg);
  in_child(begins_to_use_urg);
  struct sigaction now;
  (void)sigaction(SIGURG, NULL, &now);  // and one that does not has it as it was
  assert_ptr_equal(now.sa_handler, SIG_DFL);
}

// ---- Descriptors ----

static int few_descriptors(void) {
  char why[256] = "";
  int used = count_fds();
  struct rlimit few = {(rlim_t)used + 1, (rlim_t)used + 1};
  open_recording(999, CS_WIRE_ENGINE_PERF);
  few.rlim_cur = few.rlim_max = (rlim_t)count_fds() + 1;
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
  if (cs_engines_begin(&err) || strstr(err.text, "ulimit -n") == NULL) return 2;
  cs_agent.engine = CS_WIRE_ENGINE_AUTO;
  if (!cs_engines_begin(&err)) return 3;
  struct cs_wire_engine engine = told(why);
  if (engine.had == CS_WIRE_ENGINE_PERF || strstr(why, "ulimit -n") == NULL) return 4;
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

// The program needs descriptors itself, after events have taken theirs.
static int fewer_descriptors(void) {
  enum { THREADS = 20 };
  char why[256] = "";
  pthread_t threads[THREADS];
  begin(999, CS_WIRE_ENGINE_AUTO);
  int used = count_fds();
  struct rlimit some = {(rlim_t)used + 100, (rlim_t)used + 100};
  if (setrlimit(RLIMIT_NOFILE, &some) != 0) return 1;
  (void)cs_engines_turn(cs_clock_now_ns());
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, wait_about, NULL) != 0) return 2;
  for (int i = 0; i < 200 && count_fds() < used + THREADS; i++) (void)usleep(5000);
  if (count_fds() != used + THREADS) return 3;
  for (int i = 0; i < 60; i++)
    if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) return 4;
  (void)cs_engines_turn(cs_clock_now_ns() + 2000 * MS);
  (void)cs_engines_turn(cs_clock_now_ns() + 2010 * MS);
  if (count_fds() != used + 60) return 5;  // events have given theirs back
  struct cs_wire_engine engine = told(why);
  if (engine.had == CS_WIRE_ENGINE_PERF || strstr(why, "ulimit -n") == NULL) return 6;
  return 0;
}

static void descriptors_are_left_to_the_program(void **state) {
  (void)state;
  in_child(few_descriptors);
  in_child(fewer_descriptors);
}

// It closes all that it does not know, and uses the numbers for files of its own.
static int closes_all(void) {
  begin(999, CS_WIRE_ENGINE_PERF);
  cs_threads_add_native(own_tid());
  int first = 3;
  while (first < 20000 && (fcntl(first, F_GETFD) < 0 || first < 512)) first++;
  if (first >= 20000) return 1;  // there is no event up there
  for (int fd = 512; fd < 20000; fd++) (void)close(fd);
  int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dup2(file, first) != first) return 2;
  (void)drain();
  burn(100 * MS);
  if (drain().samples > 1) return 3;  // its event has gone
  (void)cs_engines_turn(cs_clock_now_ns() + 1000 * MS);
  burn(100 * MS);
  if (drain().samples < 50) return 4;  // it has got another one
  cs_threads_stop();
  cs_engines_end();
  return fcntl(first, F_GETFD) >= 0 ? 0 : 5;
}

static void descriptors_that_the_program_has_closed_are_its_own(void **state) {
  (void)state;
  in_child(closes_all);
}

// A child that has been forked holds the events' files.
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
  (void)signal(SIGURG, on_urg);  // whatever comes now
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
  (void)execl("/proc/self/exe", "test_engine_perf", "lives", (char *)NULL);
  return 1;
}

static void the_next_program_lives(void **state) {
  (void)state;
  for (int i = 0; i < 100; i++) in_child(becomes_another);
}

// That program: nothing of before is open, and nothing comes.
static int live(void) {
  (void)signal(SIGURG, on_urg);
  burn(5 * MS);
  return handled == 0 && count_fds() <= 8 ? 0 : 1;
}

static int setup(void **state) {
  (void)state;
  fake_clr_init(&clr);
  cs_signal.world = &clr.world;
  cs_signal.pid = getpid();
  cs_clock_init();
  return cs_registry_init(&err) ? 0 : -1;
}

// A server's threads switch ten thousands of times a second, a computation's hardly ever.
static void what_its_events_cost_is_judged_by_the_programs_switches(void **state) {
  (void)state;
  const struct cs_perf_use begin = {1000, 5000000000}, server = {51000, 6000000000},
                           computation = {1400, 6000000000}, start = {51000, 5010000000};
  struct cs_error why = {""};
  assert_true(cs_perf_costs_too_much(1000, begin, server, &why));  // 1 us, 50,000 times a second
  assert_non_null(strstr(why.text, "some 5 % of its CPU time, 1.0 us"));
  assert_false(cs_perf_costs_too_much(300, begin, server, &why));
  assert_false(cs_perf_costs_too_much(10000, begin, computation, &why));
  assert_false(cs_perf_costs_too_much(1000, begin, start, &why));  // too little to judge by
  assert_false(cs_perf_costs_too_much(1000, begin, begin, &why));
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "lives") == 0) return live();
  if (!cs_perf_probe(true, &err)) {
    printf("skipped: %s\n", err.text);
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_its_events_cost_is_judged_by_the_programs_switches),
      cmocka_unit_test(waits_are_random_and_a_period_on_average),
      cmocka_unit_test(the_rate_is_the_one_that_was_asked_for),
      cmocka_unit_test(threads_that_come_and_go_have_their_share),
      cmocka_unit_test(a_thread_that_blocks_the_signal_has_one_pending_at_most),
      cmocka_unit_test(no_signal_may_be_queued),
      cmocka_unit_test(foreign_signals_are_nothing_to_it),
      cmocka_unit_test(a_program_that_uses_the_signal_keeps_it),
      cmocka_unit_test(descriptors_are_left_to_the_program),
      cmocka_unit_test(descriptors_that_the_program_has_closed_are_its_own),
      cmocka_unit_test(a_forked_child_keeps_nothing_alive),
      cmocka_unit_test(the_next_program_lives),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
