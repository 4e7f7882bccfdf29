// SPDX-License-Identifier: MIT
// What is said of a process that ends while it is attached to: that it has ended, and not the first
// of its files that could not be reached any more. And of a command that may open too few files:
// that this is so, and nothing of the process, which is not the reason.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
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

// Returns whether a byte of another process's memory can be read.
static bool readable(pid_t pid, void *address) {
  char byte;
  struct iovec local = {&byte, 1}, remote = {address, 1};
  return process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1;
}

// Its memory is the first thing that it loses, and much memory takes the kernel a while.
static void a_process_that_has_lost_its_memory_has_ended(void **state) {
  (void)state;
  enum { MUCH = 256 << 20 };
  void *memory = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(memory, MAP_FAILED);
  (void)madvise(memory, MUCH, MADV_NOHUGEPAGE);
  int ready[2];
  char byte;
  assert_int_equal(pipe(ready), 0);
  pid_t pid = fork();
  if (pid == 0) {
    memset(memory, 1, MUCH);
    (void)!write(ready[1], "x", 1);
    for (;;) (void)pause();
  }
  assert_true(pid > 0);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  assert_true(readable(pid, memory));
  assert_false(cs_proc_has_ended(pid));
  assert_int_equal(kill(pid, SIGKILL), 0);
  while (readable(pid, memory)) continue;
  assert_true(cs_proc_has_ended(pid));
  assert_int_equal(waitpid(pid, NULL, 0), pid);
  (void)munmap(memory, MUCH);
  (void)close(ready[0]);
  (void)close(ready[1]);
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

// With each limit up to the least that suffices.
static void too_few_files_are_the_commands(void **state) {
  (void)state;
  char self[512] = "", expected[128];
  struct rlimit before, few;
  rlim_t free_fd = (rlim_t)dup(0), refused = 0;
  struct cs_error err = {""};
  char *folder = NULL;
  assert_int_equal(close((int)free_fd), 0);
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  for (few = before;; refused++) {
    few.rlim_cur = free_fd + refused;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    bool good = cs_hand_over_check(getpid(), self, &folder, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (good) break;
    (void)snprintf(expected, sizeof expected,
                   "this command may open only %u files: raise ulimit -n", (unsigned)few.rlim_cur);
    assert_string_equal(err.text, expected);
  }
  assert_true(refused > 3);
  assert_null(folder);
}

static void says(pid_t pid, const char *format, ...) {
  struct cs_error err = {""};
  char expected[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(expected, sizeof expected, format, args);
  va_end(args);
  assert_false(cs_proc_check(pid, &err));
  assert_string_equal(err.text, expected);
}

static void *tell_number(void *tid) {
  *(_Atomic pid_t *)tid = gettid();
  pause();
  return NULL;
}

// What a number is that is no process's.
static void a_number_is_what_it_is(void **state) {
  (void)state;
  _Atomic pid_t tid = 0;
  pthread_t thread;
  struct cs_error err = {""};
  assert_true(cs_proc_check(getpid(), &err));
  assert_int_equal(pthread_create(&thread, NULL, tell_number, &tid), 0);
  while (tid == 0) sched_yield();
  says(tid, "%d is a thread ('test_hand_over') of process %d: give the process's number", (int)tid,
       (int)getpid());
  pid_t ended = zombie();
  says(ended,
       "process %d has ended: it is a zombie, for which its parent, process %d, has not waited yet",
       (int)ended, (int)getpid());
  assert_int_equal(waitpid(ended, NULL, 0), ended);
  says(0x7fffffff, "there is no process 2147483647");
  says(0, "there is no process 0");
  says(-1, "there is no process -1");
  // In a container there is no thread of the kernel.
  char name[16] = "";
  FILE *in = fopen("/proc/2/comm", "re");
  if (in != NULL && fgets(name, sizeof name, in) != NULL && strcmp(name, "kthreadd\n") == 0)
    says(2, "2 (kthreadd) is a thread of the kernel, not a process");
  if (in != NULL) (void)fclose(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_process_that_ends_has_ended),
      cmocka_unit_test(a_process_that_has_lost_its_memory_has_ended),
      cmocka_unit_test(too_few_files_are_the_commands),
      cmocka_unit_test(a_number_is_what_it_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
