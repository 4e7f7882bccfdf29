// SPDX-License-Identifier: MIT
// The command's verbs. One thread. Signal-safe: no.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/print.h"
#include "cli/verbs.h"

static const struct cs_command *const verbs[] = {
    &cs_async_command,        &cs_diff_command,   &cs_doctor_command,
    &cs_ps_command,           &cs_record_command, &cs_report_command,
    &cs_run_profiler_command, &cs_stack_command,  &cs_top_command};

static const struct cs_command *find_verb(const char *name) {
  for (size_t i = 0; i < CS_COUNT(verbs); i++)
    if (strcmp(verbs[i]->name, name) == 0) return verbs[i];
  return NULL;
}

static int unknown_verb(const char *name) {
  cs_print(stderr, "clrsnap: unknown verb '%s'; 'clrsnap help' lists them\n", name);
  return CS_EXIT_USAGE;
}

static void print_help(FILE *out) {
  cs_print(out, "usage: clrsnap VERB [options]\n\n");
  for (size_t i = 0; i < CS_COUNT(verbs); i++)
    cs_print(out, "  %-13s %s\n", verbs[i]->name, verbs[i]->summary);
  cs_print(out, "  version       print the version\n");
  cs_print(out, "  help          print this text, or that of a verb\n");
  cs_print(out, "\n'clrsnap help VERB' says more. See clrsnap(1).\n");
}

static int print_verb_help(const char *name) {
  const struct cs_command *verb = find_verb(name);
  if (verb == NULL) return unknown_verb(name);
  cs_command_help(verb, stdout);
  return 0;
}

static bool is(const char *word, const char *verb, const char *option, const char *letter) {
  return strcmp(word, verb) == 0 || strcmp(word, option) == 0 || strcmp(word, letter) == 0;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return CS_EXIT_USAGE;
  }
  // A file that may not grow any more is a write error, like a full disk.
  (void)signal(SIGXFSZ, SIG_IGN);
  if (is(argv[1], "version", "--version", "-V")) {
    cs_print(stdout, "clrsnap %s\n", CLRSNAP_VERSION);
    return 0;
  }
  if (is(argv[1], "help", "--help", "-h")) {
    if (argc > 2 && strcmp(argv[2], "version") != 0 && strcmp(argv[2], "help") != 0)
      return print_verb_help(argv[2]);
    print_help(stdout);
    return 0;
  }
  const struct cs_command *verb = find_verb(argv[1]);
  return verb != NULL ? cs_command_main(verb, argc - 1, argv + 1) : unknown_verb(argv[1]);
}
