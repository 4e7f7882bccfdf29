// SPDX-License-Identifier: MIT
// The command forks a recorder for each process that is recorded, so that no process waits for the
// end of another or for its symbols. The parent creates the shared memory for the next process and
// forwards signals. One thread. Signal-safe: no.
//
// All children of a program inherit one path in their environment. The shared memory at that path
// is unclaimed, or about to be replaced: as soon as a process has claimed it, the memory for the
// next one is renamed over it, so that the path always leads somewhere, and an agent that finds
// claimed memory waits. After an attach, processes are found in /proc.
#include "cli/children.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/diag.h"
#include "process/proc.h"
#include "util/say.h"

enum { MAX_RECORDED = 4096 };
#define SCAN_NS 100000000ull

struct children {
  struct cs_record_run *record;
  struct cs_consumer waiting;     // for the next process
  pid_t recorded[MAX_RECORDED];   // processes; [i] is recorded by recorders[i]
  pid_t recorders[MAX_RECORDED];  // 0: it has ended
  unsigned count;
  uint64_t began_ns, scanned_ns;
  int first_status;  // of the first recorder, as from wait(2)
};

// ---- In the process that records ----

// "flame.html" becomes "flame.1234.html".
static const char *name_for(const struct cs_view_output *output, pid_t pid) {
  const char *path = output->path;
  size_t length = strlen(path), stem = length;
  char *name = NULL;
  for (size_t i = 0; i < CS_COUNT(output->format->suffixes); i++) {
    const char *suffix = output->format->suffixes[i];
    size_t size = suffix != NULL ? strlen(suffix) : 0;
    if (size > 0 && size < length && strcmp(path + length - size, suffix) == 0 &&
        length - size < stem)
      stem = length - size;
  }
  return asprintf(&name, "%.*s.%d%s", (int)stem, path, (int)pid, path + stem) >= 0 ? name : NULL;
}

static bool rename_outputs(struct cs_view *view, pid_t pid, struct cs_error *err) {
  for (unsigned i = 0; i < view->count; i++) {
    struct cs_view_output *o = &view->outputs[i];
    const char *path = name_for(o, pid);
    if (path == NULL) return cs_error_set(err, "out of memory");
    *o = (struct cs_view_output){.path = path, .format = o->format};
  }
  return true;
}

// The first process has the outputs as they were named. Of a program, they are open already.
static int record(struct cs_record_run *r, pid_t pid, const struct cs_consumer *claimed,
                  bool first) {
  struct cs_error err = {""};
  bool ready = first && claimed != NULL;
  r->options->agent.pid = pid;
  if (!ready) r->session = (struct cs_session){.signals = -1, .limit_ns = r->session.limit_ns};
  if (first || rename_outputs(&r->options->view, pid, &err))
    return cs_record_process(r, claimed, ready);
  cs_say("process %d is not recorded: %s", (int)pid, err.text);
  return CS_EXIT_FAILURE;
}

// ---- In the process that starts them ----

// `claimed`: the memory that the process has claimed; NULL: it is attached to.
static void start_recorder(struct children *c, pid_t pid, const struct cs_consumer *claimed) {
  bool first = c->count == 0;
  if (c->count == MAX_RECORDED) return;
  pid_t recorder = fork();
  if (recorder == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    uint64_t limit = c->record->session.limit_ns;
    uint64_t gone = c->began_ns != 0 ? cs_clock_now_ns() - c->began_ns : 0;
    if (limit != 0) c->record->session.limit_ns = limit > gone ? limit - gone : 1;
    _exit(record(c->record, pid, claimed, first));
  }
  if (recorder < 0) cs_say("process %d is not recorded: %s", (int)pid, strerror(errno));
  if (c->began_ns == 0) c->began_ns = cs_clock_now_ns();
  if (first && recorder > 0) c->record->given_away = true;
  c->recorded[c->count] = pid;
  c->recorders[c->count++] = recorder > 0 ? recorder : 0;
}

// A recorder that gets SIGHUP still writes and sends what it has. After Ctrl-C the user does not
// want to wait: SIGTERM makes a recorder send nothing more (push.c).
static void end_recorders(const struct children *c) {
  int signal_number = c->record->session.interrupts > 0 ? SIGTERM : SIGHUP;
  for (unsigned i = 0; i < c->count; i++)
    if (c->recorders[i] != 0) (void)kill(c->recorders[i], signal_number);
}

// Returns whether at least one has not ended.
static bool take_ended(struct children *c, bool wait) {
  bool left = false;
  for (unsigned i = 0; i < c->count; i++) {
    int status = 0;
    if (c->recorders[i] == 0) continue;
    if (waitpid(c->recorders[i], &status, wait ? 0 : WNOHANG) == c->recorders[i]) {
      c->recorders[i] = 0;
      if (i == 0) c->first_status = status;
    } else {
      left = true;
    }
  }
  return left;
}

static bool time_is_up(const struct children *c) {
  uint64_t limit = c->record->session.limit_ns;
  return limit != 0 && c->began_ns != 0 && cs_clock_now_ns() - c->began_ns >= limit;
}

// ---- With a program of our own ----

static bool make_summary_lock(struct cs_record_run *r, struct cs_error *err) {
  r->summary_lock = memfd_create("clrsnap-summary", MFD_CLOEXEC);
  return r->summary_lock > 0 || cs_error_set(err, "cannot make a file in memory: %m");
}

static bool make_next(struct children *c, struct cs_error *err) {
  struct cs_consumer next;
  if (!cs_consumer_create(&next, &c->record->options->agent.ask, err)) return false;
  if (!cs_consumer_take_place(&next, &c->waiting, err)) {
    cs_consumer_destroy(&next);
    return false;
  }
  cs_consumer_destroy(&c->waiting);
  c->waiting = next;
  return true;
}

static bool on_tick(void *data) {
  struct children *c = data;
  struct cs_error err = {""};
  pid_t pid = c->waiting.header != NULL ? (pid_t)cs_consumer_agent_pid(&c->waiting) : 0;
  (void)take_ended(c, false);
  if (pid != 0) {
    start_recorder(c, pid, &c->waiting);
    if (!make_next(c, &err)) {
      cs_say("no further process is recorded: %s", err.text);
      cs_consumer_destroy(&c->waiting);
    }
  }
  return !time_is_up(c);
}

bool cs_children_prepare(struct cs_record_run *r, struct cs_error *err) {
  if (!make_summary_lock(r, err)) return false;
  return setenv(CS_WIRE_CHILDREN_ENV, "1", 1) == 0 || cs_error_set(err, "out of memory");
}

void cs_record_with_children(struct cs_record_run *r) {
  static struct children c;
  c.record = r;
  c.waiting = r->session.consumer;
  r->session.consumer = (struct cs_consumer){.fd = -1};
  cs_session_watch(&r->session, on_tick, &c);
  (void)on_tick(&c);  // a process may have come just before the end
  cs_consumer_destroy(&c.waiting);
  end_recorders(&c);
  (void)take_ended(&c, true);
  r->missing = c.count == 0;
  if (r->missing)
    cs_say("nothing was recorded: no .NET runtime in %s loaded the agent",
           r->options->agent.program[0]);
}

// ---- By attach ----

static bool descends_from(pid_t pid, pid_t ancestor) {
  for (int depth = 0; pid > 1 && depth < 64; depth++) {
    pid = cs_proc_parent(pid);
    if (pid == ancestor) return true;
  }
  return false;
}

static bool is_known(const struct children *c, pid_t pid) {
  for (unsigned i = 0; i < c->count; i++)
    if (c->recorded[i] == pid) return true;
  return false;
}

static void look_for_children(struct children *c) {
  DIR *proc = opendir("/proc");
  const struct dirent *entry;
  if (proc == NULL) return;
  while ((entry = readdir(proc)) != NULL) {
    pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
    if (pid <= 0 || is_known(c, pid) || !descends_from(pid, c->recorded[0])) continue;
    if (cs_proc_maps_coreclr(pid) && cs_diag_has_port(pid)) start_recorder(c, pid, NULL);
  }
  (void)closedir(proc);
}

static bool on_scan(void *data) {
  struct children *c = data;
  uint64_t now = cs_clock_now_ns();
  (void)take_ended(c, false);
  // The first recorder ends when the time is up, which counts from the beginning of its recording.
  if (c->recorders[0] == 0) return false;
  if (now - c->scanned_ns < SCAN_NS) return true;
  c->scanned_ns = now;
  look_for_children(c);
  return true;
}

int cs_record_children_of(struct cs_record_run *r) {
  static struct children c;
  struct cs_error err = {""};
  c.record = r;
  if (!make_summary_lock(r, &err) || !cs_session_open(&r->session, &err) ||
      !cs_diag_check(r->options->agent.pid, &err) ||
      !cs_session_attach(&r->session, r->options->agent.pid, &err)) {
    cs_say("%s", err.text);
    return CS_EXIT_FAILURE;
  }
  start_recorder(&c, r->options->agent.pid, NULL);
  cs_session_watch(&r->session, on_scan, &c);
  end_recorders(&c);
  (void)take_ended(&c, true);
  return WIFEXITED(c.first_status) ? WEXITSTATUS(c.first_status) : CS_EXIT_FAILURE;
}
