// SPDX-License-Identifier: MIT
// Stops all threads of a process with ptrace, and lets them go. Invariant: a thread is in the list
// exactly while it is stopped by us, with the signal that it has yet to get; nothing else of it is
// changed. The kernel lets all of them go by itself if this process dies. One thread of the
// caller's, always the same. Signal-safe: no.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "remote/private.h"

// A thread that the kernel does not let out of a system call for so long is said to be stuck.
static const uint64_t stop_timeout_ns = 2000000000;

static bool is_stopped(const struct cs_stopped *stopped, int tid) {
  for (unsigned i = 0; i < stopped->count; i++)
    if (stopped->tid[i] == tid) return true;
  return false;
}

static bool remember(struct cs_stopped *stopped, int tid, int signal) {
  if (stopped->count == stopped->capacity) {
    unsigned capacity = stopped->capacity != 0 ? stopped->capacity * 2 : 64;
    int *tids = realloc(stopped->tid, capacity * sizeof *tids);
    if (tids != NULL) stopped->tid = tids;
    int *signals = realloc(stopped->signal, capacity * sizeof *signals);
    if (signals != NULL) stopped->signal = signals;
    if (tids == NULL || signals == NULL) return false;
    stopped->capacity = capacity;
  }
  stopped->tid[stopped->count] = tid;
  stopped->signal[stopped->count++] = signal;
  return true;
}

// Waits until the thread has stopped: 1, has ended: 0, or does neither: -1.
static int wait_for(int tid, uint64_t deadline, int *signal) {
  const struct timespec nap = {.tv_nsec = 50000};
  for (;;) {
    int status;
    pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
    if (got < 0 && errno != EINTR) return 0;
    if (got == tid) {
      if (!WIFSTOPPED(status)) return 0;
      // Either the stop that was asked for, or a signal came first; it is delivered at the end.
      *signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
      return 1;
    }
    if (cs_clock_now_ns() > deadline) return -1;
    (void)nanosleep(&nap, NULL);
  }
}

// A thread that has ended but is still listed. The kernel refuses it as if it were not permitted.
static bool has_ended(int pid, int tid) {
  char path[64], line[512];
  (void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return true;
  const char *name_end = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
  (void)fclose(file);
  return name_end == NULL || strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0;
}

// Is it a thread that we have told to stop before, and did not wait long enough for?
static bool is_late(int tid) {
  siginfo_t info;
  return waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0;
}

// Tells the thread to stop, and does not wait for it: on a busy machine it must first get a
// processor to stop on, and so all of them wait at once. *told: it will stop.
static bool tell(struct cs_remote *remote, int tid, bool *told, struct cs_error *err) {
  int error = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 ? 0 : errno;
  *told = false;
  if (error == ESRCH || (error != 0 && has_ended(remote->pid, tid))) return true;
  if (error != 0 && !is_late(tid))
    return cs_error_set(
        err, "thread %d of process %d cannot be stopped: %s", tid, remote->pid,
        error == EPERM ? "not permitted, or a debugger has it already" : strerrorname_np(error));
  *told = error != 0 || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0;
  if (!*told || remember(&remote->told, tid, 0)) return true;
  return cs_error_set(err, "out of memory for the threads of process %d", remote->pid);
}

static bool wait_for_told(struct cs_remote *remote, int tid, uint64_t deadline,
                          struct cs_error *err) {
  int signal = 0;
  int stopped = wait_for(tid, deadline, &signal);
  if (stopped < 0 && has_ended(remote->pid, tid)) return true;
  // It will stop all the same, and is taken up by the next try, or let go when this process ends.
  if (stopped < 0)
    return cs_error_set(err, "thread %d of process %d does not stop: the kernel holds it", tid,
                        remote->pid);
  if (stopped == 0 || remember(&remote->stopped, tid, signal)) return true;
  (void)ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal);
  return cs_error_set(err, "out of memory for the threads of process %d", remote->pid);
}

static bool tell_listed(struct cs_remote *remote, struct cs_error *err) {
  char path[64];
  const struct dirent *entry;
  bool ok = true, told;
  (void)snprintf(path, sizeof path, "/proc/%d/task", remote->pid);
  DIR *dir = opendir(path);
  if (dir == NULL) return cs_error_set(err, "process %d has ended", remote->pid);
  while (ok && (entry = readdir(dir)) != NULL) {
    int tid = atoi(entry->d_name);
    if (tid <= 0 || is_stopped(&remote->stopped, tid)) continue;
    ok = tell(remote, tid, &told, err);
  }
  (void)closedir(dir);
  return ok;
}

// Stops the threads that are there now; `*found` says how many have been added. All that have been
// told are waited for, whatever became of one: none may be left that stops when nobody looks.
static bool stop_listed(struct cs_remote *remote, unsigned *found, struct cs_error *err) {
  unsigned before = remote->stopped.count;
  uint64_t deadline = cs_clock_now_ns() + stop_timeout_ns;
  bool ok = tell_listed(remote, err);
  for (unsigned i = 0; i < remote->told.count; i++)
    ok = wait_for_told(remote, remote->told.tid[i], deadline, ok ? err : NULL) && ok;
  remote->told.count = 0;
  *found = remote->stopped.count - before;
  return ok;
}

bool cs_remote_stop(struct cs_remote *remote, struct cs_error *err) {
  enum { ROUNDS = 64 };  // a process may start threads as fast as they are stopped
  unsigned found = 1;
  bool ok = true;
  for (int i = 0; ok && found != 0 && i < ROUNDS; i++) ok = stop_listed(remote, &found, err);
  if (ok && found != 0)
    ok =
        cs_error_set(err, "process %d starts threads faster than they can be stopped", remote->pid);
  if (ok && remote->stopped.count == 0)
    ok = cs_error_set(err, "process %d has no thread left", remote->pid);
  if (!ok) cs_remote_go(remote);
  cs_remote_invalidate(remote);
  return ok;
}

void cs_remote_go(struct cs_remote *remote) {
  struct cs_stopped *stopped = &remote->stopped;
  for (unsigned i = 0; i < stopped->count; i++)
    (void)ptrace(PTRACE_DETACH, stopped->tid[i], NULL, (void *)(intptr_t)stopped->signal[i]);
  stopped->count = 0;
}

unsigned cs_remote_threads(const struct cs_remote *remote, const int **tids) {
  *tids = remote->stopped.tid;
  return remote->stopped.count;
}
