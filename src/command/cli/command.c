// SPDX-License-Identifier: MIT
// Command lines. Invariant: a value that is accepted has been checked to its last character and
// against its limits. One thread. Signal-safe: no.
#include "cli/command.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/perf.h"
#include "base/prefix.h"
#include "base/print.h"
#include "cli/process_name.h"
#include "formats/format.h"
#include "profile/mode.h"
#include "util/say.h"
#include "util/spelling.h"

enum {
  MOST_OPTIONS = 64,
  FIRST_OPTION = 256,  // getopt's number of the first one
  ABOUT_COLUMN = 27,
  WIDTH = 80
};

// ---- Values ----

bool cs_parse_number(const char *name, const char *text, uint32_t most, uint32_t *out,
                     struct cs_error *err) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < 1 || value > most)
    return cs_error_set(err, "%s takes a whole number from 1 to %u, not '%s'", name, most, text);
  *out = (uint32_t)value;
  return true;
}

static bool is_number(const char *word) {
  return word[0] != '\0' && strspn(word, "0123456789") == strlen(word);
}

// What cannot be started is a name, if a process has it.
static bool is_process_name(const char *word) {
  return !cs_is_program(word) && cs_is_process(word);
}

bool cs_parse_pid(const char *name, const char *text, pid_t *out, struct cs_error *err) {
  uint32_t pid = 0;
  bool may_be_name = text[0] != '\0' && !is_number(text + (text[0] == '-'));
  if (may_be_name) return cs_find_process(text, out, err);
  if (!cs_parse_number(name, text, INT32_MAX, &pid, NULL))
    return cs_error_set(err, "%s takes the number or the name of a process, not '%s'", name, text);
  *out = (pid_t)pid;
  return true;
}

bool cs_parse_only_pid(const char *verb, int count, char **operands, pid_t *out,
                       struct cs_error *err) {
  if (count != 1) return cs_error_set(err, "%s takes one process, by its number or name", verb);
  return cs_parse_pid(verb, operands[0], out, err);
}

bool cs_parse_target(int count, char **operands, pid_t *pid, char ***program,
                     struct cs_error *err) {
  bool may_be_process = count == 1 && *pid == 0 && strcmp(operands[-1], "--") != 0;
  if (may_be_process && (is_number(operands[0]) || is_process_name(operands[0])))
    return cs_parse_pid("PID", operands[0], pid, err);
  if (*pid != 0 && count > 0)
    return cs_error_set(err, "either a process or a program can be recorded, not both");
  if (*pid == 0 && count == 0) return cs_error_set(err, "no program to record, and no process");
  if (*pid == 0 && !cs_is_program(operands[0]) && cs_suggest_process(operands[0], err))
    return false;
  if (*pid == 0) *program = operands;
  return true;
}

static const char *full_name(const struct cs_option *option, char name[32]) {
  (void)snprintf(name, 32, "--%s", option->name);
  return name;
}

bool cs_set_number(const struct cs_option *option, void *field, const char *value,
                   struct cs_error *err) {
  char name[32];
  return cs_parse_number(full_name(option, name), value, (uint32_t)option->most, field, err);
}

bool cs_set_pid(const struct cs_option *option, void *field, const char *value,
                struct cs_error *err) {
  char name[32];
  return cs_parse_pid(full_name(option, name), value, field, err);
}

bool cs_parse_time(const char *text, double *seconds) {
  static const struct {
    const char *name;
    double seconds;
  } units[] = {{"", 1}, {"s", 1}, {"ms", 0.001}, {"m", 60}, {"h", 3600}};
  char *end;
  double number = strtod(text, &end);
  for (size_t i = 0; end != text && i < CS_COUNT(units); i++) {
    if (strcmp(end, units[i].name) != 0) continue;
    *seconds = number * units[i].seconds;
    return isfinite(number);
  }
  return false;
}

bool cs_set_seconds(const struct cs_option *option, void *field, const char *value,
                    struct cs_error *err) {
  double seconds;
  if (!cs_parse_time(value, &seconds) || !(seconds >= option->least && seconds <= option->most))
    return cs_error_set(err,
                        "--%s takes a time like 10s, 500ms or 2m, %g to %.0f seconds, not '%s'",
                        option->name, option->least, option->most, value);
  *(double *)field = seconds;
  return true;
}

// "a|b|c" as "'a', 'b' or 'c'".
static bool refuse_word(const struct cs_option *option, const char *value, struct cs_error *err) {
  char words[160] = "";
  size_t used = 0;
  struct cs_spelling spelling = {.word = value};
  for (const char *word = option->value; *word != '\0';) {
    size_t length = strcspn(word, "|");
    const char *before = used == 0 ? "" : word[length] == '\0' ? " or " : ", ";
    int n = snprintf(words + used, sizeof words - used, "%s'%.*s'", before, (int)length, word);
    used += (size_t)n;
    cs_spelling_offer(&spelling, word, length);
    word += length + (word[length] == '|');
  }
  (void)cs_error_set(err, "--%s takes %s, not '%s'", option->name, words, value);
  return cs_spelling_suggest(&spelling, "", err);
}

bool cs_find_word(const char *words, const char *value, unsigned *index) {
  *index = 0;
  for (const char *word = words; *word != '\0'; ++*index) {
    size_t length = strcspn(word, "|");
    if (strlen(value) == length && memcmp(word, value, length) == 0) return true;
    word += length + (word[length] == '|');
  }
  return false;
}

bool cs_set_word(const struct cs_option *option, void *field, const char *value,
                 struct cs_error *err) {
  unsigned index;
  if (!cs_find_word(option->value, value, &index)) return refuse_word(option, value, err);
  *(unsigned *)field = (unsigned)option->least + index;
  return true;
}

bool cs_set_on_off(const struct cs_option *option, void *field, const char *value,
                   struct cs_error *err) {
  unsigned index;
  if (!cs_find_word(option->value, value, &index)) return refuse_word(option, value, err);
  *(bool *)field = index == 0;
  return true;
}

// ---- Parsing ----

// The options of a command as getopt_long takes them, and where each one is.
struct parser {
  struct option options[MOST_OPTIONS + 2];
  char letters[2 * MOST_OPTIONS + 4];
  const struct cs_option *entries[MOST_OPTIONS];
  size_t offsets[MOST_OPTIONS];
  size_t count;
};

static bool prepare(struct parser *p, const struct cs_command *command, struct cs_error *err) {
  char *letter = p->letters;
  if (command->takes_program) *letter++ = '+';
  *letter++ = ':';
  *letter++ = 'h';
  for (const struct cs_option_group *group = command->groups; group->options != NULL; group++) {
    for (const struct cs_option *o = group->options; o->name != NULL; o++) {
      if (p->count == MOST_OPTIONS)
        return cs_error_set(err, "%s has more than %d options", command->name, MOST_OPTIONS);
      p->options[p->count] =
          (struct option){o->name, o->value != NULL ? required_argument : no_argument, NULL,
                          FIRST_OPTION + (int)p->count};
      p->entries[p->count] = o;
      p->offsets[p->count++] = group->offset + o->field;
      if (o->letter != 0) *letter++ = o->letter;
      if (o->letter != 0 && o->value != NULL) *letter++ = ':';
    }
  }
  p->options[p->count] = (struct option){"help", no_argument, NULL, 'h'};
  return true;
}

// Returns the entry of what getopt_long has returned or refused, or p->count if there is none.
static size_t find_entry(const struct parser *p, int opt) {
  size_t i = opt >= FIRST_OPTION ? (size_t)(opt - FIRST_OPTION) : 0;
  while (opt < FIRST_OPTION && i < p->count && p->entries[i]->letter != opt) i++;
  return i;
}

static bool refuse_unknown(const struct parser *p, const char *word, struct cs_error *err) {
  struct cs_spelling spelling = {.word = word + strspn(word, "-")};
  spelling.len = strcspn(spelling.word, "=");
  for (size_t i = 0; i < p->count; i++)
    cs_spelling_offer(&spelling, p->entries[i]->name, strlen(p->entries[i]->name));
  (void)cs_error_set(err, "unknown option '%s'", word);
  return cs_spelling_suggest(&spelling, "--", err);
}

// getopt_long has just refused an option: a long one is argv[optind - 1], a letter is in optopt.
static bool refuse(const struct parser *p, int opt, char **argv, struct cs_error *err) {
  const char *word = argv[optind - 1], *next = argv[optind];
  bool takes_value = opt == ':';
  if (optopt == 0) return refuse_unknown(p, word, err);
  if (optopt >= FIRST_OPTION && takes_value)
    return cs_error_set(err, "option '%s' takes a value", word);
  if (optopt >= FIRST_OPTION)  // "--lines=3"
    return cs_error_set(err, "option '--%s' takes no value",
                        p->entries[find_entry(p, optopt)]->name);
  if (optopt == 'h') return cs_error_set(err, "option '--help' takes no value");
  if (optopt < 0)  // a byte of a letter that is not ASCII: most have more of them in their word
    return cs_error_set(err, "unknown option '%s'",
                        next != NULL && strchr(next, optopt) != NULL ? next : word);
  return cs_error_set(err, takes_value ? "option '-%c' takes a value" : "unknown option '-%c'",
                      optopt);
}

static bool apply(const struct cs_option *o, void *field, const char *value, struct cs_error *err) {
  if (o->set != NULL) return o->set(o, field, value, err);
  if (o->value == NULL)
    *(bool *)field = true;
  else
    *(const char **)field = value;
  return true;
}

// If a verb takes a program, its options end at the program's name. A process that options
// follow is not a program.
static bool is_process_before_options(const struct cs_command *command, int argc, char **argv) {
  if (!command->takes_program || optind + 1 >= argc || strcmp(argv[optind - 1], "--") == 0)
    return false;
  const char *word = argv[optind], *next = argv[optind + 1];
  return next[0] == '-' && next[1] != '\0' && strcmp(next, "--") != 0 &&
         (is_number(word) || is_process_name(word));
}

bool cs_command_parse(const struct cs_command *command, void *options, int argc, char **argv,
                      bool *help, struct cs_error *err) {
  struct parser p = {0};
  int opt;
  if (!prepare(&p, command, err)) return false;
  memset(options, 0, command->size);
  if (command->defaults != NULL) memcpy(options, command->defaults, command->size);
  *help = false;
  optind = 0;
  opterr = 0;
  char *process = NULL;
  for (;;) {
    opt = getopt_long(argc, argv, p.letters, p.options, NULL);
    if (opt == -1 && process == NULL && is_process_before_options(command, argc, argv)) {
      process = argv[optind++];
      continue;
    }
    if (opt == -1) break;
    if (opt == 'h') return *help = true;
    if (opt == '?' || opt == ':') return refuse(&p, opt, argv, err);
    size_t i = find_entry(&p, opt);
    if (!apply(p.entries[i], (char *)options + p.offsets[i], optarg, err)) return false;
  }
  if (process != NULL && optind < argc)
    return cs_error_set(err, "either a process or a program can be recorded, not both");
  if (process != NULL) argv[--optind] = process;
  return command->check(options, argc - optind, argv + optind, err);
}

// ---- Help ----

// `column`: where the line is, and where the next ones begin.
static void print_wrapped(FILE *out, const char *text, int column) {
  int at = column;
  while (*text != '\0') {
    int length = (int)strcspn(text, " \n");
    if (at > column && at + 1 + length > WIDTH) {
      cs_print(out, "\n%*s", column, "");
      at = column;
    } else if (at > column) {
      cs_print(out, " ");
      at++;
    }
    cs_print(out, "%.*s", length, text);
    at += length;
    text += length;
    if (*text == '\n') {
      cs_print(out, "\n%*s", text[1] != '\0' ? column : 0, "");
      at = column;
    }
    text += *text != '\0';
  }
  cs_print(out, "\n");
}

static void print_option(FILE *out, const struct cs_option *o) {
  const char *value = o->value != NULL ? o->value : "", *blank = o->value != NULL ? " " : "";
  int at = 8 + (int)(strlen(o->name) + strlen(blank) + strlen(value));
  if (o->letter != 0)
    cs_print(out, "  -%c, ", o->letter);
  else
    cs_print(out, "      ");
  cs_print(out, "--%s%s%s", o->name, blank, value);
  if (at + 2 > ABOUT_COLUMN)
    cs_print(out, "\n%*s", ABOUT_COLUMN, "");
  else
    cs_print(out, "%*s", ABOUT_COLUMN - at, "");
  print_wrapped(out, o->about, ABOUT_COLUMN);
}

static void print_formats(FILE *out) {
  size_t count;
  const struct cs_format *formats = cs_formats(&count);
  cs_print(out, "\nFormats, and the suffixes that choose them:\n");
  for (size_t i = 0; i < count; i++)
    cs_print(out, "  %-12s%-18s %s\n", formats[i].name, formats[i].suffixes[0], formats[i].about);
}

// Returns whether an option's value is called that, such as "MODE" of "MODE[,MODE]".
static bool takes(const struct cs_command *command, const char *value) {
  for (const struct cs_option_group *group = command->groups; group->options != NULL; group++)
    for (const struct cs_option *o = group->options; o->name != NULL; o++)
      if (o->value != NULL && cs_has_prefix(o->value, value)) return true;
  return false;
}

static void print_modes(FILE *out) {
  cs_print(out, "\nModes:\n");
  for (unsigned i = CS_WIRE_MODE_CPU; i < CS_WIRE_MODES; i++) {
    const struct cs_mode *mode = cs_mode((enum cs_wire_mode)i);
    cs_print(out, "  %-12s%s\n", mode->token, mode->about);
  }
}

static void print_events(FILE *out) {
  cs_print(out, "\nEvents, and how many of them a sample stands for if N is not given:\n");
  for (uint32_t i = 1; i < CS_PERF_KINDS; i++)
    cs_print(out, "  %-24s %u\n", cs_perf_kind(i)->name, (unsigned)cs_perf_kind(i)->period);
}

void cs_command_help(const struct cs_command *command, FILE *out) {
  static const struct cs_option help = {'h', "help", NULL, "print this text", .set = NULL};
  cs_print_help(out, command->usage);
  cs_print(out, "\n");
  print_wrapped(out, command->about, 0);
  for (const struct cs_option_group *group = command->groups; group->options != NULL; group++) {
    if (group->title != NULL || group == command->groups) cs_print(out, "\n");
    if (group->title != NULL) cs_print(out, "%s:\n", group->title);
    for (const struct cs_option *o = group->options; o->name != NULL; o++) print_option(out, o);
  }
  print_option(out, &help);
  if (takes(command, "MODE")) print_modes(out);
  if (takes(command, "EVENT")) print_events(out);
  if (command->shows_formats) print_formats(out);
  if (command->notes != NULL) cs_print_help(out, command->notes);
  cs_print(out, "\nExamples:\n");
  cs_print_help(out, command->examples);
}

// ---- A verb ----

int cs_command_main(const struct cs_command *command, int argc, char **argv) {
  static void *options;  // what it refers to is needed to the end of the process
  struct cs_error err = {""};
  bool help = false;
  options = calloc(1, command->size);
  if (options == NULL) {
    cs_say("out of memory");
    return CS_EXIT_FAILURE;
  }
  if (!cs_command_parse(command, options, argc, argv, &help, &err)) {
    bool asks = err.text[0] != '\0' && err.text[strlen(err.text) - 1] == '?';
    cs_say("%s%s 'clrsnap help %s' lists the options", err.text, asks ? "" : ";", command->name);
    return CS_EXIT_USAGE;
  }
  if (!help) return command->run(options);
  cs_command_help(command, stdout);
  return cs_say_if_lost(0);
}
