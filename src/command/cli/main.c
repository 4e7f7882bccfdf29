// SPDX-License-Identifier: MIT
// The command's verbs. One thread. Signal-safe: no.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

static int do_version(int argc, char **argv);
static int do_help(int argc, char **argv);

static const struct verb {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *help;
  bool has_options;  // and a --help that lists them
} verbs[] = {
    {"diff", cs_cmd_diff, "show what grew and what shrank between two recordings", true},
    {"doctor", cs_cmd_doctor, "try what works here, or with a process, and say why not", true},
    {"ps", cs_cmd_ps, "list the .NET processes that you can see", true},
    {"record", cs_cmd_record, "record where a program spends its time: a new one, or one that runs",
     true},
    {"report", cs_cmd_report, "make a flame graph or another format of a recording", true},
    {"run-profiler", cs_cmd_run_profiler, "run a profiler of somebody else's through clrsnap",
     true},
    {"stack", cs_cmd_stack, "print the stack of every thread of a process, once", true},
    {"top", cs_cmd_top, "watch where a program spends its time, live", true},
    {"version", do_version, "print the version", false},
    {"help", do_help, "print this text, or that of a verb", false},
};

static const struct verb *find_verb(const char *name) {
  for (size_t i = 0; i < CS_COUNT(verbs); i++) {
    if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
  }
  return NULL;
}

static void print_help(FILE *out) {
  cs_print(out, "usage: clrsnap VERB [options]\n\n");
  for (size_t i = 0; i < CS_COUNT(verbs); i++) {
    cs_print(out, "  %-13s %s\n", verbs[i].name, verbs[i].help);
  }
  cs_print(out, "\n'clrsnap help VERB' says more. See clrsnap(1).\n");
}

static int unknown_verb(const char *name) {
  cs_print(stderr, "clrsnap: unknown verb '%s'; 'clrsnap help' lists them\n", name);
  return CS_EXIT_USAGE;
}

static int do_version(int argc, char **argv) {
  (void)argc;
  (void)argv;
  cs_print(stdout, "clrsnap %s\n", CLRSNAP_VERSION);
  return 0;
}

static int do_help(int argc, char **argv) {
  if (argc < 2) {
    print_help(stdout);
    return 0;
  }
  const struct verb *verb = find_verb(argv[1]);
  if (verb == NULL) return unknown_verb(argv[1]);
  if (verb->has_options) {
    char *args[] = {argv[1], (char[]){"--help"}, NULL};
    return verb->run(2, args);
  }
  cs_print(stdout, "%s: %s\n", verb->name, verb->help);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return CS_EXIT_USAGE;
  }
  // A file that may not grow any more is an error of the write, like a full disk.
  (void)signal(SIGXFSZ, SIG_IGN);
  const char *name = argv[1];
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
  if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) name = "version";
  const struct verb *verb = find_verb(name);
  return verb != NULL ? verb->run(argc - 1, argv + 1) : unknown_verb(name);
}
