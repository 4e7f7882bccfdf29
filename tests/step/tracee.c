// SPDX-License-Identifier: MIT
// Starts the program and drives one thread of it by ptrace; all its other threads run freely.
// Invariant: between two calls the thread is stopped, and a signal that was reported has not been
// delivered. One thread.
#include "tracee.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "step.h"
#include "tools/handlers_walk.h"

enum { START_TIMEOUT_MS = 60000 };

static pid_t start_program(char *const argv[], int fd) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  char text[16];
  (void)snprintf(text, sizeof text, "%d", fd);
  (void)setenv(STEP_FD_ENV, text, 1);
  handlers_walk_leave_room();
  (void)execvp(argv[0], argv);
  (void)fprintf(stderr, "step: cannot start %s: %s\n", argv[0], strerrorname_np(errno));
  _exit(127);
}

bool tracee_start(struct tracee *tracee, char *const argv[], struct cs_error *err) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    return cs_error_set(err, "no socket pair: %s", strerrorname_np(errno));
  tracee->pid = start_program(argv, ends[1]);
  (void)close(ends[1]);
  if (tracee->pid < 0) return cs_error_set(err, "cannot fork: %s", strerrorname_np(errno));
  struct pollfd wait = {.fd = ends[0], .events = POLLIN};
  int tid = 0;
  bool ok = poll(&wait, 1, START_TIMEOUT_MS) == 1 &&
            read(ends[0], &tid, sizeof tid) == (ssize_t)sizeof tid;
  if (!ok) {
    (void)cs_error_set(err, "the program has not announced its thread");
  } else if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_EXITKILL) != 0) {
    ok = cs_error_set(err, "thread %d cannot be traced: %s", tid, strerrorname_np(errno));
  } else {
    ok = write(ends[0], "g", 1) == 1 || cs_error_set(err, "the program has ended");
  }
  (void)close(ends[0]);
  tracee->tid = tid;
  if (!ok) (void)kill(tracee->pid, SIGKILL);
  return ok;
}

// A mark and a step's end are both SIGTRAP.
enum tracee_event tracee_wait_stop(const struct tracee *tracee, int *signal) {
  int status;
  *signal = 0;
  while (waitpid(tracee->tid, &status, __WALL) != tracee->tid)
    if (errno != EINTR) return TRACEE_ENDED;
  if (!WIFSTOPPED(status)) return TRACEE_ENDED;
  if (WSTOPSIG(status) == SIGTRAP) return TRACEE_STEPPED;
  *signal = WSTOPSIG(status);
  return TRACEE_SIGNAL;
}

// A trap arrives although no thread is being stepped.
static bool is_stray_trap(const struct tracee *tracee) {
  siginfo_t info;
  if (ptrace(PTRACE_GETSIGINFO, tracee->tid, NULL, &info) != 0 || info.si_code != TRAP_TRACE)
    return false;
  tracee_clear_trap_flag(tracee);
  return true;
}

enum tracee_event tracee_run(const struct tracee *tracee) {
  int signal = 0;
  for (;;) {
    if (ptrace(PTRACE_CONT, tracee->tid, NULL, (void *)(ptrdiff_t)signal) != 0) return TRACEE_ENDED;
    enum tracee_event event = tracee_wait_stop(tracee, &signal);
    if (event == TRACEE_SIGNAL || (event == TRACEE_STEPPED && is_stray_trap(tracee))) continue;
    return event;
  }
}

// PTRACE_SEIZE does not stop the thread: it is running already when it is run for the first time.
static enum tracee_event run_first(const struct tracee *tracee) {
  int signal;
  enum tracee_event event = tracee_wait_stop(tracee, &signal);
  return event == TRACEE_SIGNAL ? tracee_run(tracee) : event;
}

enum tracee_event tracee_run_to_mark(struct tracee *tracee) {
  enum tracee_event event = tracee->mark == 0 ? run_first(tracee) : tracee_run(tracee);
  if (event == TRACEE_STEPPED) tracee_note_mark(tracee);
  return event;
}

enum tracee_event tracee_step(const struct tracee *tracee, int *signal) {
  if (ptrace(PTRACE_SINGLESTEP, tracee->tid, NULL, (void *)(ptrdiff_t)*signal) != 0)
    return TRACEE_ENDED;
  return tracee_wait_stop(tracee, signal);
}

int tracee_wait(const struct tracee *tracee) {
  int status;
  while (waitpid(tracee->pid, &status, __WALL) != tracee->pid)
    if (errno != EINTR) return 255;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
