// SPDX-License-Identifier: MIT
// The witness is asked "have you received this signal from that process?" after a moment in which
// the sender's system call, which sends the signal to one process after the other, comes to its
// end. From then on the signal is pending for the witness, however late the witness has a
// processor. One thread. Signal-safe: no.
#include "process/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/proc.h"

enum { SENDING_MS = 5, REPLY_MS = 500, READY_MS = 10000, KEPT = 64 };
#define SAME_NS 1000000000ull  // a signal received longer ago is another one
#define NAME "signal-witness"

struct question {
  int signal_number;
  pid_t sender;
};

struct seen {
  struct question what;
  uint64_t when_ns;  // CLOCK_MONOTONIC; 0: none
};

// ---- In the witness ----

// What is for the command by its name, as from pkill, is not for the whole group.
static void take_name(void) {
  size_t size = 0;
  free(cs_proc_read(getpid(), "cmdline", &size));
  (void)prctl(PR_SET_NAME, NAME);
  // The arguments lie one after the other, where this one begins.
  if (size == 0) return;
  memset(program_invocation_name, 0, size);
  (void)strncpy(program_invocation_name, NAME, size - 1);
}

// Keeps nothing open that somebody waits for the end of.
static int leave_files(int socket) {
  enum { OWN = 3 };
  int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < OWN; fd++)
    if (null < 0 || dup2(null, fd) < 0) (void)close(fd);
  if (dup2(socket, OWN) < 0) _exit(1);
  (void)syscall(SYS_close_range, OWN + 1, ~0u, 0);
  (void)!chdir("/");
  return OWN;
}

static void take_signals(int signals, struct seen *seen, unsigned *next) {
  struct signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == (ssize_t)sizeof info)
    seen[(*next)++ % KEPT] =
        (struct seen){{(int)info.ssi_signo, (pid_t)info.ssi_pid}, cs_clock_now_ns()};
}

static bool find(struct seen *seen, const struct question *asked) {
  uint64_t now = cs_clock_now_ns();
  for (unsigned i = 0; i < KEPT; i++) {
    struct seen *s = &seen[i];
    if (s->when_ns == 0 || now - s->when_ns > SAME_NS ||
        s->what.signal_number != asked->signal_number || s->what.sender != asked->sender)
      continue;
    s->when_ns = 0;
    return true;
  }
  return false;
}

_Noreturn static void be_witness(int socket, const sigset_t *set) {
  static struct seen seen[KEPT];
  struct question asked;
  unsigned next = 0;
  take_name();
  socket = leave_files(socket);
  int signals = signalfd(-1, set, SFD_NONBLOCK);
  struct pollfd fds[2] = {{.fd = socket, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
  if (signals < 0 || send(socket, "", 1, MSG_NOSIGNAL) != 1) _exit(1);
  for (;;) {
    (void)poll(fds, 2, -1);
    bool is_asked = fds[0].revents != 0;
    take_signals(signals, seen, &next);
    if (!is_asked) continue;
    if (recv(socket, &asked, sizeof asked, 0) != (ssize_t)sizeof asked) _exit(0);
    char saw = (char)find(seen, &asked);
    if (send(socket, &saw, 1, MSG_NOSIGNAL) != 1) _exit(0);
  }
}

// ---- In the command ----

static bool is_ready(int socket) {
  char byte;
  struct pollfd ready = {.fd = socket, .events = POLLIN};
  return poll(&ready, 1, READY_MS) == 1 && recv(socket, &byte, 1, MSG_DONTWAIT) == 1;
}

bool cs_witness_open(struct cs_witness *w, const sigset_t *signals, struct cs_error *err) {
  int pair[2], status;
  w->socket = 0;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return cs_error_set(err, "cannot make a pair of sockets: %m");
  pid_t between = fork();
  if (between == 0) {
    (void)close(pair[0]);
    pid_t witness = fork();
    if (witness == 0) be_witness(pair[1], signals);
    _exit(witness > 0 ? 0 : errno);
  }
  int error = between > 0 ? 0 : errno;
  (void)close(pair[1]);
  if (between > 0 && waitpid(between, &status, 0) == between && WIFEXITED(status))
    error = WEXITSTATUS(status);
  w->socket = pair[0];
  if (error == 0 && is_ready(w->socket)) return true;
  cs_witness_close(w);
  return cs_error_set(err, "cannot start a process: %s",
                      error != 0 ? strerror(error) : "it does not become ready");
}

bool cs_witness_saw(const struct cs_witness *w, int signal_number, pid_t sender) {
  struct question ask = {signal_number, sender};
  struct pollfd reply = {.fd = w->socket, .events = POLLIN};
  char saw = 0;
  if (w->socket == 0) return false;
  while (recv(w->socket, &saw, 1, MSG_DONTWAIT) == 1) continue;  // too late for its question
  (void)poll(NULL, 0, SENDING_MS);
  if (send(w->socket, &ask, sizeof ask, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof ask)
    return false;
  return poll(&reply, 1, REPLY_MS) == 1 && recv(w->socket, &saw, 1, MSG_DONTWAIT) == 1 && saw != 0;
}

void cs_witness_close(struct cs_witness *w) {
  if (w->socket != 0) (void)close(w->socket);
  w->socket = 0;
}
