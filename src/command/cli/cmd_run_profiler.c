// SPDX-License-Identifier: MIT
// `clrsnap run-profiler`: sets the environment in which a program's runtime loads libclrsnap.so,
// which loads the other profiler; then this process becomes the program. Invariant: mistakes that
// can be found beforehand are reported, and the program is then not started. One thread.
// Signal-safe: no.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/verbs.h"
#include "guest/attach.h"
#include "guest/options.h"
#include "process/launch.h"
#include "process/profiler_env.h"
#include "util/say.h"

#define TAKEOVER_NAME "libclrsnap-takeover.so"

// ---- The command line ----

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

// ---- The environment ----

static bool put(const char *name, const char *value, struct cs_error *err) {
  return setenv(name, value, 1) == 0 || cs_error_set(err, "cannot set %s: %m", name);
}

static bool put_profiler(const struct cs_profiler_options *o, const char *library,
                         const char *profiler, struct cs_error *err) {
  if (!cs_demote_agent(err)) return false;
  char *other = cs_profiler_named(0, true, o->clsid_text);
  if (other != NULL)
    cs_say("the profiler %s in the environment is replaced by %s", other, profiler);
  free(other);
  return (cs_profiler_put(o->clsid_text, library) || cs_error_set(err, "out of memory")) &&
         put("CLRSNAP_PROFILER_PATH", profiler, err);
}

static bool is_in_list(const char *list, const char *path) {
  size_t length = strlen(path);
  for (const char *p = list; (p = strstr(p, path)) != NULL; p += length)
    if ((p == list || p[-1] == ':' || p[-1] == ' ') && strchr(": ", p[length]) != NULL) return true;
  return false;
}

// Other preloaded libraries stay in the list.
static bool put_takeover(const char *library, struct cs_error *err) {
  char *path = NULL, *list = NULL;
  const char *old = getenv("LD_PRELOAD");
  int folder = (int)(strrchr(library, '/') - library);
  if (asprintf(&path, "%.*s/" TAKEOVER_NAME, folder, library) < 0)
    return cs_error_set(err, "out of memory");
  bool good = true;
  if (strcmp(library + folder, "/libclrsnap.so") != 0 || access(path, R_OK) != 0) {
    good = cs_error_set(err,
                        TAKEOVER_NAME
                        " and libclrsnap.so are not side by side in %.*s; both "
                        "belong to clrsnap's installation",
                        folder, library);
  } else if (strpbrk(path, ": ") != NULL) {
    good = cs_error_set(err,
                        "%s: the loader cannot take a path with a blank or a colon "
                        "(LD_PRELOAD); install clrsnap elsewhere",
                        path);
  } else if (old == NULL || !is_in_list(old, path)) {
    bool more = old != NULL && old[0] != '\0';
    good = asprintf(&list, "%s%s%s", path, more ? ":" : "", more ? old : "") >= 0 &&
           put("LD_PRELOAD", list, err);
  }
  free(path);
  free(list);
  return good;
}

static bool put_switches(const struct cs_profiler_options *o, struct cs_error *err) {
  const char *names[4];
  for (const char **name = cs_profiler_switches(o, names); *name != NULL; name++)
    if (!put(*name, "1", err)) return false;
  return true;
}

// Returns only if it cannot become the program.
static int become(const struct cs_profiler_options *o, const char *library, const char *profiler,
                  struct cs_error *err) {
  if (!put_switches(o, err) || !put_takeover(library, err) ||
      (profiler != NULL && !put_profiler(o, library, profiler, err)))
    return CS_EXIT_FAILURE;
  (void)signal(SIGXFSZ, SIG_DFL);
  (void)execvp(o->program[0], o->program);
  return cs_exec_failed(o->program[0], errno, err);
}

static int attach(const struct cs_profiler_options *o, const char *library, const char *profiler,
                  struct cs_error *err) {
  if (!cs_profiler_attach(o, library, profiler, err)) return CS_EXIT_FAILURE;
  cs_say("process %d has loaded %s", (int)o->attach, profiler);
  return 0;
}

static int run(void *options) {
  const struct cs_profiler_options *o = options;
  struct cs_error err = {""};
  int exit_code = CS_EXIT_FAILURE;
  char *library = cs_find_agent(&err);
  char *profiler =
      library != NULL && o->profiler != NULL ? cs_profiler_file(o->profiler, &err) : NULL;
  if (library != NULL && (profiler != NULL || o->profiler == NULL))
    exit_code =
        o->attach != 0 ? attach(o, library, profiler, &err) : become(o, library, profiler, &err);
  if (err.text[0] != '\0') cs_say("%s", err.text);
  free(library);
  free(profiler);
  return exit_code;
}

const struct cs_command cs_run_profiler_command = {
    .name = "run-profiler",
    .summary = "run another vendor's profiler through clrsnap",
    .usage =
        "usage: clrsnap run-profiler [--profiler FILE --clsid GUID] [options] [--] program "
        "[arguments]\n"
        "       clrsnap run-profiler --attach PID --profiler FILE --clsid GUID [options]\n",
    .about =
        "Runs another vendor's CLR profiler, unchanged, through clrsnap: its DoStackSnapshot then "
        "works on any thread, and stops no other. If the program sets up a profiler for the "
        "programs that it starts, as a test host does, that profiler is run through clrsnap, too; "
        "this needs no --profiler.",
    .groups = groups,
    .examples =
        "  clrsnap run-profiler --profiler ./Their.so \\\n"
        "    --clsid '{12345678-9ABC-DEF0-1234-56789ABCDEF0}' -- dotnet app.dll\n"
        "  clrsnap run-profiler -- dotnet test --collect 'Code Coverage'\n"
        "  clrsnap run-profiler --attach 4711 --profiler ./Their.so \\\n"
        "    --clsid '{12345678-9ABC-DEF0-1234-56789ABCDEF0}'\n",
    .takes_program = true,
    .size = sizeof(struct cs_profiler_options),
    .check = check,
    .run = run};
