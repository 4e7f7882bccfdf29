// SPDX-License-Identifier: MIT
// A thread has at most one signal pending, whatever it is asked for and however often. Once it has
// taken the signal it can be asked again, whatever became of the sample.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engines/ask.h"
#include "engines/sigurg.h"
#include "signal/handler.h"
#include "threads/threads.h"

static struct cs_thread entry;
static struct cs_agent_thread thread;

static void block(int how) {
  sigset_t set;
  (void)sigemptyset(&set);
  (void)sigaddset(&set, cs_threads.signal_number);
  (void)sigprocmask(how, &set, NULL);
}

// Consumes the thread's pending signals without running the handler, and returns how many there
// were.
static int take_pending(void) {
  struct timespec none = {0};
  sigset_t set;
  int count = 0;
  (void)sigemptyset(&set);
  (void)sigaddset(&set, cs_threads.signal_number);
  while (sigtimedwait(&set, NULL, &none) > 0) count++;
  return count;
}

static int set_up(void **state) {
  (void)state;
  struct sigaction action = {.sa_sigaction = cs_signal_handler, .sa_flags = SA_SIGINFO};
  cs_threads.signal_number = SIGRTMAX - 1;
  cs_signal.pid = getpid();
  cs_signal.threads_lo = (uint64_t)(uintptr_t)&entry;
  cs_signal.threads_hi = cs_signal.threads_lo + sizeof entry;
  cs_signal.threads_used = 1;
  memset(&entry, 0, sizeof entry);
  memset(&thread, 0, sizeof thread);
  entry.tid = thread.tid = (uint32_t)syscall(SYS_gettid);
  entry.altstack.ready = 1;
  entry.room = CS_ROOM_ENOUGH;
  thread.thread = &entry;
  cs_asks_begin();
  return sigaction(cs_threads.signal_number, &action, NULL);
}

static void test_one_signal(void **state) {
  (void)state;
  block(SIG_BLOCK);
  for (int i = 0; i < 5; i++) {
    (void)cs_ask_sample(&thread, &entry, CS_ASKED_WALL, 0);
    (void)cs_ask_sample(&thread, &entry, CS_ASKED_SCAN, 1000 + (uint64_t)i);
  }
  assert_int_equal(entry.asked, CS_ASKED_WALL | CS_ASKED_SCAN);
  assert_int_equal(entry.asked_weight, 1000);  // the pending signal's
  assert_int_equal(take_pending(), 1);
  // The agent cannot know that the signal was consumed, so it sends no other.
  (void)cs_ask_sample(&thread, &entry, CS_ASKED_WALL, 0);
  assert_int_equal(take_pending(), 0);
  entry.asked = 0;
  block(SIG_UNBLOCK);
}

static void test_taken(void **state) {
  (void)state;
  block(SIG_BLOCK);
  assert_true(cs_ask_sample(&thread, &entry, CS_ASKED_WALL, 0));
  assert_false(cs_ask_sample(&thread, &entry, CS_ASKED_WALL, 0));
  assert_int_equal(entry.asked, CS_ASKED_WALL);
  block(SIG_UNBLOCK);  // the handler runs; it takes no sample, but clears `asked`
  assert_int_equal(entry.asked, 0);
  block(SIG_BLOCK);
  (void)cs_ask_sample(&thread, &entry, CS_ASKED_SCAN, 7);
  assert_int_equal(take_pending(), 1);
  entry.asked = 0;
  block(SIG_UNBLOCK);
}

// A signal meant for the entry's former thread does not clear what its present one is asked for.
static void test_not_its_own(void **state) {
  (void)state;
  block(SIG_BLOCK);
  (void)cs_ask_sample(&thread, &entry, CS_ASKED_WALL, 0);
  entry.tid++;
  block(SIG_UNBLOCK);
  assert_int_equal(entry.asked, CS_ASKED_WALL);
  entry.asked = 0;
}

static void test_without_altstack(void **state) {
  (void)state;
  entry.clr_thread = 1;
  entry.altstack.ready = 0;
  assert_false(cs_ask_sample(&thread, &entry, CS_ASKED_HOLD, 0));
  assert_int_equal(entry.asked, 0);
}

// A signal does not fit on the thread's stack, or it is unknown whether it does.
static void test_no_room(void **state) {
  (void)state;
  entry.room = CS_ROOM_SMALL;
  (void)cs_ask_sample(&thread, &entry, CS_ASKED_SCAN, 0);
  entry.room = CS_ROOM_UNKNOWN;
  (void)cs_ask_sample(&thread, &entry, CS_ASKED_SCAN, 0);
  entry.clr_thread = 1;
  entry.stack = (struct cs_stack){.lo = 4096, .hi = 4096 + CS_LEAST_STACK - 1};
  (void)cs_ask_sample(&thread, &entry, CS_ASKED_WALL, 0);
  assert_int_equal(entry.asked, 0);
}

// ---- By SIGURG ----

static int pending_of(int signo) {
  sigset_t set;
  (void)sigpending(&set);
  return sigismember(&set, signo);
}

// Without room for a siginfo, SIGURG is still delivered, and its thread is found.
static void test_limit(void **state) {
  (void)state;
  struct cs_error why = {""};
  struct rlimit before, none = {0, 0};
  sigset_t set;
  assert_int_equal(getrlimit(RLIMIT_SIGPENDING, &before), 0);
  none.rlim_max = before.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &none), 0);
  (void)cs_ask_sample(&thread, &entry, CS_ASKED_WALL, 0);  // a real-time signal cannot be sent
  assert_int_equal(entry.asked, 0);
  assert_true(cs_sigurg_take(&why));
  (void)sigemptyset(&set);
  (void)sigaddset(&set, SIGURG);
  (void)sigprocmask(SIG_BLOCK, &set, NULL);
  (void)cs_ask_sample(&thread, &entry, CS_ASKED_WALL, 0);
  (void)cs_ask_sample(&thread, &entry, CS_ASKED_SCAN, 0);
  assert_int_equal(pending_of(SIGURG), 1);
  assert_int_equal(entry.asked, CS_ASKED_WALL | CS_ASKED_SCAN);
  (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
  assert_int_equal(entry.asked, 0);
  assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &before), 0);
  cs_sigurg_release();
}

static void theirs(int signo) {
  (void)signo;
}

// A SIGURG from elsewhere is ignored, and a program that uses SIGURG keeps it.
static void test_others(void **state) {
  (void)state;
  struct cs_error why = {""};
  struct sigaction now;
  assert_true(cs_sigurg_take(&why));
  entry.asked = CS_ASKED_WALL;
  (void)kill(getpid(), SIGURG);
  assert_int_equal(entry.asked, CS_ASKED_WALL);
  entry.asked = 0;
  (void)signal(SIGURG, theirs);
  assert_true(cs_sigurg_is_lost());
  cs_sigurg_release();
  assert_false(cs_sigurg_take(&why));
  assert_int_equal(sigaction(SIGURG, NULL, &now), 0);
  assert_true(now.sa_handler == theirs);
  (void)signal(SIGURG, SIG_DFL);
}

// Go adds SA_ONSTACK to every handler that it finds: the first signal after that is the last one.
static void test_moved(void **state) {
  (void)state;
  static uint8_t bytes[1 << 16];
  const stack_t alternate = {.ss_sp = bytes, .ss_size = sizeof bytes},
                none = {.ss_flags = SS_DISABLE};
  struct cs_error why = {""};
  struct sigaction now;
  cs_asks_end();
  assert_true(cs_sigurg_take(&why));
  assert_int_equal(sigaltstack(&alternate, NULL), 0);
  assert_int_equal(raise(SIGURG), 0);
  assert_false(cs_sigurg_is_lost());
  assert_int_equal(sigaction(SIGURG, NULL, &now), 0);
  now.sa_flags |= SA_ONSTACK;
  assert_int_equal(sigaction(SIGURG, &now, NULL), 0);
  assert_int_equal(raise(SIGURG), 0);
  assert_int_equal(sigaction(SIGURG, NULL, &now), 0);
  assert_true(now.sa_handler == SIG_IGN && (now.sa_flags & SA_SIGINFO) == 0);
  assert_true(cs_sigurg_is_lost());
  cs_sigurg_release();
  assert_int_equal(sigaltstack(&none, NULL), 0);
}

// Three quarters of them took less than 64 * 1.024 us, at most.
static void test_ran_on(void **state) {
  char text[CS_RAN_ON_BYTES];
  uint64_t *count = cs_agent.ring.ran_on;
  (void)state;
  memset(count, 0, sizeof cs_agent.ring.ran_on);
  assert_false(cs_ask_ran_on(text, sizeof text));
  assert_string_equal(text, "");
  count[6] = 15;
  assert_false(cs_ask_ran_on(text, sizeof text));  // too few to tell
  count[10] = 5;
  assert_true(cs_ask_ran_on(text, sizeof text));
  assert_non_null(strstr(text, "ran on for 66 us or more until"));
  assert_true(strlen(text) + 1 < sizeof text);
  count[2] = 100;  // soon enough
  assert_false(cs_ask_ran_on(text, sizeof text));
  memset(count, 0, sizeof cs_agent.ring.ran_on);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_one_signal, set_up),
      cmocka_unit_test_setup(test_taken, set_up),
      cmocka_unit_test_setup(test_not_its_own, set_up),
      cmocka_unit_test_setup(test_without_altstack, set_up),
      cmocka_unit_test_setup(test_no_room, set_up),
      cmocka_unit_test_setup(test_limit, set_up),
      cmocka_unit_test_setup(test_others, set_up),
      cmocka_unit_test_setup(test_moved, set_up),
      cmocka_unit_test_setup(test_ran_on, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
