// SPDX-License-Identifier: MIT
// The options of `clrsnap run-profiler`. Invariant: what is accepted fits together: either a
// program is started or a process is attached to, and a profiler comes with its class. One thread.
// Signal-safe: no.
#include "cli/profiler_options.h"

#include <limits.h>
#include <stdlib.h>

#include "cli/options.h"

const char cs_run_profiler_help[] =
    "usage: clrsnap run-profiler [--profiler FILE --clsid GUID] [options] [--] program "
    "[arguments]\n"
    "       clrsnap run-profiler --attach PID --profiler FILE --clsid GUID [options]\n"
    "\n"
    "Runs a CLR profiler that somebody else built, unchanged, through clrsnap: its "
    "DoStackSnapshot\n"
    "then works on any thread, and stops nobody. Where a program below sets up a profiler for one\n"
    "that it starts itself, as a test host does, that profiler is run through clrsnap, too; this\n"
    "needs no --profiler.\n"
    "\n"
    "      --profiler FILE      the profiler's library\n"
    "      --clsid GUID         the profiler's class, as in CORECLR_PROFILER\n"
    "      --hold               a thread that is walked stands still until the last callback\n"
    "      --dynamic            methods without metadata are reported, too\n"
    "      --elide-suspend      SuspendRuntime and ResumeRuntime stop nobody; see the manual "
    "first\n"
    "      --attach PID         load it into a program that runs\n"
    "      --data FILE          with --attach: the profiler's own client data\n"
    "  -h, --help               this text\n"
    "\n"
    "examples:\n"
    "  clrsnap run-profiler --profiler ./Their.so \\\n"
    "    --clsid '{12345678-9ABC-DEF0-1234-56789ABCDEF0}' -- dotnet app.dll\n"
    "  clrsnap run-profiler -- dotnet test --collect 'Code Coverage'\n"
    "  clrsnap run-profiler --attach 4711 --profiler ./Their.so \\\n"
    "    --clsid '{12345678-9ABC-DEF0-1234-56789ABCDEF0}'\n";

enum { OPT_PROFILER = 256, OPT_CLSID, OPT_HOLD, OPT_DYNAMIC, OPT_ELIDE, OPT_ATTACH, OPT_DATA };

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"profiler", required_argument, NULL, OPT_PROFILER},
    {"clsid", required_argument, NULL, OPT_CLSID},
    {"hold", no_argument, NULL, OPT_HOLD},
    {"dynamic", no_argument, NULL, OPT_DYNAMIC},
    {"elide-suspend", no_argument, NULL, OPT_ELIDE},
    {"attach", required_argument, NULL, OPT_ATTACH},
    {"data", required_argument, NULL, OPT_DATA},
    {NULL, 0, NULL, 0},
};

static bool parse_pid(const char *text, pid_t *out, struct cs_error *err) {
  uint32_t pid;
  bool good = cs_read_number(text, INT32_MAX, &pid);
  *out = (pid_t)pid;
  return good || cs_error_set(err, "--attach wants the number of a process, not '%s'", text);
}

static bool apply(void *self, int opt, const char *arg, struct cs_error *err) {
  struct cs_profiler_options *o = self;
  switch (opt) {
    case OPT_PROFILER:
      o->profiler = arg;
      return arg[0] != '\0' || cs_error_set(err, "--profiler wants a name");
    case OPT_CLSID:
      return cs_clsid_parse(arg, &o->clsid, o->clsid_text, err);
    case OPT_ATTACH:
      return parse_pid(arg, &o->attach, err);
    case OPT_DATA:
      o->data = arg;
      return true;
    case OPT_HOLD:
      o->hold = true;
      return true;
    case OPT_DYNAMIC:
      o->dynamic = true;
      return true;
    default:
      o->elide_suspend = true;
      return true;
  }
}

static bool fits(const struct cs_profiler_options *o, struct cs_error *err) {
  bool has_class = o->clsid_text[0] != '\0', has_program = o->program[0] != NULL;
  if (o->profiler != NULL && !has_class)
    return cs_error_set(err, "--profiler wants its class, too: --clsid GUID");
  if (has_class && o->profiler == NULL)
    return cs_error_set(err, "--clsid wants the library, too: --profiler FILE");
  if (o->attach != 0 && o->profiler == NULL)
    return cs_error_set(err, "--attach wants --profiler FILE and --clsid GUID");
  if (o->attach != 0 && has_program)
    return cs_error_set(err, "--attach goes without a program, and there is '%s'", o->program[0]);
  if (o->attach == 0 && o->data != NULL) return cs_error_set(err, "--data goes with --attach only");
  return o->attach != 0 || has_program || cs_error_set(err, "no program to run");
}

bool cs_profiler_options_parse(struct cs_profiler_options *o, int argc, char **argv,
                               struct cs_error *err) {
  *o = (struct cs_profiler_options){0};
  // '+': the first word that is no option is the program; the rest is its own.
  const struct cs_option_set set = {"+:h", long_options, apply};
  if (!cs_parse_options(&set, o, argc, argv, &o->help, err)) return false;
  if (o->help) return true;
  o->program = argv + optind;
  return fits(o, err);
}

const char **cs_profiler_switches(const struct cs_profiler_options *o, const char *names[4]) {
  size_t n = 0;
  if (o->hold) names[n++] = "CLRSNAP_HOLD";
  if (o->dynamic) names[n++] = "CLRSNAP_DYNAMIC";
  if (o->elide_suspend) names[n++] = "CLRSNAP_ELIDE_SUSPEND";
  names[n] = NULL;
  return names;
}
