// SPDX-License-Identifier: MIT
// The real-time signal that asks a thread for something: which one is ours, and whether it still
// is. Any thread; not for handlers.
//
// Invariant: a signal that the program uses is never taken from it. The handler, once installed,
// stays: a signal may be on its way for as long as the process lives.
#include "threads/own_signal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/prefix.h"
#include "signal/handler.h"
#include "threads/sleeper.h"
#include "threads/threads.h"

enum {
  FIRST_SIGNAL = 35,  // 32 and 33 are the C library's, 34 is the runtime's
  LAST_SIGNAL = 64,
};

static bool is_free(int signo) {
  struct sigaction now;
  sigset_t blocked;
  return sigaction(signo, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
         now.sa_handler == SIG_DFL && pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 &&
         !sigismember(&blocked, signo);
}

// The handler of an earlier start is still installed.
static bool is_ours(int signo) {
  struct sigaction now;
  return sigaction(signo, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
         now.sa_sigaction == cs_signal_handler;
}

// Another profiler's signal inside our handler could hold the thread there, with our signal
// blocked. The signals of faults stay unblocked: a fault whose signal is blocked kills the process.
void cs_block_all_but_faults(sigset_t *set) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
  (void)sigfillset(set);
  for (size_t i = 0; i < CS_COUNT(faults); i++) (void)sigdelset(set, faults[i]);
}

// Not SA_ONSTACK: see docs/signal-safety.md, "Alternate stacks".
static bool install(int signo) {
  struct sigaction action = {.sa_sigaction = cs_signal_handler,
                             .sa_flags = SA_SIGINFO | SA_RESTART};
  cs_block_all_but_faults(&action.sa_mask);
  return sigaction(signo, &action, NULL) == 0;
}

bool cs_own_signal_ensure(struct cs_error *err) {
  struct sigaction now;
  int signo = cs_threads.signal_number;
  if (is_ours(signo)) return true;
  if (sigaction(signo, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
      now.sa_handler == SIG_DFL && install(signo))
    return true;
  return cs_error_set(err, "threads cannot be asked: the program uses signal %d itself now", signo);
}

HRESULT cs_own_signal_install(int wanted, struct cs_error *err) {
  int signo = 0;
  if (wanted != 0 && (wanted < FIRST_SIGNAL || wanted > LAST_SIGNAL || wanted > SIGRTMAX)) {
    cs_error_set(err, "signal %d cannot be used: choose one of %d to %d, or 0", wanted,
                 FIRST_SIGNAL, SIGRTMAX);
    return E_INVALIDARG;
  }
  for (int s = SIGRTMAX; s >= FIRST_SIGNAL && signo == 0; s--) {
    if (wanted != 0 ? s == wanted : is_ours(s)) signo = s;
  }
  for (int s = SIGRTMAX; s >= FIRST_SIGNAL && signo == 0; s--) {
    if (is_free(s)) signo = s;
  }
  if (signo == 0 || (!is_ours(signo) && !is_free(signo))) {
    cs_error_set(err,
                 signo == 0 ? "all real-time signals from %d on are in use"
                            : "signal %d is in use or blocked; choose another one, or 0",
                 signo == 0 ? FIRST_SIGNAL : signo);
    return E_INVALIDARG;
  }
  if (!install(signo)) {
    cs_error_set(err, "the handler of signal %d could not be installed: %s", signo,
                 strerror(errno));
    return E_FAIL;
  }
  cs_threads.signal_number = signo;
  return S_OK;
}

// The calling thread's own are had without its status file.
static bool read_own(uint64_t *blocked, uint64_t *pending) {
  sigset_t mask, waiting;
  if (pthread_sigmask(SIG_BLOCK, NULL, &mask) != 0 || sigpending(&waiting) != 0) return false;
  memcpy(blocked, &mask, sizeof *blocked);
  memcpy(pending, &waiting, sizeof *pending);
  return true;
}

// The C library's streams allocate, so they are not used here: a thread that the caller holds may
// own the allocator's lock.

// Returns the number of the system call in which the thread sleeps, or -1 if it runs or is in none.
static long sleeping_call(uint32_t tid) {
  char text[32] = "";
  int fd = cs_thread_file_open(tid, "syscall");
  if (fd < 0) return -1;
  bool sleeps = read(fd, text, sizeof text - 1) > 0 && text[0] >= '0' && text[0] <= '9';
  (void)close(fd);
  return sleeps ? strtol(text, NULL, 10) : -1;
}

// Takes what a line of the status file says. Returns how many members of *status it is.
static unsigned take_line(const char *line, struct cs_thread_status *status) {
  static const char state[] = "State:\t", blocked[] = "SigBlk:\t", pending[] = "SigPnd:\t";
  if (cs_has_prefix(line, state))
    status->state = line[sizeof state - 1];
  else if (cs_has_prefix(line, blocked))
    status->blocked = strtoull(line + sizeof blocked - 1, NULL, 16);
  else if (cs_has_prefix(line, pending))
    status->pending = strtoull(line + sizeof pending - 1, NULL, 16);
  else
    return 0;
  return 1;
}

// A line may be longer than the text: that of the groups. Its rest is taken for lines that say
// nothing.
bool cs_thread_status(uint32_t tid, struct cs_thread_status *status) {
  char text[512];
  size_t used = 0;
  unsigned found = 0;
  ssize_t count;
  *status = (struct cs_thread_status){0};
  int fd = cs_thread_file_open(tid, "status");
  if (fd < 0) return false;
  while (found < 3 && (count = read(fd, text + used, sizeof text - 1 - used)) > 0) {
    char *line = text, *end;
    used += (size_t)count;
    text[used] = '\0';
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
      *end = '\0';
      found += take_line(line, status);
    }
    used -= (size_t)(line - text);
    if (used == sizeof text - 1) used = 0;
    memmove(text, line, used);
  }
  (void)close(fd);
  return found == 3;
}

static bool add_status(uint32_t tid, uint64_t *blocked, uint64_t *pending) {
  struct cs_thread_status status;
  if (!cs_thread_status(tid, &status)) return false;
  *blocked |= status.blocked;
  *pending |= status.pending;
  return true;
}

// While a thread waits for signals, the kernel counts those as not blocked, but it receives them. A
// thread that runs may do so before or after this read, so its mask is read again.
bool cs_thread_signals(uint32_t tid, uint64_t *blocked, uint64_t *pending) {
  *blocked = *pending = 0;
  if (tid == (uint32_t)syscall(SYS_gettid)) return read_own(blocked, pending);
  if (!add_status(tid, blocked, pending)) return false;
  long call = sleeping_call(tid);
  if (call == SYS_rt_sigtimedwait) *blocked = UINT64_MAX;
  return call >= 0 || add_status(tid, blocked, pending);
}
