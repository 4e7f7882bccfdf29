// SPDX-License-Identifier: MIT
// `clrsnap record`: what can fail without the program is tried before it starts; once it runs, its
// exit code is ours whatever becomes of the recording. One thread. Signal-safe: no.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/resolve.h"
#include "cli/session.h"
#include "cli/summary.h"

struct record {
  struct cs_record_options options;
  struct cs_session session;
  struct cs_output output;
  char *agent;    // path of the library
  char *program;  // the command line, for people
};

static char *join_words(char **argv) {
  char *text = NULL;
  size_t len = 0;
  FILE *out = open_memstream(&text, &len);
  if (out == NULL) return NULL;
  for (size_t i = 0; argv[i] != NULL; i++) (void)fprintf(out, "%s%s", i > 0 ? " " : "", argv[i]);
  (void)fclose(out);
  return text;
}

struct content {
  const struct cs_profile *profile;
  enum cs_format format;
};

static bool write_content(void *context, FILE *file) {
  const struct content *c = context;
  return c->format == CS_FORMAT_HTML ? cs_write_html(c->profile, file)
                                     : cs_write_collapsed(c->profile, file);
}

static void fill_facts(struct record *r, struct cs_facts *f) {
  struct cs_session *s = &r->session;
  f->program = r->program;
  f->mode = r->options.mode == CS_WIRE_MODE_CPU ? "cpu" : "wall";
  f->hz = r->options.hz;
  f->duration_ns = s->recorded_ns > s->recording.last_ns ? s->recorded_ns : s->recording.last_ns;
  f->lost_broken += s->consumer.broken_records;
  // The END record has it too, but a target that was killed has only this one.
  f->lost_ring = cs_consumer_lost(&s->consumer);
}

static void write_result(struct record *r) {
  struct cs_profile profile;
  struct cs_error err;
  cs_profile_init(&profile);
  cs_resolve(&r->session.recording,
             &(struct cs_resolve_opts){r->options.native, r->options.signatures}, &profile);
  fill_facts(r, &profile.facts);
  struct content content = {&profile, r->options.format};
  bool written = cs_output_commit(&r->output, write_content, &content, &err);
  cs_print_summary(&profile.facts, stderr);
  if (r->options.top > 0) cs_write_top(&profile, r->options.top, "clrsnap: ", stderr);
  if (written) {
    cs_say("wrote %s", r->options.output);
  } else {
    cs_say("%s", err.text);
  }
  cs_profile_free(&profile);
}

static void explain_silence(const struct record *r) {
  const char *off = getenv("DOTNET_EnableDiagnostics");
  cs_say("nothing was recorded: no .NET runtime in %s loaded the agent, so %s was not written",
         r->options.program[0], r->options.output);
  if (off != NULL && strcmp(off, "0") == 0) {
    cs_say("  DOTNET_EnableDiagnostics=0 is set: it forbids profilers");
    return;
  }
  cs_say(
      "  that is so when it is not a .NET program, is compiled ahead of time to a native binary,");
  cs_say(
      "  clears its environment, sets DOTNET_EnableDiagnostics=0 or "
      "DOTNET_EnableDiagnostics_Profiler=0,");
  cs_say("  ended before the runtime started, or runs on a runtime older than .NET 5");
}

// The agent's verdict decides whether there is anything to write.
static void conclude(struct record *r) {
  char message[256];
  switch (cs_consumer_agent_state(&r->session.consumer)) {
    case CS_WIRE_AGENT_REFUSED:
      cs_consumer_message(&r->session.consumer, message, sizeof message);
      cs_say("nothing was recorded: %s", message);
      cs_output_abandon(&r->output);
      return;
    case CS_WIRE_AGENT_NONE:
      if (!r->session.recording.started) {
        explain_silence(r);
        cs_output_abandon(&r->output);
        return;
      }
      break;
    default:
      break;
  }
  write_result(r);
}

// Everything that can fail without the program. False: *err says what.
static bool prepare(struct record *r, struct cs_error *err) {
  const struct cs_record_options *o = &r->options;
  struct cs_consumer_opts ring = {o->buffer_bytes, o->mode, o->hz, o->depth, o->lines};
  r->agent = cs_find_agent(err);
  r->program = join_words(o->program);
  if (r->agent == NULL) return false;
  if (r->program == NULL) return cs_error_set(err, "out of memory");
  if (!cs_output_open(&r->output, o->output, err) || !cs_session_open(&r->session, err))
    return false;
  r->session.recording.lines = o->lines;
  return cs_consumer_create(&r->session.consumer, &ring, err);
}

static void clean_up(struct record *r) {
  cs_output_abandon(&r->output);
  cs_session_close(&r->session);
  free(r->agent);
  free(r->program);
}

static int run(struct record *r) {
  struct cs_error err = {""};
  int exit_code = CS_EXIT_FAILURE;
  r->session.signals = -1;
  r->session.limit_ns = (uint64_t)(r->options.seconds * 1e9);
  if (!prepare(r, &err)) {
    cs_say("%s", err.text);
    return exit_code;
  }
  r->session.child = cs_launch(r->options.program, r->agent, r->session.consumer.path,
                               &r->session.old_mask, &exit_code, &err);
  if (r->session.child == 0) {
    cs_say("%s", err.text);
    return exit_code;
  }
  cs_session_record(&r->session);
  conclude(r);
  cs_session_wait(&r->session);
  return cs_session_exit_code(&r->session);
}

int cs_cmd_record(int argc, char **argv) {
  static struct record r;  // its histogram is large for a stack
  struct cs_error err;
  if (!cs_record_options_parse(&r.options, argc, argv, &err)) {
    cs_say("%s; 'clrsnap help record' lists the options", err.text);
    return CS_EXIT_USAGE;
  }
  if (r.options.help) {
    (void)fputs(cs_record_help, stdout);
    return 0;
  }
  int exit_code = run(&r);
  clean_up(&r);
  return exit_code;
}
