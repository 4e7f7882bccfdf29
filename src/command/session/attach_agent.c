// SPDX-License-Identifier: MIT
// The agent in a running program: whether there is memory for it, and the command's side of the
// beginning of a recording. One thread. Signal-safe: no.
#include "session/attach_agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/attach.h"
#include "process/diag.h"
#include "process/proc.h"
#include "util/say.h"

enum {
  MIB = 1 << 20,
  // Besides the shared memory: the library, its tables, its ring, stacks, and what malloc reserves
  // for a thread, 64 MiB. Little of it is ever used.
  OWN_MIB = 128,
  // Modes of events have a second thread, and the runtime starts some, with arenas of their own.
  EVENTS_MIB = 208,
  // A program whose allocations fail ends.
  LEFT_MIB = 64,
};
#define EXPLAIN_NS 1000000000ull

// Returns the number after a label in a file of /proc/PID, or UINT64_MAX if it is unlimited, or
// cannot be read.
static uint64_t number_of(pid_t pid, const char *file, const char *label) {
  size_t size = 0;
  char *text = cs_proc_read(pid, file, &size);
  uint64_t number = cs_proc_number(text, label, 10);
  free(text);
  return number;
}

uint64_t cs_attach_private_memory(uint32_t modes) {
  bool events = (modes & CS_WIRE_AGENT_MODES & ~CS_WIRE_TIMED_MODES) != 0;
  return (events ? OWN_MIB + EVENTS_MIB : OWN_MIB) * (uint64_t)MIB;
}

uint64_t cs_attach_address_space(uint64_t bytes, uint32_t modes) {
  return bytes + cs_attach_private_memory(modes);
}

struct space {
  const char *words, *name, *option;
  const char *limit, *used;  // in /proc/PID/limits and status
};

// The limit may be lowered, or the program may need more, later.
static bool check_space(pid_t pid, const struct space *s, uint64_t needed, struct cs_error *err) {
  uint64_t space = number_of(pid, "limits", s->limit), kib = number_of(pid, "status", s->used);
  uint64_t used = kib != UINT64_MAX ? kib * 1024 : 0, left = space > used ? space - used : 0;
  if (space == UINT64_MAX || left >= needed + LEFT_MIB * (uint64_t)MIB) return true;
  return cs_error_set(err,
                      "process %d has %" PRIu64
                      " MiB of %s left (%s); a recording takes up to %" PRIu64
                      " MiB, and %d must stay for the program, which would end without them: raise "
                      "the limit (prlimit %s)",
                      (int)pid, left / MIB, s->words, s->name, needed / MIB, LEFT_MIB, s->option);
}

bool cs_attach_check_memory(pid_t pid, uint64_t bytes, uint32_t modes, struct cs_error *err) {
  char path[32];
  uint64_t files = number_of(pid, "limits", "Max file size");
  (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
  if (access(path, R_OK | X_OK) != 0)
    return cs_error_set(err,
                        "cannot access the files of process %d (%m): this takes its user, or "
                        "root with CAP_SYS_PTRACE",
                        (int)pid);
  if (files < bytes + CS_WIRE_HEADER_BYTES)
    return cs_error_set(err,
                        "process %d may make files of %" PRIu64
                        " KiB at most (RLIMIT_FSIZE), and "
                        "shared memory counts: %" PRIu64 " KiB are needed; use a smaller --buffer",
                        (int)pid, files / 1024, (bytes + CS_WIRE_HEADER_BYTES) / 1024);
  static const struct space whole = {"address space", "RLIMIT_AS", "--as", "Max address space",
                                     "\nVmSize:"};
  static const struct space data = {"private memory", "RLIMIT_DATA", "--data", "Max data size",
                                    "\nVmData:"};
  return check_space(pid, &whole, cs_attach_address_space(bytes, modes), err) &&
         check_space(pid, &data, cs_attach_private_memory(modes), err);
}

struct attempt {
  struct cs_session *session;
  const struct cs_wire_invitation *invitation;
  struct cs_error why;  // its memory has not been opened (yet)
  uint64_t explain_ns;  // when to report what is waited for; 0: it has been reported
};

static void look_for_memory(struct attempt *m) {
  struct cs_session *s = m->session;
  if (s->consumer.header == NULL)
    (void)cs_consumer_take(&s->consumer, s->child, m->invitation, &m->why);
}

static void explain_wait(struct attempt *m) {
  pid_t pid = m->session->child;
  if (m->explain_ns == 0 || cs_clock_now_ns() < m->explain_ns) return;
  m->explain_ns = 0;
  cs_say("process %d %s: waiting for it, %u s at most (Ctrl-C ends this)", (int)pid,
         cs_proc_is_stopped(pid) ? CS_PROC_STOPPED : "has not loaded the agent yet",
         cs_diag_patience_s);
}

// Called while the runtime loads the agent, which then waits for us.
static bool poll_attempt(void *context) {
  struct attempt *m = context;
  // While the process is stopped, nothing appears among its files, of which it may have many.
  if (m->explain_ns != 0 || !cs_proc_is_stopped(m->session->child)) look_for_memory(m);
  explain_wait(m);
  return !cs_session_is_interrupted(m->session);
}

// The agent's own message says more than its HRESULT.
static bool conclude(struct attempt *m, bool loaded, struct cs_error *err) {
  const struct cs_consumer *c = &m->session->consumer;
  look_for_memory(m);
  if (loaded && c->header != NULL && c->capacity != 0) return true;
  if (cs_consumer_agent_state(c) == CS_WIRE_AGENT_REFUSED)
    cs_consumer_message(c, err->text, sizeof err->text);
  else if (loaded)
    (void)cs_error_set(err, "process %d has loaded the agent, but %s", (int)m->session->child,
                       c->header == NULL ? m->why.text : "it has no memory for a recording");
  return false;
}

bool cs_attach_agent(struct cs_session *session, const char *library,
                     const struct cs_consumer_opts *opts, struct cs_error *err) {
  HRESULT refusal;
  struct cs_wire_invitation invitation;
  struct cs_diag_payload *data = calloc(1, sizeof *data);
  struct cs_attach attach = {session->child, NULL, library, data};
  struct attempt attempt = {
      .session = session, .invitation = &invitation, .explain_ns = cs_clock_now_ns() + EXPLAIN_NS};
  if (data == NULL) return cs_error_set(err, "out of memory");
  bool good = cs_attach_check_memory(session->child, opts->capacity, opts->modes, err) &&
              cs_consumer_invite(&session->consumer, opts, &invitation, err);
  if (good) {
    cs_diag_put(data, &invitation, sizeof invitation);
    cs_diag_meanwhile = (struct cs_diag_meanwhile){poll_attempt, &attempt};
    good = cs_attach(&attach, &refusal, err);
    cs_diag_meanwhile = (struct cs_diag_meanwhile){0};
    good = conclude(&attempt, good, err);
  }
  free(data);
  return good;
}
