// SPDX-License-Identifier: MIT
// See target.h. Threads: the functions are for the test's own thread. Signal-safe: no; signals
// interrupt the targets' loop at any instruction.
//
// Invariant: a target's memory is not reused before its thread has been joined.
#include "support/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct target targets[4];
static unsigned used;

// A section of its own, whose bounds the linker provides: the length of a function depends on what
// a sanitizer adds to it.
#define TARGET_CODE __attribute__((noinline, section("target_code")))
extern const char __start_target_code[], __stop_target_code[];

TARGET_CODE static void beat(struct target *target) {
  volatile uint64_t sink = 0;
  while (!atomic_load(&target->quit)) {
    atomic_fetch_add(&target->beats, 1);
    errno = 77;
    for (int i = 0; i < 100; i++) sink += (uint64_t)i;
    if (errno != 77) atomic_store(&target->errno_changed, true);
    if (atomic_exchange(&target->unblock, false)) {
      sigset_t none;
      (void)sigemptyset(&none);
      (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
    }
  }
}

TARGET_CODE static void *run_target(void *arg) {
  struct target *target = arg;
  uint32_t tid = (uint32_t)syscall(SYS_gettid);
  if (target->opts.block_signal) {
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
  }
  (void)sigaltstack(NULL, &target->alternate_before);
  if (!target->opts.attached) clrsnap_thread_assigned(target_id(target), tid);
  (void)sigaltstack(NULL, &target->alternate_inside);
  atomic_store(&target->tid, tid);
  beat(target);
  if (!target->opts.silent_end) clrsnap_thread_destroyed(target_id(target));
  (void)sigaltstack(NULL, &target->alternate_after);
  return NULL;
}

ThreadID target_id(struct target *target) {
  return (ThreadID)target->fake_thread;
}

bool target_owns_ip(UINT_PTR ip) {
  return ip >= (UINT_PTR)__start_target_code && ip < (UINT_PTR)__stop_target_code;
}

void target_wait_for_beats(struct target *target, uint64_t beats) {
  while (atomic_load(&target->beats) < beats) (void)usleep(100);
}

struct target *target_start(struct target_opts opts) {
  if (used == sizeof targets / sizeof *targets) {
    fprintf(stderr, "a test has more targets than there is room for\n");
    abort();
  }
  struct target *target = &targets[used++];
  memset(target, 0, sizeof *target);
  target->opts = opts;
  int error = pthread_create(&target->pthread, NULL, run_target, target);
  if (error != 0) {
    fprintf(stderr, "a target's thread could not be made: %s\n", strerror(error));
    abort();
  }
  target->running = true;
  while (atomic_load(&target->tid) == 0) (void)usleep(100);
  target_wait_for_beats(target, 1);
  return target;
}

void target_end(struct target *target) {
  atomic_store(&target->quit, true);
  (void)pthread_join(target->pthread, NULL);
  target->running = false;
}

void targets_end(void) {
  for (unsigned i = 0; i < used; i++)
    if (targets[i].running) target_end(&targets[i]);
  used = 0;
}
