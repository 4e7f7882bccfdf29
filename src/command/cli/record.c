// SPDX-License-Identifier: MIT
// One recording. Invariant: the agent's verdict decides whether anything is written. One thread.
// Signal-safe: no.
#include "cli/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "naming/naming.h"
#include "process/proc.h"
#include "util/say.h"

static void fill_totals(struct cs_session *s) {
  struct cs_recording *rec = &s->recording;
  rec->totals = (struct cs_rec_totals){.recorded_ns = s->recorded_ns,
                                       .lost_ring = cs_consumer_lost(&s->consumer),
                                       .broken = s->consumer.broken_records};
  rec->finished = true;
}

// Says why a recording has no labels.
static void explain_labels(const struct cs_record_run *r) {
  uint64_t labelled = 0;
  for (unsigned i = 0; i < CS_WIRE_MODES; i++) labelled += r->session.recording.sums[i].labelled;
  if (labelled > 0) return;
  if (cs_consumer_has_label_hooks(&r->session.consumer))
    cs_say(
        "no labels: no sample was taken while an Activity was current (one that the program "
        "starts, or a request of ASP.NET Core, which makes one if the server logs, or if something "
        "listens to its requests, such as OpenTelemetry)");
  else if (r->start.other_hook != NULL)
    cs_say(
        "no labels: the process runs the startup hook of another build of clrsnap, %s, and can "
        "have only one: record it with that build, or start it again",
        r->start.other_hook);
  else
    cs_say(
        "no labels: the program did not run the startup hook that they need; is it built without "
        "startup hooks (System.StartupHookProvider.IsSupported)?");
}

// Samples in time are due whatever the program does; of events there may have been none. A program
// of our own that was too short for a sample keeps its exit code.
static bool nothing_was_sampled(const struct cs_session *s) {
  const struct cs_recording *rec = &s->recording;
  return s->attached != 0 && rec->taken == 0 && rec->meta.event == 0 &&
         (rec->meta.modes & ~CS_WIRE_TIMED_MODES) == 0;
}

// Returns false if something could not be written, which has been reported.
static bool write_result(struct cs_record_run *r) {
  struct cs_error err;
  struct cs_session *s = &r->session;
  const char *file = cs_view_recording(&r->options->view);
  fill_totals(s);
  cs_name_frames(&s->recording);
  bool written = file != NULL && cs_recfile_finish(&s->file, &s->recording, &err);
  r->options->view.modes = s->recording.meta.modes;
  r->options->view.sole = !written;
  bool all = cs_view_write(&r->options->view, &s->recording);
  if (r->options->agent.ask.labels) explain_labels(r);
  if (file != NULL && written) cs_say("wrote %s", file);
  if (file != NULL && !written) cs_say("%s", err.text);
  r->missing = (file != NULL && !written) || r->options->view.unwritten || nothing_was_sampled(s);
  return all && !r->missing;
}

// The variable that keeps the runtime from loading a profiler at its start. Returns NULL if none is
// set.
static const char *switched_off(void) {
  static const char *const all[] = {"DOTNET_EnableDiagnostics", "COMPlus_EnableDiagnostics",
                                    "DOTNET_EnableDiagnostics_Profiler",
                                    "COMPlus_EnableDiagnostics_Profiler"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (cs_proc_is_zero(getpid(), all[i])) return all[i];
  return NULL;
}

static void explain_silence(const struct cs_record_run *r) {
  const char *off = switched_off();
  int pid = (int)r->options->agent.pid;
  if (pid == 0) pid = (int)cs_consumer_agent_pid(&r->session.consumer);  // it had loaded the agent
  char fate[128];
  bool known = cs_session_how_ended(&r->session, fate, sizeof fate);
  if (pid != 0 && known && pid == r->session.child) {
    cs_say("nothing was recorded: process %d %s before it began", pid, fate);
    return;
  }
  if (pid != 0) {
    cs_say("nothing was recorded: the recording ended, or process %d did, before it began", pid);
    return;
  }
  bool file = r->options->view.count > 0;
  cs_say("nothing was recorded: no .NET runtime in %s loaded the agent, so %s was %s",
         r->options->agent.program[0], file ? r->options->view.outputs[0].path : "nothing",
         file ? "not written" : "pushed");
  if (known && WIFSIGNALED(r->session.child_status)) cs_say("  it %s", fate);
  if (off != NULL) {
    cs_say("  %s=0 is set: it forbids profilers", off);
    return;
  }
  cs_say("  possible reasons: it is not a .NET program, or one compiled ahead of time to native");
  cs_say("  code; it clears its environment, names another profiler there, or sets");
  cs_say(
      "  DOTNET_EnableDiagnostics=0 or DOTNET_EnableDiagnostics_Profiler=0; it ended before the");
  cs_say("  runtime started; its runtime is older than .NET 5; or it runs as another user or in");
  cs_say("  another PID namespace (then start it first, and record it by its PID)");
}

// Several processes print their summaries one after the other. The lock ends with this process.
static void lock_summary(const struct cs_record_run *r) {
  char path[32];
  if (r->summary_lock == 0) return;
  (void)snprintf(path, sizeof path, "/proc/self/fd/%d", r->summary_lock);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd >= 0) (void)flock(fd, LOCK_EX);
  cs_say("process %d: %s", (int)r->options->agent.pid, r->start.program);
}

bool cs_record_conclude(struct cs_record_run *r) {
  lock_summary(r);
  char message[256];
  switch (cs_consumer_agent_state(&r->session.consumer)) {
    case CS_WIRE_AGENT_REFUSED:
      cs_consumer_message(&r->session.consumer, message, sizeof message);
      cs_say("nothing was recorded: %s", message);
      r->missing = true;
      return false;
    case CS_WIRE_AGENT_NONE:
      if (!r->session.recording.started) {
        explain_silence(r);
        r->missing = true;
        return false;
      }
      break;
    default:
      break;
  }
  bool ok = write_result(r);
  cs_consumer_message(&r->session.consumer, message, sizeof message);
  if (message[0] != '\0') cs_say("%s", message);
  return ok;
}

bool cs_record_open(struct cs_record_run *r, struct cs_error *err) {
  const struct cs_record_options *o = r->options;
  const struct cs_consumer_opts *ask = &o->agent.ask;
  struct cs_session *s = &r->session;
  const char *file = cs_view_recording(&o->view);
  if (!cs_view_open(&r->options->view, err)) return false;
  if (file != NULL && !cs_recfile_open(&s->file, file, err)) return false;
  if (!cs_session_open(s, err)) return false;
  r->window = (struct cs_window){&r->options->view, &s->recording, .every_ns = o->window_ns};
  s->window = o->window_ns != 0 ? &r->window : NULL;
  s->progress = s->progress && !o->children;  // several processes would each show a line
  s->timeline = cs_view_timeline(&o->view);
  s->scans.wanted = (ask->modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_ASYNC)) != 0;
  s->scans.run = cs_scans_run;
  s->scans.ask = (struct cs_scans_ask){ask->lines != 0, ask->labels != 0};
  // Of one process; and a budget does not cover what an observer costs.
  s->pool.wanted = (ask->modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_WALL)) != 0 && !o->children &&
                   ask->budget_ppm == 0;
  s->pool.run = cs_pool_scans_run;
  s->recording.lines = ask->lines;
  s->recording.sources = cs_view_sources(&r->options->view);
  s->recording.inlined = ask->inlined;
  s->recording.keep_samples = s->timeline || file != NULL;
  s->recording.meta = (struct cs_rec_meta){cs_recording_text(&s->recording, r->start.program),
                                           ask->modes, ask->hz, ask->event, ask->event_period};
  return true;
}

// A process that has claimed its memory may have ended already; what it recorded is there.
static bool begin_claimed(struct cs_record_run *r, const struct cs_consumer *claimed, bool ready,
                          struct cs_error *err) {
  pid_t pid = r->options->agent.pid;
  free(r->start.program);
  r->start.program = cs_proc_command_line(pid);
  if (r->start.program == NULL) r->start.program = strdup("(it has ended)");
  if (r->start.program == NULL) return cs_error_set(err, "out of memory");
  if (!ready && !cs_record_open(r, err)) return false;
  r->session.consumer = *claimed;
  r->session.consumer.shown = -1;  // the path is the next process's
  r->session.patience = 2;
  r->session.child_ended = !cs_session_attach(&r->session, pid, err);
  return true;
}

static bool begin_attached(struct cs_record_run *r, struct cs_error *err) {
  int exit_code;
  return cs_start_prepare(&r->start, err) && cs_record_open(r, err) &&
         cs_start_agent(&r->start, &exit_code, err);
}

int cs_record_process(struct cs_record_run *r, const struct cs_consumer *claimed, bool ready) {
  struct cs_error err = {""};
  bool begun = claimed != NULL ? begin_claimed(r, claimed, ready, &err) : begin_attached(r, &err);
  if (!begun) {
    cs_say("%s", err.text);
    return CS_EXIT_FAILURE;
  }
  cs_session_record(&r->session);
  return cs_record_conclude(r) ? 0 : CS_EXIT_FAILURE;
}
