// SPDX-License-Identifier: MIT
// Walks of sleeping native threads, over a copy of their stacks, without a runtime. The results
// must be the same whatever the kernel's count of runs is. Few descriptors are allowed here, so
// that most threads find no room in the table of open files.
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "life/start.h"
#include "snapshot/sleeping.h"
#include "threads/ask.h"
#include "threads/asleep.h"
#include "threads/registry.h"

enum { ALLOWED_FILES = 64, MANY = 12, DEEP = 60, FRAME_BYTES = 4096 };

struct target {
  pthread_t thread;
  struct cs_thread *entry;
  int pipe[2];  // it waits until this is closed
  int depth;
  bool spins;
  uint32_t ready, stop;
};
static struct cs_asleep asleep;

static int start(void **state) {
  struct cs_error err = {""};
  struct rlimit limit;
  (void)state;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = ALLOWED_FILES;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  assert_int_equal(cs_library_start_native(NULL, &err), S_OK);
  return 0;
}
static int stop(void **state) {
  (void)state;
  cs_library_stop(NULL);
  return 0;
}

// Each function has a KiB of its own, so that an address identifies its function.
#define APART __attribute__((noinline, aligned(1024)))
APART static int wait_deep(const struct target *t, int depth) {
  volatile char room[FRAME_BYTES];
  room[0] = (char)depth;
  struct pollfd never = {.fd = t->pipe[0], .events = POLLIN};
  int got = depth > 0 ? wait_deep(t, depth - 1) : poll(&never, 1, -1);
  return got + (room[0] != (char)depth);
}

APART static void *body(void *data) {
  struct target *t = data;
  t->entry = cs_registry_assigned(0, (uint32_t)syscall(SYS_gettid));
  cs_store_release(&t->ready, 1);
  while (t->spins && cs_load_acquire(&t->stop) == 0) cs_cpu_pause();
  // A byte wakes it, and it waits again.
  for (char byte; !t->spins && wait_deep(t, t->depth) > 0 && read(t->pipe[0], &byte, 1) == 1;) {
  }
  cs_registry_destroyed_entry(t->entry);
  return NULL;
}

static char state_of(uint32_t tid) {
  char path[64], text[512];
  (void)snprintf(path, sizeof path, "/proc/self/task/%u/stat", tid);
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  size_t got = fread(text, 1, sizeof text - 1, file);
  (void)fclose(file);
  text[got] = '\0';
  return strrchr(text, ')')[2];
}

static void begin(struct target *t) {
  assert_int_equal(pipe(t->pipe), 0);
  assert_int_equal(pthread_create(&t->thread, NULL, body, t), 0);
  while (cs_load_acquire(&t->ready) == 0) (void)usleep(100);
  assert_non_null(t->entry);
  while (!t->spins && state_of(cs_load_acquire(&t->entry->tid)) != 'S') (void)usleep(100);
}
static void finish(struct target *t) {
  cs_store_release(&t->stop, 1);
  (void)close(t->pipe[1]);
  (void)pthread_join(t->thread, NULL);
  (void)close(t->pipe[0]);
}

struct seen {
  enum cs_asleep_answer answer;
  enum cs_stop stop;
  uint32_t frames, in_wait_deep;
  bool valid;
};

static struct seen look(struct cs_thread *thread) {
  struct seen seen = {.stop = CS_STOP_NONE};
  struct cs_walk walk;
  struct cs_frame frame;
  assert_true(cs_thread_pin(thread, 0));
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  seen.answer = cs_asleep_begin(&asleep, thread, 0);
  if (seen.answer == CS_ASLEEP_YES) {
    cs_walk_begin(&walk, &asleep.world, &asleep.regs, &asleep.stack, 0, 0);
    walk.fast = true;
    for (; cs_walk_next(&walk, &frame); seen.frames++) {
      uint64_t into = frame.regs.r[CS_IP] - (uint64_t)(uintptr_t)wait_deep;
      seen.in_wait_deep += into < 1024;
    }
    seen.stop = walk.stop;
    seen.valid = cs_asleep_end(&asleep);
  }
  cs_epoch_leave(&cs_signal.epoch, parity);
  cs_thread_unpin(thread);
  return seen;
}

static void sees_sleeper(struct cs_thread *thread, int depth) {
  struct seen seen = look(thread);
  assert_int_equal(seen.answer, CS_ASLEEP_YES);
  assert_true(seen.valid);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // both use rbp frames
  assert_int_equal(seen.stop, CS_STOP_BASE);
  assert_int_equal(seen.in_wait_deep, depth + 1);
#else
  (void)depth;
#endif
}

// The stack has 240 KiB, several times what is copied at once.
static void a_sleeper_is_walked_to_its_base(void **state) {
  (void)state;
  if (cs_sleeper_counts_by() == CS_RUNS_NONE) skip();
  struct target shallow = {.depth = 0}, deep = {.depth = DEEP};
  begin(&shallow);
  begin(&deep);
  for (int i = 0; i < 3; i++) {  // from the second time on it is known to have stayed asleep
    sees_sleeper(shallow.entry, 0);
    sees_sleeper(deep.entry, DEEP);
  }
  finish(&shallow);
  finish(&deep);
}

static void context_switches_do_where_runs_are_not_counted(void **state) {
  (void)state;
  if (cs_sleeper_counts_by() == CS_RUNS_NONE) skip();
  enum cs_run_count before = cs_sleeper_count_by(CS_RUNS_SWITCHES);
  a_sleeper_is_walked_to_its_base(state);
  (void)cs_sleeper_count_by(before);
}

static void without_a_count_nobody_is_walked_asleep(void **state) {
  (void)state;
  struct target t = {.depth = 0};
  enum cs_run_count before = cs_sleeper_count_by(CS_RUNS_NONE);
  begin(&t);
  assert_int_equal(look(t.entry).answer, CS_ASLEEP_NO);
  finish(&t);
  (void)cs_sleeper_count_by(before);
}

static void a_runner_is_not_walked(void **state) {
  (void)state;
  if (cs_sleeper_counts_by() == CS_RUNS_NONE) skip();
  struct target t = {.spins = true};
  begin(&t);
  assert_int_equal(look(t.entry).answer, CS_ASLEEP_RUNNING);
  cs_asleep_give_up(t.entry);
  assert_int_equal(look(t.entry).answer, CS_ASLEEP_RESTLESS);
  finish(&t);
}

static unsigned open_files(void) {
  unsigned count = 0;
  for (int fd = 0; fd < ALLOWED_FILES; fd++) count += syscall(SYS_fcntl, fd, 1 /* F_GETFD */) >= 0;
  return count;
}

// Four threads have room in the table (an eighth of 64 files, two each); the files of the others
// are closed again.
static void files_are_few_and_given_back(void **state) {
  static struct target many[MANY];
  (void)state;
  if (cs_sleeper_counts_by() == CS_RUNS_NONE) skip();
  unsigned before = open_files();
  memset(many, 0, sizeof many);
  for (int i = 0; i < MANY; i++) begin(&many[i]);
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < MANY; i++) sees_sleeper(many[i].entry, 0);
  unsigned pipes = 2 * MANY;
  assert_int_equal(open_files(), before + pipes + ALLOWED_FILES / 8);
  for (int i = 0; i < MANY; i++) finish(&many[i]);
  assert_int_equal(open_files(), before);
}

// Puts a file of the program in the place of each open file of /proc. Returns how many there were.
static unsigned take_files(bool *taken) {
  char path[32], target[64];
  unsigned count = 0;
  for (int fd = 3; fd < ALLOWED_FILES; fd++) {
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(path, target, sizeof target);
    if (got < 6 || memcmp(target, "/proc/", 6) != 0) continue;
    int mine = memfd_create("program", 0);
    assert_true(mine >= 0 && dup2(mine, fd) == fd && close(mine) == 0);
    taken[fd] = true;
    count++;
  }
  return count;
}

static void the_call_that_asks_says_how(void **state) {
  struct cs_error err = {""};
  struct target t = {.depth = 2};
  (void)state;
  if (cs_sleeper_counts_by() == CS_RUNS_NONE) skip();
  begin(&t);
  struct cs_request *request = cs_request_claim(&err);
  assert_non_null(request);
  assert_true(cs_thread_pin(t.entry, 0));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  assert_true(cs_asleep_walk(request, t.entry, 0));
  assert_int_equal(request->capture.stop, CS_STOP_BASE);
  assert_true(request->capture.count >= 5);
#endif
  cs_library.opts.flags = CLRSNAP_ALWAYS_SIGNAL;
  assert_false(cs_asleep_walk(request, t.entry, 0));
  cs_library.opts.flags = 0;
  cs_thread_unpin(t.entry);
  (void)cs_request_release(request);
  finish(&t);
}

static bool recalls(struct cs_request *request, const struct target *t, uint64_t *runs) {
  *runs = 0;
  return cs_asleep_recall(request, t->entry, CS_REQUEST_ROUND, runs);
}

static void wake(const struct target *t) {
  int left = 1;
  assert_int_equal(write(t->pipe[1], "", 1), 1);
  while (left > 0 || state_of(cs_load_acquire(&t->entry->tid)) != 'S') {
    (void)usleep(100);
    assert_int_equal(ioctl(t->pipe[0], FIONREAD, &left), 0);
  }
}

// The thread is looked at as before, by files that are opened anew, and is sent no signal.
static void files_of_the_program_are_left_alone(void **state) {
  struct target t = {.depth = 2};
  bool taken[ALLOWED_FILES] = {false};
  (void)state;
  if (cs_sleeper_counts_by() == CS_RUNS_NONE) skip();
  unsigned before = open_files(), own = 0;
  begin(&t);
  sees_sleeper(t.entry, 2);
  for (int round = 0; round < 3; round++) {
    assert_int_equal(take_files(taken), 2);
    own += 2;
    wake(&t);
    sees_sleeper(t.entry, 2);
  }
  assert_int_equal(take_files(taken), 2);
  own += 2;
  finish(&t);
  assert_int_equal(open_files(), before + own);
  for (int fd = 0; fd < ALLOWED_FILES; fd++)
    if (taken[fd]) assert_int_equal(close(fd), 0);
}

// In a round, the CPU clock of a thread says whether it has slept since its walk was kept; at
// first, and then now and again, its run count does.
static void what_was_kept_is_of_a_thread_that_has_slept_since(void **state) {
  struct cs_error err = {""};
  struct target t = {.depth = 2};
  uint64_t runs;
  (void)state;
  if (cs_sleeper_counts_by() != CS_RUNS_SCHEDSTAT) skip();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip();
#endif
  begin(&t);
  struct cs_request *request = cs_request_claim(&err);
  assert_non_null(request);
  assert_true(cs_thread_pin(t.entry, 0));
  for (int round = 0; round < 3; round++) {
    request->capture.kept = false;
    assert_true(cs_asleep_walk(request, t.entry, 0));
    request->capture.asleep = true;
    cs_asleep_keep(request, t.entry);
    assert_true(recalls(request, &t, &runs));
    assert_int_not_equal(runs, 0);
    int by_clock = 0;
    for (int i = 0; i < 20; i++) {
      assert_true(recalls(request, &t, &runs));
      by_clock += runs == 0;
    }
    assert_true(by_clock > 0);
    // Where the host takes processors away, a thread may run without CPU time; not again and again.
    int woken = 0;
    do wake(&t);
    while (recalls(request, &t, &runs) && ++woken < 1000);
    assert_true(woken < 1000 && runs != 0);
  }
  cs_thread_unpin(t.entry);
  (void)cs_request_release(request);
  finish(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sleeper_is_walked_to_its_base),
      cmocka_unit_test(context_switches_do_where_runs_are_not_counted),
      cmocka_unit_test(without_a_count_nobody_is_walked_asleep),
      cmocka_unit_test(a_runner_is_not_walked),
      cmocka_unit_test(files_are_few_and_given_back),
      cmocka_unit_test(files_of_the_program_are_left_alone),
      cmocka_unit_test(the_call_that_asks_says_how),
      cmocka_unit_test(what_was_kept_is_of_a_thread_that_has_slept_since),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
