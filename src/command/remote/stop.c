// SPDX-License-Identifier: MIT
// Stops all threads of a process with ptrace, and resumes them. Invariant: a thread is in the list
// exactly while we have stopped it, with the signal that is still to be delivered to it; nothing
// else of the thread is changed. If this process dies, the kernel resumes all of them. One thread
// of the caller's, always the same. Signal-safe: no.
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/prefix.h"
#include "remote/private.h"

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

// Waits for the thread. 1: it has stopped; 0: it has ended; -1: neither.
static int wait_for(int tid, uint64_t deadline, int *signal) {
  const struct timespec nap = {.tv_nsec = 50000};
  for (;;) {
    int status;
    pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
    if (got < 0 && errno != EINTR) return 0;
    if (got == tid) {
      if (!WIFSTOPPED(status)) return 0;
      // The requested stop, or a signal that came first; that is delivered when it is resumed.
      *signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
      return 1;
    }
    if (cs_clock_now_ns() > deadline) return -1;
    (void)nanosleep(&nap, NULL);
  }
}

// A thread that has ended but is still listed. The kernel reports this as a missing permission.
static bool has_ended(int pid, int tid) {
  char path[64], line[512];
  (void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return true;
  const char *name_end = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
  (void)fclose(file);
  return name_end == NULL || cs_has_prefix(name_end, ") Z") || cs_has_prefix(name_end, ") X");
}

// Returns whether we have asked this thread to stop before, and did not wait long enough.
static bool is_late(int tid) {
  siginfo_t info;
  return waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0;
}

// Asks the thread to stop, and does not wait: on a busy machine it must get a processor before it
// can stop, so all of them wait at the same time. *asked: it will stop.
static bool ask_to_stop(struct cs_remote *remote, int tid, bool *asked, struct cs_error *err) {
  int error = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 ? 0 : errno;
  *asked = false;
  if (error == ESRCH || (error != 0 && has_ended(remote->pid, tid))) return true;
  if (error != 0 && !is_late(tid))
    return cs_error_set(
        err, "thread %d of process %d cannot be stopped: %s", tid, remote->pid,
        error == EPERM ? "not permitted, or a debugger has it already" : strerrorname_np(error));
  *asked = error != 0 || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0;
  if (!*asked || remember(&remote->asked, tid, 0)) return true;
  return cs_error_set(err, "out of memory for the threads of process %d", remote->pid);
}

static bool wait_for_asked(struct cs_remote *remote, int tid, uint64_t deadline,
                           struct cs_error *err) {
  int signal = 0;
  int stopped = wait_for(tid, deadline, &signal);
  if (stopped < 0 && has_ended(remote->pid, tid)) return true;
  // It will stop later, and the next try finds it stopped, or it is resumed when this process ends.
  if (stopped < 0) {
    (void)remember(&remote->late, tid, 0);
    return cs_error_set(err, "thread %d of process %d does not stop: the kernel holds it", tid,
                        remote->pid);
  }
  if (stopped == 0 || remember(&remote->stopped, tid, signal)) return true;
  (void)ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal);
  return cs_error_set(err, "out of memory for the threads of process %d", remote->pid);
}

static bool ask_listed(struct cs_remote *remote, struct cs_error *err) {
  char path[64];
  const struct dirent *entry;
  bool ok = true, asked;
  (void)snprintf(path, sizeof path, "/proc/%d/task", remote->pid);
  DIR *dir = opendir(path);
  if (dir == NULL) return cs_error_set(err, "process %d has ended", remote->pid);
  while (ok && (entry = readdir(dir)) != NULL) {
    int tid = atoi(entry->d_name);
    if (tid <= 0 || is_stopped(&remote->stopped, tid)) continue;
    ok = ask_to_stop(remote, tid, &asked, err);
  }
  (void)closedir(dir);
  return ok;
}

// Stops the threads that exist now; *found is the number of threads that were added. It waits for
// all that were asked to stop, even after a failure: none may stop when nobody waits for it any
// more.
static bool stop_listed(struct cs_remote *remote, unsigned *found, struct cs_error *err) {
  unsigned before = remote->stopped.count;
  uint64_t deadline = cs_clock_now_ns() + remote->patience_ns;
  bool ok = ask_listed(remote, err);
  for (unsigned i = 0; i < remote->asked.count; i++)
    ok = wait_for_asked(remote, remote->asked.tid[i], deadline, ok ? err : NULL) && ok;
  remote->asked.count = 0;
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
  if (!ok) cs_remote_resume(remote);
  cs_remote_invalidate(remote);
  return ok;
}

void cs_remote_resume(struct cs_remote *remote) {
  struct cs_stopped *stopped = &remote->stopped;
  for (unsigned i = 0; i < stopped->count; i++)
    (void)ptrace(PTRACE_DETACH, stopped->tid[i], NULL, (void *)(intptr_t)stopped->signal[i]);
  stopped->count = 0;
}

void cs_remote_set_timeout(struct cs_remote *remote, uint64_t ns) {
  remote->patience_ns = ns;
}

void cs_remote_release_late(struct cs_remote *remote) {
  const struct timespec nap = {.tv_nsec = 1000000};
  struct cs_stopped *late = &remote->late;
  while (late->count > 0) {
    for (unsigned i = late->count; i-- > 0;) {
      int signal = 0, stopped = wait_for(late->tid[i], 0, &signal);
      if (stopped < 0 && !has_ended(remote->pid, late->tid[i])) continue;
      if (stopped > 0) (void)ptrace(PTRACE_DETACH, late->tid[i], NULL, (void *)(intptr_t)signal);
      late->tid[i] = late->tid[--late->count];
    }
    if (late->count > 0) (void)nanosleep(&nap, NULL);
  }
}

unsigned cs_remote_threads(const struct cs_remote *remote, const int **tids) {
  *tids = remote->stopped.tid;
  return remote->stopped.count;
}

// ---- Priority ----

// On a busy machine this command would wait for a processor while the process is stopped. Nice
// values only count within a session (the scheduler's autogroups), so the real-time policy matters
// more. Without the right to either, the process is stopped for longer.
void cs_remote_raise_priority(void) {
  const struct sched_param param = {.sched_priority = 1};
  (void)setpriority(PRIO_PROCESS, 0, -20);
  (void)sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param);
}

void cs_remote_restore_priority(void) {
  const struct sched_param param = {.sched_priority = 0};
  (void)sched_setscheduler(0, SCHED_OTHER, &param);
  (void)setpriority(PRIO_PROCESS, 0, 0);
}
