// SPDX-License-Identifier: MIT
// The command's verbs. One thread. Signal-safe: no.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "base/print.h"
#include "cli/verbs.h"
#include "util/say.h"
#include "util/spelling.h"

enum {
  MOST_VERBS = 8,
  LEAST_STACK = 512 << 10,  // twice what the longest chains of calls need
};

// By what they are for, in the order of the help.
static const struct group {
  const char *title;
  const struct cs_command *verbs[MOST_VERBS];  // up to NULL
} groups[] = {
    {"Record a program, and evaluate recordings",
     {&cs_record_command, &cs_report_command, &cs_diff_command}},
    {"Inspect a running program",
     {&cs_top_command, &cs_stack_command, &cs_async_command, &cs_perfmap_command}},
    {"Find processes, and find out what works", {&cs_ps_command, &cs_doctor_command}},
    {"For other profilers", {&cs_run_profiler_command}},
};

// Calls `visit` for each verb until it returns true.
static const struct cs_command *search(bool (*visit)(const struct cs_command *verb, void *data),
                                       void *data) {
  for (size_t i = 0; i < CS_COUNT(groups); i++)
    for (size_t k = 0; k < MOST_VERBS && groups[i].verbs[k] != NULL; k++)
      if (visit(groups[i].verbs[k], data)) return groups[i].verbs[k];
  return NULL;
}

static bool has_name(const struct cs_command *verb, void *name) {
  return strcmp(verb->name, name) == 0;
}

static const struct cs_command *find_verb(char *name) {
  return search(has_name, name);
}

static bool offer(const struct cs_command *verb, void *spelling) {
  cs_spelling_offer(spelling, verb->name, strlen(verb->name));
  return false;
}

static int unknown_verb(const char *name) {
  struct cs_error err;
  struct cs_spelling spelling = {.word = name};
  (void)search(offer, &spelling);
  (void)cs_error_set(&err, "unknown verb '%s'", name);
  (void)cs_spelling_suggest(&spelling, "", &err);
  cs_say("%s%s", err.text, spelling.found != NULL ? "" : "; 'clrsnap help' lists them");
  return CS_EXIT_USAGE;
}

static void print_help(FILE *out) {
  cs_print(out, "usage: clrsnap VERB [options]\n");
  for (size_t i = 0; i < CS_COUNT(groups); i++) {
    cs_print(out, "\n%s:\n", groups[i].title);
    for (size_t k = 0; k < MOST_VERBS && groups[i].verbs[k] != NULL; k++)
      cs_print(out, "  %-13s %s\n", groups[i].verbs[k]->name, groups[i].verbs[k]->summary);
  }
  cs_print(out, "\nAbout this command:\n");
  cs_print(out, "  version       print the version\n");
  cs_print(out, "  help          print this text, or that of a verb\n");
  cs_print(out, "\n'clrsnap help VERB' says more. See clrsnap(1).\n");
}

static int print_verb_help(char *name) {
  const struct cs_command *verb = find_verb(name);
  if (verb == NULL) return unknown_verb(name);
  cs_command_help(verb, stdout);
  return cs_say_if_lost(0);
}

static bool is(const char *word, const char *verb, const char *option, const char *letter) {
  return strcmp(word, verb) == 0 || strcmp(word, option) == 0 || strcmp(word, letter) == 0;
}

// A stack that may not grow ends the command without a word.
static bool has_room_for_stack(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= LEAST_STACK) return true;
  cs_say("the stack of this command may only grow to %llu KiB: raise ulimit -s to %d",
         (unsigned long long)limit.rlim_cur >> 10, LEAST_STACK >> 10);
  return false;
}

// Where standard input, output or error is closed, the next file that is opened would take its
// place, and get what is said. What takes it instead refuses to be read or written, and the
// programs that the command starts find it closed.
static void keep_standard_places(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0)
      (void)open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

int main(int argc, char **argv) {
  keep_standard_places();
  if (argc < 2) {
    print_help(stderr);
    return CS_EXIT_USAGE;
  }
  // A file that may not grow any more is a write error, like a full disk.
  (void)signal(SIGXFSZ, SIG_IGN);
  if (is(argv[1], "version", "--version", "-V")) {
    cs_print(stdout, "clrsnap %s\n", CLRSNAP_VERSION);
    return cs_say_if_lost(0);
  }
  if (is(argv[1], "help", "--help", "-h")) {
    if (argc > 2 && strcmp(argv[2], "version") != 0 && strcmp(argv[2], "help") != 0)
      return print_verb_help(argv[2]);
    print_help(stdout);
    return cs_say_if_lost(0);
  }
  if (!has_room_for_stack()) return CS_EXIT_FAILURE;
  const struct cs_command *verb = find_verb(argv[1]);
  return verb != NULL ? cs_command_main(verb, argc - 1, argv + 1) : unknown_verb(argv[1]);
}
