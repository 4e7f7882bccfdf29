// SPDX-License-Identifier: MIT
// The loop of a recording. Signals arrive through a descriptor, so there is no signal handler.
// Invariant: every signal that reaches the command reaches the program once: one that was sent to
// the whole process group is not forwarded. A process that was attached to gets none.
// One thread. Signal-safe: no.
#include "session/session.h"
#include "naming/naming.h"
#include "process/proc.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/print.h"

#define SLOW_POLL_MS \
  100               // while little arrives, or with a budget, which the polling counts against
#define POLL_MS 20  // a ring of 16 MiB then suffices for 800 MB/s
#define GRACE_NS 2000000000ull  // for an agent that has been asked to end
#define PROGRESS_NS 500000000ull
#define EXEC_NS 250000000ull

static const int forwarded[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH};

static void forwarded_set(sigset_t *set) {
  (void)sigemptyset(set);
  for (size_t i = 0; i < CS_COUNT(forwarded); i++) (void)sigaddset(set, forwarded[i]);
}

bool cs_session_open(struct cs_session *s, struct cs_error *err) {
  sigset_t set;
  forwarded_set(&set);
  (void)sigaddset(&set, SIGCHLD);  // only wakes us up
  (void)sigprocmask(SIG_BLOCK, &set, &s->old_mask);
  (void)signal(SIGPIPE, SIG_IGN);
  s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (s->signals < 0) return cs_error_set(err, "cannot receive signals: %m");
  s->progress = isatty(STDERR_FILENO) == 1;
  cs_recording_init(&s->recording);
  return true;
}

bool cs_session_expect_child(struct cs_session *s, struct cs_error *err) {
  sigset_t set;
  forwarded_set(&set);
  return cs_witness_open(&s->witness, &set, err);
}

bool cs_session_attach(struct cs_session *s, pid_t pid, struct cs_error *err) {
  s->child = pid;
  s->attached = (int)syscall(SYS_pidfd_open, pid, 0);
  return s->attached >= 0 || cs_error_set(err, "there is no process %d", (int)pid);
}

// Signals for the command alone.
static void obey(struct cs_session *s, int signal_number) {
  switch (signal_number) {
    case SIGINT:
      s->interrupts++;
      break;
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
      s->interrupts += 2;  // ends the recording at once
      break;
    case SIGTSTP:
      (void)kill(getpid(), SIGSTOP);
      break;
    default:
      break;
  }
}

// The kernel has sent a signal from the terminal to all of the foreground group; but that the
// terminal is gone, to the leader of the session alone.
static bool is_from_terminal(const struct signalfd_siginfo *info) {
  return info->ssi_code == SI_KERNEL && !((int)info->ssi_signo == SIGHUP && getsid(0) == getpid());
}

// Whether the program has received the signal with this process.
static bool program_has(const struct cs_session *s, const struct signalfd_siginfo *info) {
  if (is_from_terminal(info)) return true;
  return getpgid(s->child) == getpgrp() &&
         cs_witness_saw(&s->witness, (int)info->ssi_signo, (pid_t)info->ssi_pid);
}

static void forward(struct cs_session *s, const struct signalfd_siginfo *info) {
  int signal_number = (int)info->ssi_signo;
  if (signal_number == SIGINT && is_from_terminal(info)) s->interrupts++;
  if (!s->child_ended && !program_has(s, info)) (void)kill(s->child, signal_number);
  // A job is stopped as a whole; by SIGSTOP, because SIGTSTP is blocked here.
  if (signal_number == SIGTSTP) (void)kill(getpid(), SIGSTOP);
}

// The process that the agent is in, which need not be the one that was started.
static pid_t agents_process(const struct cs_session *s) {
  pid_t agent = (pid_t)cs_consumer_agent_pid(&s->consumer);
  return s->attached != 0 || agent == 0 ? s->child : agent;
}

static bool agent_has_finished(const struct cs_session *s) {
  enum cs_wire_agent_state state = cs_consumer_agent_state(&s->consumer);
  return s->recording.ended || state == CS_WIRE_AGENT_DONE || state == CS_WIRE_AGENT_REFUSED;
}

static void note_exec(struct cs_session *s, const char *name) {
  s->replaced = true;
  (void)snprintf(s->recording.fate, sizeof s->recording.fate, "became another one, '%s', by exec",
                 name);
}

// A program that another one has replaced has no agent any more, and cannot say so.
static void look_for_exec(struct cs_session *s, uint64_t now) {
  unsigned long long stack;
  char name[sizeof s->name];
  pid_t pid = agents_process(s);
  if (s->began_ns == 0 || s->replaced || now - s->looked_ns < EXEC_NS) return;
  s->looked_ns = now;
  if (!cs_proc_stack(pid, &stack) || !cs_proc_name(pid, name, sizeof name)) return;
  if (s->stack == 0) s->stack = stack;
  if (stack != s->stack) {
    note_exec(s, name);
    return;
  }
  memcpy(s->name, name, sizeof name);
  s->alive_ns = now;
}

// A process that has ended has no stack, but still the name of the last program in it.
static void look_for_late_exec(struct cs_session *s) {
  char name[sizeof s->name];
  if (s->name[0] == '\0' || s->replaced || agents_process(s) != s->child || agent_has_finished(s))
    return;
  if (cs_proc_name(s->child, name, sizeof name) && strcmp(name, s->name) != 0) note_exec(s, name);
}

static void note_end(struct cs_session *s) {
  siginfo_t end = {.si_pid = 0};
  struct pollfd attached = {.fd = s->attached, .events = POLLIN};
  if (s->child_ended) return;
  if (s->attached != 0)
    s->child_ended = poll(&attached, 1, 0) == 1;
  else
    s->child_ended = waitid(P_PID, (id_t)s->child, &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                     end.si_pid == s->child;
  if (!s->child_ended) return;
  look_for_late_exec(s);
  if (s->attached == 0) (void)waitpid(s->child, &s->child_status, 0);
}

// Takes as many as can be pending at a time, and leaves those that come meanwhile for later.
static void take_signals(struct cs_session *s) {
  struct signalfd_siginfo info;
  for (size_t i = 0; i <= CS_COUNT(forwarded); i++) {
    if (read(s->signals, &info, sizeof info) != (ssize_t)sizeof info) break;
    if (s->watcher.poll != NULL && info.ssi_signo != SIGCHLD)
      s->watcher.signal(s->watcher.context, (int)info.ssi_signo);
    else if (s->attached != 0)
      obey(s, (int)info.ssi_signo);
    else if (info.ssi_signo != SIGCHLD)
      forward(s, &info);
  }
  note_end(s);
}

// To be called while the program runs: afterwards its mappings and its root are unknown.
static void hold_files(struct cs_session *s) {
  cs_name_from(&s->recording, agents_process(s));
}

static void note_image(struct cs_session *s, const struct cs_wire_record *record) {
  uint32_t id;  // the first member of an image record
  memcpy(&id, record + 1, sizeof id);
  cs_name_open_image(&s->recording, id);
}

// Takes at most as much as the ring holds: everything that was there, but a producer that writes
// faster than we read does not keep us here.
static void take_records(struct cs_session *s) {
  const struct cs_wire_record *record;
  hold_files(s);
  uint64_t first = s->consumer.tail, now = cs_clock_now_ns();
  while (s->consumer.tail - first < s->consumer.capacity &&
         (record = cs_consumer_next(&s->consumer)) != NULL) {
    uint64_t broken = s->recording.broken;
    cs_recording_add(&s->recording, record);
    if (record->kind == CS_WIRE_IMAGE && s->recording.broken == broken) note_image(s, record);
    if (s->recording.broken == broken) cs_recfile_add(&s->file, &s->recording, record);
  }
  if (s->consumer.tail != first) s->alive_ns = now;
  cs_scans_take(&s->scans, s->began_ns, &s->recording, &s->file);
  cs_scans_take(&s->pool, s->began_ns, &s->recording, &s->file);
  cs_recfile_flush(&s->file, &s->recording);
  if (s->watcher.poll != NULL && !s->watcher.poll(s->watcher.context, cs_clock_now_ns()))
    s->enough = true;
  if (s->timeline) return;
  s->recording.sample_count = s->file.samples = 0;
}

// A line that overwrites itself, and is removed before anything else is printed.
static void show_progress(struct cs_session *s, uint64_t now) {
  if (!s->progress || now - s->progress_ns < PROGRESS_NS) return;
  if (s->began_ns == 0) return;
  cs_print(stderr, "\r\033[Kclrsnap: recording %.0f s, %llu samples; Ctrl-C ends %s",
           (double)(now - s->began_ns) / 1e9, (unsigned long long)s->recording.taken,
           s->attached != 0 ? "it" : "the program");
  (void)fflush(stderr);
  s->progress_ns = now;
}

static void clear_progress(struct cs_session *s) {
  if (s->progress_ns == 0) return;
  cs_print(stderr, "\r\033[K");
  (void)fflush(stderr);
  s->progress_ns = 0;
}

static void wait_a_little(struct cs_session *s, int timeout_ms) {
  struct pollfd fd = {.fd = s->signals, .events = POLLIN};
  if (s->consumer.header != NULL) cs_consumer_publish_cpu(&s->consumer);
  (void)poll(&fd, 1, timeout_ms);
}

// The agent's process has ended, so no more records will come. (If it is in another PID namespace,
// its PID means nothing here; then the program's end ends the recording.)
static bool agent_died(const struct cs_session *s) {
  pid_t agent = (pid_t)cs_consumer_agent_pid(&s->consumer);
  if (s->attached != 0) return s->child_ended;
  return agent > 0 && agent != s->child && kill(agent, 0) != 0 && errno == ESRCH;
}

static bool time_is_up(const struct cs_session *s, uint64_t now) {
  return s->limit_ns > 0 && s->began_ns > 0 && now - s->began_ns >= s->limit_ns;
}

static void note_agent(struct cs_session *s, uint64_t now) {
  // The agent that claimed the memory has mapped it, so its path is no longer needed.
  if (cs_consumer_agent_pid(&s->consumer) != 0) cs_consumer_hide(&s->consumer);
  if (s->began_ns == 0 && cs_consumer_agent_state(&s->consumer) == CS_WIRE_AGENT_RECORDING) {
    s->began_ns = now;
  }
}

// Why there is no word from the agent, as far as that is known.
static void note_fate(struct cs_session *s) {
  char *fate = s->recording.fate;
  size_t size = sizeof s->recording.fate;
  pid_t agent = (pid_t)cs_consumer_agent_pid(&s->consumer);
  if (s->replaced) return;
  if (s->child_ended && agent == s->child)
    (void)cs_session_how_ended(s, fate, size);
  else if (!s->child_ended && cs_proc_is_stopped(agents_process(s)))
    (void)snprintf(fate, size, CS_PROC_STOPPED);
}

// Makes an agent that is still recording end, and takes its last records.
static void end_agent(struct cs_session *s) {
  cs_consumer_stop(&s->consumer);
  uint64_t deadline = cs_clock_now_ns() + GRACE_NS;
  bool alive = cs_consumer_agent_state(&s->consumer) == CS_WIRE_AGENT_RECORDING && !s->replaced;
  pid_t agent = (pid_t)cs_consumer_agent_pid(&s->consumer);
  while (alive && !agent_has_finished(s) && cs_clock_now_ns() < deadline) {
    alive = !(s->child_ended && agent == s->child) && !agent_died(s) && !s->replaced;
    wait_a_little(s, POLL_MS);
    take_signals(s);
    take_records(s);
  }
  take_records(s);
  note_fate(s);
}

static void start_scans(struct cs_session *s) {
  pid_t agent = (pid_t)cs_consumer_agent_pid(&s->consumer);
  if (s->began_ns == 0 || !s->recording.started) return;
  if (s->scans.wanted && !s->scans.started)
    cs_scans_start(&s->scans, agents_process(s), &s->recording, &s->file);
  // The agent's PID may be that of another namespace, and the pool another program's.
  if (s->pool.wanted && !s->pool.started && (s->attached != 0 || agent == s->child))
    cs_scans_start(&s->pool, s->child, &s->recording, &s->file);
}

static bool is_interrupted(const struct cs_session *s) {
  unsigned enough = s->attached == 0 ? 2 : s->patience != 0 ? s->patience : 1;
  return s->interrupts >= enough;
}

bool cs_session_is_interrupted(struct cs_session *s) {
  take_signals(s);
  return is_interrupted(s);
}

void cs_session_watch(struct cs_session *s, bool (*tick)(void *data), void *data) {
  do {
    wait_a_little(s, POLL_MS);
    take_signals(s);
  } while (!s->child_ended && !is_interrupted(s) && tick(data));
}

// While few records arrive, the ring is polled less often: each time costs the program's processors
// some 100 us. Never waits beyond the end of the recording.
static int pause_ms(const struct cs_session *s, uint64_t taken) {
  bool calm = s->began_ns != 0 && s->watcher.poll == NULL && taken < s->consumer.capacity / 32;
  if (!calm && s->consumer.header->budget_ppm == 0) return POLL_MS;
  uint64_t end = s->limit_ns > 0 && s->began_ns > 0 ? s->began_ns + s->limit_ns : UINT64_MAX;
  uint64_t now = cs_clock_now_ns(), left_ms = end > now ? (end - now) / 1000000 + 1 : 0;
  return left_ms < SLOW_POLL_MS ? (int)left_ms : SLOW_POLL_MS;
}

void cs_session_record(struct cs_session *s) {
  uint64_t taken = 0;
  hold_files(s);
  for (;;) {
    uint64_t before = s->consumer.tail;
    wait_a_little(s, pause_ms(s, taken));
    take_signals(s);
    uint64_t now = cs_clock_now_ns();
    note_agent(s, now);
    look_for_exec(s, now);
    // Checked before the records are taken, so that all that was committed before the end is taken.
    bool over = s->child_ended || agent_has_finished(s) || agent_died(s) || is_interrupted(s) ||
                (s->replaced && s->watcher.poll == NULL);
    take_records(s);
    taken = s->consumer.tail - before;
    start_scans(s);
    if (over || s->enough || time_is_up(s, now)) break;
    if (s->window != NULL && s->began_ns > 0)
      cs_window_advance(s->window, now - s->began_ns, false);
    show_progress(s, now);
  }
  cs_scans_end(&s->scans, s->began_ns, &s->recording, &s->file);
  cs_scans_end(&s->pool, s->began_ns, &s->recording, &s->file);
  end_agent(s);
  note_agent(s, cs_clock_now_ns());
  cs_consumer_hide(&s->consumer);
  uint64_t end_ns = s->replaced ? s->alive_ns : cs_clock_now_ns();
  if (s->began_ns > 0 && end_ns > s->began_ns) s->recorded_ns = end_ns - s->began_ns;
  clear_progress(s);
  if (s->window != NULL) cs_window_advance(s->window, s->recorded_ns, true);
}

void cs_session_wait(struct cs_session *s) {
  while (s->attached == 0 && !s->child_ended) {
    wait_a_little(s, -1);
    take_signals(s);
  }
}

int cs_session_exit_code(const struct cs_session *s) {
  if (WIFSIGNALED(s->child_status)) return 128 + WTERMSIG(s->child_status);
  return WEXITSTATUS(s->child_status);
}

bool cs_session_how_ended(const struct cs_session *s, char *out, size_t size) {
  int status = s->child_status;
  if (s->attached != 0 || !s->child_ended) return false;
  if (WIFSIGNALED(status))
    (void)snprintf(out, size, "was killed by signal %d (%s)", WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
  else
    (void)snprintf(out, size, "ended with exit code %d", WEXITSTATUS(status));
  return true;
}

void cs_session_close(struct cs_session *s) {
  // An attach that failed after the agent had begun leaves it recording.
  if (s->consumer.header != NULL) cs_consumer_stop(&s->consumer);
  cs_consumer_destroy(&s->consumer);
  cs_scans_close(&s->scans);
  cs_scans_close(&s->pool);
  cs_recfile_close(&s->file);
  cs_recording_free(&s->recording);
  if (s->signals >= 0) (void)close(s->signals);
  if (s->attached > 0) (void)close(s->attached);
  cs_witness_close(&s->witness);
}
