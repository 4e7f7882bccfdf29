// SPDX-License-Identifier: MIT
// The options of `clrsnap run-profiler`. Invariant: what is accepted fits together: either a
// program is started or a process is attached to, and a profiler comes with its class. One thread.
// Signal-safe: no.
#include "cli/profiler_options.h"

#include "cli/verbs.h"

static bool set_profiler(const struct cs_option *option, void *field, const char *value,
                         struct cs_error *err) {
  *(const char **)field = value;
  return value[0] != '\0' || cs_error_set(err, "--%s takes a name", option->name);
}

static bool set_class(const struct cs_option *option, void *options, const char *value,
                      struct cs_error *err) {
  struct cs_profiler_options *o = options;
  (void)option;
  return cs_clsid_parse(value, &o->clsid, o->clsid_text, err);
}

#define FIELD(member) .field = offsetof(struct cs_profiler_options, member)
static const struct cs_option table[] = {
    {0, "profiler", "FILE", "the profiler's library", set_profiler, FIELD(profiler)},
    {0, "clsid", "GUID", "the profiler's class, as in CORECLR_PROFILER", set_class, .field = 0},
    {0, "hold", NULL, "keep a thread that is walked stopped until the last callback", NULL,
     FIELD(hold)},
    {0, "dynamic", NULL, "report methods without metadata, too", NULL, FIELD(dynamic)},
    {0, "elide-suspend", NULL,
     "SuspendRuntime and ResumeRuntime stop no thread; see the manual first", NULL,
     FIELD(elide_suspend)},
    {0, "attach", "PID", "load it into a program that is already running", cs_set_pid,
     FIELD(attach)},
    {0, "data", "FILE", "with --attach: the profiler's own client data", NULL, FIELD(data)},
    {0}};
static const struct cs_option_group groups[] = {{NULL, table, 0}, {0}};

static bool check(void *options, int count, char **operands, struct cs_error *err) {
  struct cs_profiler_options *o = options;
  o->program = operands;
  (void)count;
  bool has_class = o->clsid_text[0] != '\0', has_program = o->program[0] != NULL;
  if (o->profiler != NULL && !has_class)
    return cs_error_set(err, "--profiler needs its class, too: --clsid GUID");
  if (has_class && o->profiler == NULL)
    return cs_error_set(err, "--clsid needs the library, too: --profiler FILE");
  if (o->attach != 0 && o->profiler == NULL)
    return cs_error_set(err, "--attach needs --profiler FILE and --clsid GUID");
  if (o->attach != 0 && has_program)
    return cs_error_set(err, "--attach takes no program, and there is '%s'", o->program[0]);
  if (o->attach == 0 && o->data != NULL) return cs_error_set(err, "--data needs --attach");
  return o->attach != 0 || has_program || cs_error_set(err, "no program to run");
}

const char **cs_profiler_switches(const struct cs_profiler_options *o, const char *names[4]) {
  size_t n = 0;
  if (o->hold) names[n++] = "CLRSNAP_HOLD";
  if (o->dynamic) names[n++] = "CLRSNAP_DYNAMIC";
  if (o->elide_suspend) names[n++] = "CLRSNAP_ELIDE_SUSPEND";
  names[n] = NULL;
  return names;
}

const struct cs_command cs_run_profiler_command = {
    .name = "run-profiler",
    .summary = "run another vendor's profiler through clrsnap",
    .usage =
        "usage: clrsnap run-profiler [--profiler FILE --clsid GUID] [options] [--] program "
        "[arguments]\n"
        "       clrsnap run-profiler --attach PID --profiler FILE --clsid GUID [options]\n",
    .about =
        "Runs a CLR profiler that somebody else built, unchanged, through clrsnap: its "
        "DoStackSnapshot then works on any thread, and stops no other. Where a program below sets "
        "up a profiler for one that it starts, as a test host does, that profiler is run through "
        "clrsnap, too; this needs no --profiler.",
    .groups = groups,
    .notes =
        "\n"
        "Examples:\n"
        "  clrsnap run-profiler --profiler ./Their.so \\\n"
        "    --clsid '{12345678-9ABC-DEF0-1234-56789ABCDEF0}' -- dotnet app.dll\n"
        "  clrsnap run-profiler -- dotnet test --collect 'Code Coverage'\n"
        "  clrsnap run-profiler --attach 4711 --profiler ./Their.so \\\n"
        "    --clsid '{12345678-9ABC-DEF0-1234-56789ABCDEF0}'\n",
    .takes_program = true,
    .size = sizeof(struct cs_profiler_options),
    .check = check,
    .run = cs_run_profiler};
