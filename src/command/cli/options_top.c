// SPDX-License-Identifier: MIT
// The options of `clrsnap top`. One thread. Signal-safe: no.
#include "cli/options_top.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

#define DEFAULT_HZ 499  // as `record` has it
#define MAX_HZ 10000
#define MIN_SECONDS 0.1
#define MAX_SECONDS 3600.0
#define DEFAULT_ROWS 20

const char cs_top_help[] =
    "usage: clrsnap top [options] PID\n"
    "       clrsnap top [options] [--] program [arguments]\n"
    "\n"
    "Shows where a .NET program spends its time, live: hottest methods, threads, CPU, allocations\n"
    "and GC. On a terminal a table that is drawn anew ('?' lists the keys), else a table per\n"
    "interval. A program that top has started ends with it; a process that ran before runs on.\n"
    "\n"
    "  -p, --pid PID            watch this process, as PID alone does\n"
    "      --interval SECONDS   between two tables, 0.1 to 3600 (1)\n"
    "      --window SECONDS     the span that the table is of, 0.1 to 3600 (10)\n"
    "      --whole              of all since the start instead\n"
    "      --threads            threads instead of methods\n"
    "      --sort self|total|name\n"
    "                           what methods are sorted by (self)\n"
    "      --native on|off      with native frames (on), or their time given to the managed "
    "caller\n"
    "      --inlined            inlined methods as methods of their own. The program is started "
    "with\n"
    "                           DOTNET_RichDebugInfo=1; one that runs already must have been\n"
    "      --async-callers on|off  time of a resumed async method in the total of those that "
    "await\n"
    "                           it (on), or of what resumed it: the stack as it was\n"
    "      --no-counters        not the runtime's own counters: no allocations, heap and GC\n"
    "      --filter TEXT        only what has TEXT in its name or module\n"
    "  -F, --frequency HZ       samples per second and thread, 1 to 10000 (499)\n"
    "      --engine auto|perf|clock|timer  what makes threads take cpu samples (auto: the best "
    "that\n"
    "                           can be had)\n"
    "      --kernel             with the kernel's functions, marked [k]; needs engine perf\n"
    "      --mode cpu|wall      cpu: threads that run (default); wall: waiting ones too\n"
    "      --text               tables as text, though there is a terminal\n"
    "      --json               one JSON object a line, with methods and threads\n"
    "      --rows N             rows of a table as text or JSON (20)\n"
    "  -n, --count N            end after N tables as text or JSON\n"
    "  -h, --help               this text\n"
    "\n"
    "Examples:\n"
    "  clrsnap top 4711\n"
    "  clrsnap top -- dotnet app.dll\n"
    "  clrsnap top --threads --window 2 -- dotnet app.dll\n"
    "  clrsnap top --json -n 10 4711 | jq -r '.methods[0].name'\n";

enum {
  OPT_INTERVAL = 256,
  OPT_WINDOW,
  OPT_WHOLE,
  OPT_THREADS,
  OPT_SORT,
  OPT_NATIVE,
  OPT_FILTER,
  OPT_NO_COUNTERS,
  OPT_INLINED,
  OPT_ASYNC_CALLERS,
  OPT_MODE,
  OPT_TEXT,
  OPT_JSON,
  OPT_ROWS,
  OPT_ENGINE,
  OPT_KERNEL
};

static const struct option long_options[] = {
    {"interval", required_argument, NULL, OPT_INTERVAL},
    {"window", required_argument, NULL, OPT_WINDOW},
    {"whole", no_argument, NULL, OPT_WHOLE},
    {"threads", no_argument, NULL, OPT_THREADS},
    {"sort", required_argument, NULL, OPT_SORT},
    {"native", required_argument, NULL, OPT_NATIVE},
    {"filter", required_argument, NULL, OPT_FILTER},
    {"no-counters", no_argument, NULL, OPT_NO_COUNTERS},
    {"inlined", no_argument, NULL, OPT_INLINED},
    {"async-callers", required_argument, NULL, OPT_ASYNC_CALLERS},
    {"frequency", required_argument, NULL, 'F'},
    {"mode", required_argument, NULL, OPT_MODE},
    {"text", no_argument, NULL, OPT_TEXT},
    {"json", no_argument, NULL, OPT_JSON},
    {"rows", required_argument, NULL, OPT_ROWS},
    {"engine", required_argument, NULL, OPT_ENGINE},
    {"kernel", no_argument, NULL, OPT_KERNEL},
    {"count", required_argument, NULL, 'n'},
    {"pid", required_argument, NULL, 'p'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool parse_span(const char *name, const char *text, double *out, struct cs_error *err) {
  char *end;
  double value = strtod(text, &end);
  if (end != text && *end == '\0' && isfinite(value) && value >= MIN_SECONDS &&
      value <= MAX_SECONDS) {
    *out = value;
    return true;
  }
  return cs_error_set(err, "%s wants seconds, %.1f to %.0f, not '%s'", name, MIN_SECONDS,
                      MAX_SECONDS, text);
}

static bool parse_sort(const char *text, enum cs_top_sort *out, struct cs_error *err) {
  static const char *const words[] = {
      [CS_TOP_BY_SELF] = "self", [CS_TOP_BY_TOTAL] = "total", [CS_TOP_BY_NAME] = "name"};
  for (unsigned i = 0; i < CS_COUNT(words); i++) {
    if (strcmp(words[i], text) != 0) continue;
    *out = (enum cs_top_sort)i;
    return true;
  }
  return cs_error_set(err, "--sort wants 'self', 'total' or 'name', not '%s'", text);
}

static bool parse_filter(const char *text, char out[CS_TOP_FILTER], struct cs_error *err) {
  if (strlen(text) >= CS_TOP_FILTER)
    return cs_error_set(err, "--filter takes %d bytes at most", CS_TOP_FILTER - 1);
  memcpy(out, text, strlen(text) + 1);
  return true;
}

static bool apply_view(struct cs_top_options *o, int opt, const char *arg, struct cs_error *err) {
  bool off = false;
  switch (opt) {
    case OPT_WHOLE:
      o->view.whole = true;
      return true;
    case OPT_THREADS:
      o->view.threads = true;
      return true;
    case OPT_SORT:
      return parse_sort(arg, &o->view.sort, err);
    case OPT_FILTER:
      return parse_filter(arg, o->view.filter, err);
    default:
      if (!cs_parse_word("--native", arg, "on", "off", &off, err)) return false;
      o->view.native = !off;
      return true;
  }
}

static bool apply(void *self, int opt, const char *arg, struct cs_error *err) {
  struct cs_top_options *o = self;
  bool wall = false, off = false;
  switch (opt) {
    case OPT_INTERVAL:
      return parse_span("--interval", arg, &o->interval_s, err);
    case OPT_WINDOW:
      return parse_span("--window", arg, &o->window_s, err);
    case 'F':
      return cs_parse_number("--frequency", arg, MAX_HZ, &o->hz, err);
    case OPT_MODE:
      if (!cs_parse_word("--mode", arg, "cpu", "wall", &wall, err)) return false;
      o->mode = wall ? CS_WIRE_MODE_WALL : CS_WIRE_MODE_CPU;
      return true;
    case OPT_TEXT:
      o->text = true;
      return true;
    case OPT_JSON:
      o->json = true;
      return true;
    case OPT_NO_COUNTERS:
      o->no_counters = true;
      return true;
    case OPT_INLINED:
      return o->inlined = true;
    case OPT_ASYNC_CALLERS:
      if (!cs_parse_word("--async-callers", arg, "on", "off", &off, err)) return false;
      o->async_callers = !off;
      return true;
    case OPT_ENGINE:
      return cs_parse_engine(arg, &o->engine, err);
    case OPT_KERNEL:
      return o->kernel = true;
    case OPT_ROWS:
      return cs_parse_number("--rows", arg, 1000000, &o->rows, err);
    case 'p':
      return cs_parse_pid(arg, &o->pid, err);
    case 'n':
      return cs_parse_number("--count", arg, 1000000000, &o->count, err);
    default:
      return apply_view(o, opt, arg, err);
  }
}

bool cs_top_options_parse(struct cs_top_options *o, int argc, char **argv, struct cs_error *err) {
  *o = (struct cs_top_options){.hz = DEFAULT_HZ,
                               .mode = CS_WIRE_MODE_CPU,
                               .interval_s = 1,
                               .window_s = 10,
                               .rows = DEFAULT_ROWS,
                               .async_callers = true,
                               .view.native = true};
  const struct cs_option_set set = {"+:F:n:p:h", long_options, apply};
  if (!cs_parse_options(&set, o, argc, argv, &o->help, err)) return false;
  if (o->help) return true;
  if (o->engine != CS_WIRE_ENGINE_AUTO && o->mode != CS_WIRE_MODE_CPU)
    return cs_error_set(err, "--engine is of mode cpu, which is not recorded");
  if (o->kernel && o->mode != CS_WIRE_MODE_CPU)
    return cs_error_set(err, "--kernel is of mode cpu, which is not recorded");
  if (o->kernel && o->engine != CS_WIRE_ENGINE_AUTO && o->engine != CS_WIRE_ENGINE_PERF)
    return cs_error_set(err, "--kernel needs the engine perf, not %s",
                        cs_wire_engine_name(o->engine));
  if (o->json && o->text) return cs_error_set(err, "--json and --text are two things");
  return cs_parse_target(argc, argv, &o->pid, &o->program, err);
}
