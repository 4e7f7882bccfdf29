// SPDX-License-Identifier: MIT
// The options of `clrsnap report`. One thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "cli/options.h"

static const char help[] =
    "usage: clrsnap report [options] FILE\n"
    "\n"
    "Makes a flame graph or another format of a recording (clrsnap record -o FILE.clrsnap). A\n"
    "recording that is still growing, or whose recorder was killed, is shown as far as it goes.\n"
    "\n"
    "  -o, --output OUT         where to write (FILE's name with another suffix); - is the "
    "standard\n"
    "                           output; several may be given\n"
    "      --format FORMAT      what to write, if OUT's suffix does not tell (standard output: "
    "text;\n"
    "                           without --output: html)\n"
    "      --mode MODE[,MODE]   only these of the modes that were recorded (all)\n"
    "      --trace ID[:SPAN]    only samples with this label: a trace, or one of its spans\n"
    "      --native on|off      with native frames (on), or managed ones only\n"
    "      --signatures on|off  methods with their parameters, so that overloads are told apart "
    "(off)\n"
    "      --raw-names          names as compilers made them: <LoadAsync>d__4.MoveNext\n"
    "      --async-callers on|off  a resumed async method below those that await it (on), or "
    "what\n"
    "                           resumed it: the stack as it was\n"
    "      --by-trace           stacks below a frame of their trace, where they have a label\n"
    "      --threads WHICH      grouped: those of one name as one (the thread pool's); or each\n"
    "                           (grouped; where samples are shown over time, and in pprof: each)\n"
    "      --no-lines           whole methods, though lines were recorded\n"
    "      --top N              print the N hottest methods; with neither --output nor --format,\n"
    "                           nothing is written\n"
    "      --push URL           send it to otlp+http://HOST:4318 or pyroscope+http://HOST:4040 "
    "(or\n"
    "                           https); with neither --output nor --format, nothing is written\n"
    "      --push-header LINE   an HTTP header for --push, 'NAME: VALUE'; several may be given\n"
    "      --service NAME       the service's name for --push (that of the assembly)\n"
    "  -h, --help               this text\n";

static const char examples[] =
    "\n"
    "Examples:\n"
    "  clrsnap report busy.clrsnap\n"
    "  clrsnap report --top 20 busy.clrsnap\n"
    "  clrsnap report --mode alloc -o allocations.collapsed busy.clrsnap\n"
    "  clrsnap report --trace 4bf92f3577b34da6a3ce929d0e0e4736 busy.clrsnap\n"
    "  clrsnap report --native off -o busy.collapsed busy.clrsnap\n"
    "  clrsnap report --push otlp+http://collector:4318 busy.clrsnap\n";

void cs_report_print_help(FILE *out) {
  cs_print_help(out, help);
  cs_print_formats(out);
  cs_print_help(out, examples);
}

enum { OPT_NO_LINES = 256, OPT_MODE, OPT_TRACE };

static const struct option long_options[] = {
    CS_VIEW_LONG_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {"mode", required_argument, NULL, OPT_MODE},
    {"trace", required_argument, NULL, OPT_TRACE},
    {"no-lines", no_argument, NULL, OPT_NO_LINES},
    {NULL, 0, NULL, 0},
};

// "busy.clrsnap" is "busy"; any other name is kept whole.
static char *stem_of(const char *file) {
  size_t len = strlen(file), suffix = strlen(".clrsnap");
  bool has = len > suffix && strcmp(file + len - suffix, ".clrsnap") == 0;
  return strndup(file, has ? len - suffix : len);
}

static bool settle(struct cs_report_options *o, struct cs_error *err) {
  o->write =
      o->view.count > 0 || o->view.format != NULL || (o->view.top == 0 && o->view.wish.url == NULL);
  if (!o->write) return true;
  char *stem = stem_of(o->file);
  bool settled =
      stem != NULL ? cs_view_settle(&o->view, stem, err) : cs_error_set(err, "out of memory");
  free(stem);
  if (settled && cs_view_recording(&o->view) != NULL)
    return cs_error_set(err, "a recording is what '%s' is already: no output can be one", o->file);
  return settled;
}

static bool apply(void *self, int opt, const char *arg, struct cs_error *err) {
  struct cs_report_options *o = self;
  switch (opt) {
    case OPT_NO_LINES:
      return o->view.no_lines = true;
    case OPT_MODE:
      return cs_parse_modes(arg, &o->view.modes, err);
    case OPT_TRACE:
      o->one_trace = true;
      return cs_parse_trace(arg, &o->trace, err);
    default:
      return cs_parse_view(&o->view, opt, arg, err);
  }
}

bool cs_report_options_parse(struct cs_report_options *o, int argc, char **argv,
                             struct cs_error *err) {
  *o = (struct cs_report_options){.view.native = true, .view.async_callers = true};
  const struct cs_option_set set = {":o:h", long_options, apply};
  if (!cs_parse_options(&set, o, argc, argv, &o->help, err)) return false;
  if (o->help) return true;
  if (optind >= argc) return cs_error_set(err, "no recording to report");
  if (optind + 1 < argc)
    return cs_error_set(err, "one recording at a time: '%s'", argv[optind + 1]);
  o->file = argv[optind];
  return settle(o, err);
}
