// SPDX-License-Identifier: MIT
// A verb as a table. Its options are parsed by it and its help is printed from it, and the shells'
// completion reads that help: an option is written down once.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

#define CS_EXIT_FAILURE 1
#define CS_EXIT_USAGE 2

struct cs_option {
  char letter;        // 0: it has a name only
  const char *name;   // without the dashes
  const char *value;  // what the help calls its value, or the words to choose from: "on|off"
                      // NULL: it takes no value
  const char *about;
  // Stores the value in `field`, or explains in *err why not. NULL: `field` is a bool that becomes
  // true, or, for an option with a value, a text that is stored as it is.
  bool (*set)(const struct cs_option *option, void *field, const char *value, struct cs_error *err);
  size_t field;        // its offset in the struct that the group's options fill in
  double least, most;  // of a number; least: what the first of several words stands for
};

struct cs_option_group {
  const char *title;                // NULL: no heading
  const struct cs_option *options;  // up to one without a name
  size_t offset;  // in the verb's struct, of the struct that these options fill in
};

struct cs_command {
  const char *name, *summary;
  const char *usage;                     // the command lines, as they are
  const char *about;                     // paragraphs, which are wrapped
  const struct cs_option_group *groups;  // up to one without options; NULL: there are none
  const char *notes;                     // after the options, as they are; NULL: none
  const char *examples;                  // command lines, as they are
  bool shows_formats;                    // the table of output formats follows the options
  bool takes_program;    // the first word that is not an option begins a program's command line
  size_t size;           // of the verb's struct of options
  const void *defaults;  // such a struct; NULL: all zero
  // Takes the operands, and checks that all that was given fits together. operands[-1] is the word
  // before them.
  bool (*check)(void *options, int count, char **operands, struct cs_error *err);
  int (*run)(void *options);  // returns the exit code
};

// Fills in `options`. *help: -h was given, and nothing after it was looked at. Returns false, with
// the reason in *err.
bool cs_command_parse(const struct cs_command *command, void *options, int argc, char **argv,
                      bool *help, struct cs_error *err);
void cs_command_help(const struct cs_command *command, FILE *out);
// Parses argv, where argv[0] is the verb, and runs the verb. Returns the exit code.
int cs_command_main(const struct cs_command *command, int argc, char **argv);

// ---- Setters; for each, the type of its field ----
bool cs_set_on_off(const struct cs_option *option, void *field, const char *value,
                   struct cs_error *err);  // bool
bool cs_set_word(const struct cs_option *option, void *field, const char *value,
                 struct cs_error *err);  // an enum, or another unsigned int
bool cs_set_number(const struct cs_option *option, void *field, const char *value,
                   struct cs_error *err);  // uint32_t; whole, from 1 to option->most
// A double, in seconds, from option->least to option->most.
bool cs_set_seconds(const struct cs_option *option, void *field, const char *value,
                    struct cs_error *err);
bool cs_set_pid(const struct cs_option *option, void *field, const char *value,
                struct cs_error *err);  // pid_t

// "500ms", "10s", "2m", "1h"; without a unit, seconds. Returns false if it is none of these.
bool cs_parse_time(const char *text, double *seconds);
// Where `value` is among words like "on|off". Returns false if it is none of them.
bool cs_find_word(const char *words, const char *value, unsigned *index);
bool cs_parse_number(const char *name, const char *text, uint32_t most, uint32_t *out,
                     struct cs_error *err);
bool cs_parse_pid(const char *name, const char *text, pid_t *out, struct cs_error *err);
// The operands of a verb that takes one process and nothing else.
bool cs_parse_only_pid(const char *verb, int count, char **operands, pid_t *out,
                       struct cs_error *err);
// The operands are a program's command line or nothing but a number, which is a process unless "--"
// stands before it. *pid may have been given by an option; otherwise it is 0.
bool cs_parse_target(int count, char **operands, pid_t *pid, char ***program, struct cs_error *err);
