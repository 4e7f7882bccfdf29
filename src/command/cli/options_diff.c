// SPDX-License-Identifier: MIT
// The options of `clrsnap diff`. One thread. Signal-safe: no.
#include "cli/options_diff.h"

#include <stdio.h>
#include <string.h>

#include "base/print.h"
#include "cli/options.h"

static const char help[] =
    "usage: clrsnap diff [options] A B\n"
    "\n"
    "Compares two recordings (clrsnap record -o A.clrsnap): what grew from A, before, to B, "
    "after,\n"
    "and what shrank, in each mode that both have. Prints two tables of methods, by their own "
    "time,\n"
    "unless --output is given: a page has both in one flame graph, red where it grew and blue "
    "where\n"
    "it shrank, and all modes, to be switched.\n"
    "\n"
    "  -o, --output OUT         where to write; - is the standard output\n"
    "      --format FORMAT      what to write, if OUT's suffix does not tell (text)\n"
    "      --normalize total|rate|none\n"
    "                           shares of each recording's whole (total); per second of each\n"
    "                           recording; as recorded\n"
    "      --mode MODE          a page's first mode; of tables and stacks, the only one\n"
    "      --top N              how many methods a table has at most (20)\n"
    "      --native on|off      with native frames (on), or managed ones only\n"
    "      --signatures on|off  methods with their parameters, so that overloads are told apart "
    "(off)\n"
    "      --raw-names          as compilers made them, and every frame as it was on the stack\n"
    "  -h, --help               this text\n"
    "\n"
    "Formats, and the suffixes that tell them:\n"
    "  text        .txt               what grew and what shrank, as tables\n"
    "  html        .html              a page for the browser: flame graph in two colours\n"
    "  json        .json              for scripts: one call tree, with the numbers of both\n"
    "  collapsed   .collapsed         one line per stack, with its time before and after\n"
    "\n"
    "Examples:\n"
    "  clrsnap diff monday.clrsnap tuesday.clrsnap\n"
    "  clrsnap diff -o diff.html monday.clrsnap tuesday.clrsnap\n"
    "  clrsnap diff --normalize none --top 50 short.clrsnap long.clrsnap\n";

enum { OPT_NORMALIZE = 256, OPT_MODE };

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"format", required_argument, NULL, CS_OPT_FORMAT},
    {"native", required_argument, NULL, CS_OPT_NATIVE},
    {"signatures", required_argument, NULL, CS_OPT_SIGNATURES},
    {"raw-names", no_argument, NULL, CS_OPT_RAW_NAMES},
    {"top", required_argument, NULL, CS_OPT_TOP},
    {"normalize", required_argument, NULL, OPT_NORMALIZE},
    {"mode", required_argument, NULL, OPT_MODE},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

void cs_diff_print_help(FILE *out) {
  cs_print_help(out, help);
}

static bool parse_normalize(struct cs_diff_options *o, const char *arg, struct cs_error *err) {
  for (int i = CS_NORMALIZE_TOTAL; i <= CS_NORMALIZE_NONE; i++) {
    o->normalize = (enum cs_normalize)i;
    if (strcmp(cs_normalize_token(o->normalize), arg) == 0) return true;
  }
  return cs_error_set(err, "--normalize wants 'total', 'rate' or 'none', not '%s'", arg);
}

static bool apply(void *self, int opt, const char *arg, struct cs_error *err) {
  struct cs_diff_options *o = self;
  bool second = false;
  switch (opt) {
    case OPT_NORMALIZE:
      return parse_normalize(o, arg, err);
    case OPT_MODE:
      o->mode = cs_mode_by_name(arg, strlen(arg));
      return o->mode != 0 || cs_error_set(err, "--mode wants the name of a mode, not '%s'", arg);
    case CS_OPT_FORMAT:
      o->format = arg;
      return true;
    case CS_OPT_NATIVE:
      if (!cs_parse_word("--native", arg, "on", "off", &second, err)) return false;
      o->native = !second;
      return true;
    case CS_OPT_SIGNATURES:
      return cs_parse_word("--signatures", arg, "off", "on", &o->signatures, err);
    case CS_OPT_RAW_NAMES:
      return o->raw_names = true;
    case CS_OPT_TOP:
      return cs_parse_number("--top", arg, 1000000, &o->top, err);
    default:
      if (o->output != NULL) return cs_error_set(err, "one --output at a time: '%s'", arg);
      if (arg[0] == '\0') return cs_error_set(err, "--output wants a name");
      o->output = arg;
      return true;
  }
}

// The format by --format, by OUT's suffix, or text.
static bool settle(struct cs_diff_options *o, struct cs_error *err) {
  static const char *const known[] = {"text", "html", "json", "collapsed"};
  const char *name = o->format;
  if (name == NULL && o->output != NULL && strcmp(o->output, "-") != 0) {
    const struct cs_format *format = cs_format_by_path(o->output);
    if (format == NULL)
      return cs_error_set(err,
                          "a comparison's format is told by .txt, .html, .json, .collapsed, or by "
                          "--format: '%s' tells none",
                          o->output);
    name = format->name;
  }
  if (name == NULL) name = "text";
  for (size_t i = 0; i < CS_COUNT(known); i++) {
    o->as = (enum cs_diff_format)i;
    if (strcmp(known[i], name) == 0) return true;
  }
  return cs_error_set(err, "a comparison can be text, html, json or collapsed, not '%s'", name);
}

bool cs_diff_options_parse(struct cs_diff_options *o, int argc, char **argv, struct cs_error *err) {
  *o = (struct cs_diff_options){.native = true, .top = 20};
  const struct cs_option_set set = {":o:h", long_options, apply};
  if (!cs_parse_options(&set, o, argc, argv, &o->help, err)) return false;
  if (o->help) return true;
  if (argc - optind != 2)
    return cs_error_set(err, "two recordings are compared, not %d", argc - optind);
  o->before = argv[optind];
  o->after = argv[optind + 1];
  return settle(o, err);
}
