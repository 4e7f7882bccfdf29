// SPDX-License-Identifier: MIT
// `clrsnap record`: what can fail without the program is tried before it starts; once it runs, its
// exit code is ours whatever becomes of the recording, but that 0 means that there is one. A
// program that ran before is asked to load the agent, and the exit code says whether there is a
// recording. One thread. Signal-safe: no.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "cli/children.h"
#include "cli/cli.h"
#include "process/attach.h"
#include "process/label_hook.h"
#include "process/launch.h"
#include "process/proc.h"
#include "recording/attach_agent.h"
#include "recording/hand_over.h"
#include "util/say.h"

static void fill_totals(struct cs_session *s) {
  struct cs_recording *rec = &s->recording;
  rec->totals = (struct cs_rec_totals){.recorded_ns = s->recorded_ns,
                                       .lost_ring = cs_consumer_lost(&s->consumer),
                                       .broken = s->consumer.broken_records};
  rec->finished = true;
}

// Of a recording without labels, why that is so.
static void explain_labels(const struct cs_record_run *r) {
  uint64_t labelled = 0;
  for (unsigned i = 0; i < CS_WIRE_MODES; i++) labelled += r->session.recording.sums[i].labelled;
  if (labelled > 0) return;
  if (cs_consumer_has_label_hooks(&r->session.consumer))
    cs_say("no labels: no sample was taken while an Activity was current");
  else
    cs_say(
        "no labels: the program did not run the startup hook that they need; is it built without "
        "startup hooks (System.StartupHookProvider.IsSupported)?");
}

// False: not all could be written, which has been said.
static bool write_result(struct cs_record_run *r) {
  struct cs_error err;
  struct cs_session *s = &r->session;
  const char *file = cs_view_recording(&r->options.view);
  fill_totals(s);
  cs_name_frames(&s->recording);
  bool written = file != NULL && cs_recfile_finish(&s->file, &s->recording, &err);
  r->options.view.modes = s->recording.meta.modes;
  bool all = cs_view_write(&r->options.view, &s->recording);
  if (r->options.labels) explain_labels(r);
  if (file != NULL && written) cs_say("wrote %s", file);
  if (file != NULL && !written) cs_say("%s", err.text);
  return all && (file == NULL || written);
}

static void explain_silence(const struct cs_record_run *r) {
  const char *off = getenv("DOTNET_EnableDiagnostics");
  if (r->options.pid != 0) {
    cs_say("nothing was recorded: process %d had not begun to record", (int)r->options.pid);
    return;
  }
  bool file = r->options.view.count > 0;
  cs_say("nothing was recorded: no .NET runtime in %s loaded the agent, so %s was %s",
         r->options.program[0], file ? r->options.view.outputs[0].path : "nothing",
         file ? "not written" : "pushed");
  if (off != NULL && strcmp(off, "0") == 0) {
    cs_say("  DOTNET_EnableDiagnostics=0 is set: it forbids profilers");
    return;
  }
  cs_say(
      "  that is so when it is not a .NET program, is compiled ahead of time to a native binary,");
  cs_say(
      "  clears its environment or names another profiler there, sets DOTNET_EnableDiagnostics=0 "
      "or "
      "DOTNET_EnableDiagnostics_Profiler=0,");
  cs_say("  ended before the runtime started, runs on a runtime older than .NET 5, or as another");
  cs_say("  user or in another PID namespace (then start it, and record it by its number)");
}

// With several processes, one has its say after the other. The lock goes with this process.
static void lock_summary(const struct cs_record_run *r) {
  char path[32];
  if (r->summary_lock == 0) return;
  (void)snprintf(path, sizeof path, "/proc/self/fd/%d", r->summary_lock);
  int own = open(path, O_RDWR | O_CLOEXEC);
  if (own >= 0) (void)flock(own, LOCK_EX);
  cs_say("process %d: %s", (int)r->options.pid, r->program);
}

// The agent's verdict decides whether there is anything to write.
bool cs_record_conclude(struct cs_record_run *r) {
  lock_summary(r);
  char message[256];
  switch (cs_consumer_agent_state(&r->session.consumer)) {
    case CS_WIRE_AGENT_REFUSED:
      cs_consumer_message(&r->session.consumer, message, sizeof message);
      cs_say("nothing was recorded: %s", message);
      r->nothing = true;
      return false;
    case CS_WIRE_AGENT_NONE:
      if (!r->session.recording.started) {
        explain_silence(r);
        r->nothing = true;
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
  const struct cs_record_options *o = &r->options;
  struct cs_session *s = &r->session;
  const char *file = cs_view_recording(&o->view);
  if (!cs_view_open(&r->options.view, err)) return false;
  if (file != NULL && !cs_recfile_open(&s->file, file, err)) return false;
  if (!cs_session_open(s, err)) return false;
  r->window = (struct cs_window){&r->options.view, &s->recording, .every_ns = o->window_ns};
  s->window = o->window_ns != 0 ? &r->window : NULL;
  s->progress = s->progress && !o->children;  // there would be several lines
  s->timeline = cs_view_timeline(&o->view);
  s->recording.lines = o->lines;
  s->recording.inlined = o->inlined;
  s->recording.keep_samples = s->timeline || file != NULL;
  s->recording.meta = (struct cs_rec_meta){cs_recording_text(&s->recording, r->program), o->modes,
                                           o->hz, o->event, o->event_period};
  return true;
}

struct cs_consumer_opts cs_record_ring(const struct cs_record_run *r) {
  const struct cs_record_options *o = &r->options;
  return (struct cs_consumer_opts){.capacity = o->buffer_bytes,
                                   .modes = o->modes,
                                   .hz = o->hz,
                                   .max_depth = o->depth,
                                   .lines = o->lines,
                                   .inlined = o->inlined,
                                   .async_callers = o->view.async_callers,
                                   .budget_ppm = o->budget_ppm,
                                   .event_rate = o->event_rate,
                                   .alloc_interval = o->alloc_interval,
                                   .walk_limit_us = o->walk_limit_us,
                                   .engine = o->engine,
                                   .kernel = o->kernel,
                                   .event = o->event,
                                   .event_period = o->event_period,
                                   .labels = o->labels};
}

// Everything that can fail without the program. False: *err says what.
static bool prepare(struct cs_record_run *r, struct cs_error *err) {
  const struct cs_record_options *o = &r->options;
  r->agent = cs_find_agent(err);
  r->program = o->pid != 0 ? cs_proc_command_line(o->pid) : cs_join_words(o->program);
  if (r->agent == NULL) return false;
  if (o->labels && (r->hook = cs_label_hook_find(r->agent, err)) == NULL) return false;
  if (r->program == NULL) return cs_error_set(err, "out of memory");
  return cs_record_open(r, err);
}

// The files that the process is to load are there for so long.
static bool load_agent(struct cs_record_run *r, struct cs_error *err) {
  pid_t pid = r->options.pid;
  struct cs_handed handed;
  struct cs_consumer_opts ring = cs_record_ring(r);
  bool good = cs_hand_over(pid, r->agent, r->hook, &r->session, &handed, err) &&
              cs_attach_agent(&r->session, handed.agent, &ring, err) &&
              (handed.hook == NULL || cs_label_hook_call(pid, handed.hook, err));
  cs_handed_free(&handed);
  return good;
}

static bool attach(struct cs_record_run *r, struct cs_error *err) {
  pid_t pid = r->options.pid;
  // Nothing is done before it is known to be a process that can be recorded.
  return cs_diag_find(pid, err) && (!r->options.inlined || cs_attach_check_inlined(pid, err)) &&
         cs_session_attach(&r->session, pid, err) && prepare(r, err) && load_agent(r, err);
}

static void clean_up(struct cs_record_run *r) {
  cs_view_close(&r->options.view);
  cs_session_close(&r->session);
  cs_window_free(&r->window);
  free(r->agent);
  free(r->hook);
  free(r->program);
}

int cs_record_attached(struct cs_record_run *r) {
  struct cs_error err = {""};
  if (!attach(r, &err)) {
    cs_say("%s", err.text);
    return CS_EXIT_FAILURE;
  }
  cs_session_record(&r->session);
  return cs_record_conclude(r) ? 0 : CS_EXIT_FAILURE;
}

static int run(struct cs_record_run *r) {
  struct cs_error err = {""};
  int exit_code = CS_EXIT_FAILURE;
  r->session.signals = -1;
  r->session.limit_ns = (uint64_t)(r->options.seconds * 1e9);
  if (r->options.pid != 0)
    return r->options.children ? cs_record_children_of(r) : cs_record_attached(r);
  struct cs_consumer_opts ring = cs_record_ring(r);
  if (!prepare(r, &err) || !cs_consumer_create(&r->session.consumer, &ring, &err)) {
    cs_say("%s", err.text);
    return exit_code;
  }
  if (r->options.children && !cs_children_prepare(r, &err)) {
    cs_say("%s", err.text);
    return exit_code;
  }
  if (r->options.inlined && setenv(CS_RICH_DEBUG_INFO, "1", 1) != 0) {
    cs_say("out of memory");
    return exit_code;
  }
  r->session.child = cs_launch(r->options.program, r->agent, r->hook, r->session.consumer.path,
                               &r->session.old_mask, &exit_code, &err);
  if (r->session.child == 0) {
    cs_say("%s", err.text);
    return exit_code;
  }
  if (r->options.children) {
    cs_record_with_children(r);
  } else {
    cs_session_record(&r->session);
    (void)cs_record_conclude(r);
  }
  cs_session_wait(&r->session);
  exit_code = cs_session_exit_code(&r->session);
  return exit_code == 0 && r->nothing ? CS_EXIT_FAILURE : exit_code;
}

int cs_cmd_record(int argc, char **argv) {
  static struct cs_record_run r;  // its histogram is large for a stack
  struct cs_error err;
  if (!cs_record_options_parse(&r.options, argc, argv, &err)) {
    cs_say("%s; 'clrsnap help record' lists the options", err.text);
    return CS_EXIT_USAGE;
  }
  if (r.options.help) {
    cs_record_print_help(stdout);
    return 0;
  }
  int exit_code = run(&r);
  if (!r.given_away) clean_up(&r);
  return exit_code;
}
