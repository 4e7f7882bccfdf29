// SPDX-License-Identifier: MIT
// A filter cannot be read without privileges, and a call that it kills for cannot be tried in the
// process itself, so a child process tries it. The child makes system calls only, runs no handler
// of the program's, dumps no core, and its end sends no signal. It shares the memory of the
// process, because a copy of a large one takes 10 ms and more, in which the process cannot map
// memory. It is a copy nevertheless on kernels before 5.16, where a core dump would end all
// processes that share the memory, and where the limit of core files is 0 for good, which a program
// that takes cores from a pipe is not told. A filter that the program installs later is not known.
// One thread. Signal-safe: no.
#include "life/seccomp.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/rights.h"

enum { PATIENCE_MS = 2000, NAP_US = 200, STACK_BYTES = 65536 };

static uint32_t killers;  // a bit for each call; atomic

static const char *const names[CS_PROBED_CALLS] = {"process_vm_readv", "rt_tgsigqueueinfo",
                                                   "sched_setattr", "perf_event_open"};

struct trial {
  bool shares;  // the memory of the process
  unsigned first;
  uint32_t *at;  // the call that is tried, from `first` on
};

static long run(long number, long a, long b, long c, long d, long e) {
  return cs_syscall6(number, a, b, c, d, e, 0);  // without errno, which the parent's thread has
}

// None has an effect. In the child.
static void call(unsigned which) {
  long pid = run(SYS_getpid, 0, 0, 0, 0, 0);
  siginfo_t nothing = {.si_signo = 0, .si_code = SI_QUEUE};
  char byte = 0, copy = 0;
  struct iovec from = {&byte, 1}, to = {&copy, 1};
  if (which == CS_CALL_READ) (void)run(SYS_process_vm_readv, pid, (long)&to, 1, (long)&from, 1);
  if (which == CS_CALL_SIGNAL) (void)run(SYS_rt_tgsigqueueinfo, pid, pid, 0, (long)&nothing, 0);
  if (which == CS_CALL_SETATTR) (void)run(SYS_sched_setattr, 0, 0, 0, 0, 0);
  if (which == CS_CALL_PERF) (void)run(SYS_perf_event_open, 0, 0, -1, -1, 0);
}

// With a limit of one byte no core is dumped, neither into a file nor into a pipe.
static int run_child(void *data) {
  const struct trial *t = data;
  struct rlimit limit = {.rlim_cur = 1, .rlim_max = 1};
  if (t->shares)
    (void)run(SYS_prlimit64, 0, RLIMIT_CORE, (long)&limit, 0, 0);
  else
    (void)run(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  for (unsigned i = t->first; i < CS_PROBED_CALLS; i++) {
    cs_store_release(t->at, i);
    call(i);
  }
  cs_store_release(t->at, (uint32_t)CS_PROBED_CALLS);
  (void)run(SYS_exit_group, 0, 0, 0, 0, 0);
  __builtin_trap();
}

static bool may_share(void) {
  struct utsname name;
  unsigned major = 0, minor = 0;
  struct rlimit limit;
  return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
         (major > 5 || (major == 5 && minor >= 16)) && getrlimit(RLIMIT_CORE, &limit) == 0 &&
         limit.rlim_max >= 1;
}

// A filter may hand a call to another process, which does not answer.
static void await(pid_t child) {
  int status;
  for (int waited_us = 0; waited_us < PATIENCE_MS * 1000; waited_us += NAP_US) {
    pid_t got = waitpid(child, &status, WNOHANG | __WALL);
    if (got == child || (got < 0 && errno != EINTR)) return;
    (void)usleep(NAP_US);
  }
  (void)kill(child, SIGKILL);
  while (waitpid(child, &status, __WALL) < 0 && errno == EINTR) {
  }
}

// A copy may run a handler of SIGSYS, by which the program may have calls emulated.
static long make_child(struct trial *t, char *stack) {
  sigset_t most, old;
  (void)sigfillset(&most);
  if (!t->shares) (void)sigdelset(&most, SIGSYS);
  (void)pthread_sigmask(SIG_BLOCK, &most, &old);
  long child = t->shares ? clone(run_child, stack + STACK_BYTES, CLONE_VM, t)
                         : syscall(SYS_clone, 0ul, NULL, NULL, NULL, NULL);
  if (child == 0) (void)run_child(t);
  int error = errno;
  (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
  errno = error;
  return child;
}

static bool probe(struct trial *t, char *stack, struct cs_error *err) {
  uint32_t found = 0;
  for (t->first = 0; t->first < CS_PROBED_CALLS; t->first++) {
    cs_store_release(t->at, t->first);
    long child = make_child(t, stack);
    if (child < 0)
      return cs_error_set(err,
                          "the program has a seccomp filter, which may kill it for a system call; "
                          "whether it does cannot be tried, because no process can be made: %m");
    await((pid_t)child);
    t->first = cs_load_acquire(t->at);
    if (t->first < CS_PROBED_CALLS) found |= 1u << t->first;
  }
  cs_store_release(&killers, found);
  for (unsigned i = CS_CALL_READ; i <= CS_CALL_SIGNAL; i++)
    if ((found >> i & 1) != 0)
      return cs_error_set(err,
                          "the program's seccomp filter would kill it for the system call %s, "
                          "which clrsnap needs: allow that call",
                          names[i]);
  return true;
}

bool cs_seccomp_probe(struct cs_error *err) {
  cs_store_release(&killers, 0u);
  if (cs_number_in("/proc/self/status", "Seccomp:") <= 0) return true;
  char *memory = mmap(NULL, STACK_BYTES + sizeof(uint32_t), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return cs_error_set(err, "no memory to test the seccomp filter: %m");
  struct trial t = {.shares = may_share(), .at = (uint32_t *)(memory + STACK_BYTES)};
  bool good = probe(&t, memory, err);
  (void)munmap(memory, STACK_BYTES + sizeof(uint32_t));
  return good;
}

bool cs_seccomp_survives(enum cs_probed_call call) {
  return (cs_load_acquire(&killers) >> call & 1) == 0;
}
