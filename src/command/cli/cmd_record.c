// SPDX-License-Identifier: MIT
// `clrsnap record`: does everything that can fail before it starts the program. After that, it
// returns the program's exit code, except that 0 becomes 1 if there is no recording or an output is
// missing. For a process that was already running, the exit code says whether there is a recording.
// One thread. Signal-safe: no.
#include <string.h>

#include "base/path.h"
#include "cli/children.h"
#include "cli/verbs.h"
#include "util/say.h"

// Is it a command of the SDK, as in `dotnet run`? What it runs is another process. An argument that
// is a file or an option belongs to the runtime.
static bool is_of_sdk(char *const *program) {
  const char *verb = program[1];
  return strcmp(cs_file_of(program[0]), "dotnet") == 0 && verb != NULL &&
         strpbrk(verb, "./-") == NULL && strcmp(verb, "exec") != 0;
}

static int record_program(struct cs_record_run *r) {
  struct cs_error err = {""};
  int exit_code = CS_EXIT_FAILURE;
  if (!cs_start_prepare(&r->start, &err) || !cs_record_open(r, &err) ||
      (r->options->children && !cs_children_prepare(r, &err)) ||
      !cs_start_agent(&r->start, &exit_code, &err)) {
    cs_say("%s", err.text);
    return exit_code;
  }
  if (r->options->children) {
    cs_record_with_children(r);
  } else {
    cs_session_record(&r->session);
    (void)cs_record_conclude(r);
    if (is_of_sdk(r->options->agent.program))
      cs_say(
          "this is 'dotnet %s' itself; the processes that it starts are recorded with --children",
          r->options->agent.program[1]);
  }
  cs_session_wait(&r->session);
  exit_code = cs_session_exit_code(&r->session);
  return exit_code == 0 && r->missing ? CS_EXIT_FAILURE : exit_code;
}

int cs_run_record(void *options) {
  static struct cs_record_run r;  // its histogram is large for a stack
  r.options = options;
  r.start = (struct cs_start){.options = &r.options->agent, .session = &r.session};
  r.session.signals = -1;
  r.session.limit_ns = (uint64_t)(r.options->seconds * 1e9);
  if (r.options->one_mode)
    cs_say("lock mode is recorded without holders mode: an output shows one mode at a time");
  int exit_code = r.options->agent.pid == 0 ? record_program(&r)
                  : r.options->children     ? cs_record_children_of(&r)
                                            : cs_record_process(&r, NULL, false);
  if (r.given_away) return exit_code;
  cs_view_close(&r.options->view);
  cs_session_close(&r.session);
  cs_window_free(&r.window);
  cs_start_free(&r.start);
  return exit_code;
}
