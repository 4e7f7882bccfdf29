// SPDX-License-Identifier: MIT
// The options of `clrsnap record`. One thread. Signal-safe: no.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "cli/options.h"

// 499: not in step with anything that a program does every 1, 2, 5 or 10 ms.
#define DEFAULT_HZ 499
#define MAX_HZ 10000
#define MAX_SECONDS 604800.0
// 2048 frames are 16 KiB a sample; deeper stacks are cut at their root and shown as cut.
#define DEFAULT_DEPTH 2048
#define MAX_DEPTH 65536
// At 100 threads, 499 Hz and 60 frames a stack, 16 MiB last 0.6 s; it is emptied every 20 ms.
#define MAX_BUFFER_MIB 1024
#define LEAST_INTERVAL 102400.0
#define MOST_INTERVAL 1073741824.0
#define MAX_EVENT_RATE 1000000

static const char help[] =
    "usage: clrsnap record [options] [--] program [arguments]\n"
    "       clrsnap record [options] PID\n"
    "\n"
    "Starts a .NET program, samples the stacks of its threads until it ends, and writes a flame\n"
    "graph. The runtime is not stopped for it. Input, output, signals and the exit code are the\n"
    "program's own.\n"
    "With PID, a program that runs already is recorded, until Ctrl-C, the end of -d, or its own:\n"
    "nothing has to be set up before, and when the recording is over nothing of it stays active.\n"
    "The first time, such a program stands still once, for about a millisecond.\n"
    "\n"
    "  -d, --duration SECONDS   stop recording after that time; the program runs on\n"
    "  -F, --frequency HZ       samples per second and thread, 1 to 10000 (499)\n"
    "      --mode MODE[,MODE]   what to record (cpu): cpu, threads that run; wall, waiting ones "
    "too;\n"
    "                           alloc, allocations; lock, waits for locks; wait, other waits;\n"
    "                           exception, what is thrown; gc, pauses for collections\n"
    "      --engine auto|perf|clock|timer  what makes threads take cpu samples (auto: the best "
    "that\n"
    "                           can be had)\n"
    "      --kernel             cpu samples with the kernel's frames, marked [k]; needs engine "
    "perf\n"
    "      --event EVENT[:N]    cpu samples by page-faults, minor-faults, major-faults, cycles,\n"
    "                           instructions, cache-misses, branch-misses, ... in place of CPU "
    "time:\n"
    "                           one in about N of them\n"
    "      --alloc BYTES        mode alloc: one object in so many bytes, 100k to 1g (as many as "
    "cost\n"
    "                           1 % of the program's CPU time)\n"
    "      --event-rate N       exceptions and waits that are walked, a second and mode (500, or "
    "as\n"
    "                           many as cost 1 %): each stands for those that are not, all are "
    "counted\n"
    "  -p, --pid PID            record this process, as PID alone does\n"
    "      --children           processes that it starts, too, each into files of its own\n"
    "  -o, --output FILE        where to write (flame.html); several may be given\n"
    "      --format FORMAT      what to write, if FILE's suffix does not tell (html)\n"
    "      --depth N            frames per stack, 1 to 65536 (2048)\n"
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
    "      --lines              methods by source line, from portable PDBs\n"
    "      --inlined            inlined methods as frames of their own; implies --lines. The "
    "program\n"
    "                           is started with DOTNET_RichDebugInfo=1; one that runs already "
    "must\n"
    "                           have been\n"
    "      --labels             samples with the trace and span of the Activity that was current\n"
    "      --top N              print the N hottest methods\n"
    "      --push URL           send it to otlp+http://HOST:4318 or pyroscope+http://HOST:4040 "
    "(or\n"
    "                           https); with neither --output nor --format, nothing is written\n"
    "      --continuous TIME    with --push: send what was recorded every 10s, 1m, ...\n"
    "      --push-header LINE   an HTTP header for --push, 'NAME: VALUE'; several may be given\n"
    "      --service NAME       the service's name for --push (that of the assembly)\n"
    "      --budget PERCENT     of one processor that recording may use, 0.01% to 100%: the rate "
    "is\n"
    "                           lowered to stay within, and the summary says how far\n"
    "      --walk-limit N       CPU time that one walk may use, in microseconds, 1 to 1000000 "
    "(500),\n"
    "                           or off: what takes longer is cut, and shown as cut\n"
    "      --buffer MIB         shared memory to the program, 1 to 1024 (16)\n"
    "  -h, --help               this text\n";

static const char examples[] =
    "\n"
    "Examples:\n"
    "  clrsnap record -- dotnet app.dll\n"
    "  clrsnap record -d 10 1234\n"
    "  clrsnap record --mode cpu,alloc,lock,gc -o all.html -- dotnet app.dll\n"
    "  clrsnap record -d 30 -o busy.clrsnap -o busy.html --top 10 -- dotnet app.dll\n"
    "  clrsnap record --labels -o app.pb.gz -- dotnet app.dll\n"
    "  clrsnap record --push otlp+http://collector:4318 --continuous 10s -- dotnet app.dll\n";

void cs_record_print_help(FILE *out) {
  cs_print_help(out, help);
  cs_print_formats(out);
  cs_print_help(out, examples);
}

enum {
  OPT_MODE = 256,
  OPT_DEPTH,
  OPT_LINES,
  OPT_INLINED,
  OPT_LABELS,
  OPT_CHILDREN,
  OPT_BUFFER,
  OPT_CONTINUOUS,
  OPT_BUDGET,
  OPT_ENGINE,
  OPT_WALK_LIMIT,
  OPT_ALLOC,
  OPT_EVENT_RATE,
  OPT_KERNEL,
  OPT_EVENT
};

static const struct option long_options[] = {
    CS_VIEW_LONG_OPTIONS,
    {"duration", required_argument, NULL, 'd'},
    {"frequency", required_argument, NULL, 'F'},
    {"help", no_argument, NULL, 'h'},
    {"pid", required_argument, NULL, 'p'},
    {"mode", required_argument, NULL, OPT_MODE},
    {"depth", required_argument, NULL, OPT_DEPTH},
    {"lines", no_argument, NULL, OPT_LINES},
    {"inlined", no_argument, NULL, OPT_INLINED},
    {"labels", no_argument, NULL, OPT_LABELS},
    {"children", no_argument, NULL, OPT_CHILDREN},
    {"buffer", required_argument, NULL, OPT_BUFFER},
    {"budget", required_argument, NULL, OPT_BUDGET},
    {"engine", required_argument, NULL, OPT_ENGINE},
    {"kernel", no_argument, NULL, OPT_KERNEL},
    {"event", required_argument, NULL, OPT_EVENT},
    {"walk-limit", required_argument, NULL, OPT_WALK_LIMIT},
    {"alloc", required_argument, NULL, OPT_ALLOC},
    {"event-rate", required_argument, NULL, OPT_EVENT_RATE},
    {"continuous", required_argument, NULL, OPT_CONTINUOUS},
    {NULL, 0, NULL, 0},
};

static bool parse_seconds(const char *text, double *out, struct cs_error *err) {
  char *end;
  double value = strtod(text, &end);
  if (end != text && *end == '\0' && isfinite(value) && value > 0 && value <= MAX_SECONDS) {
    *out = value;
    return true;
  }
  return cs_error_set(err, "--duration wants seconds, more than 0 and at most %.0f, not '%s'",
                      MAX_SECONDS, text);
}

static bool parse_budget(const char *text, uint32_t *ppm, struct cs_error *err) {
  char *end;
  double percent = strtod(text, &end);
  bool number = end != text && (end[0] == '\0' || strcmp(end, "%") == 0);
  if (!number || !isfinite(percent) || percent < 0.01 || percent > 100)
    return cs_error_set(err, "--budget wants 0.01%% to 100%% of a processor, not '%s'", text);
  *ppm = (uint32_t)(percent * 1e4 + 0.5);
  return true;
}

static bool parse_walk_limit(const char *text, uint32_t *us, struct cs_error *err) {
  if (strcmp(text, "off") != 0) return cs_parse_number("--walk-limit", text, 1000000, us, err);
  *us = CS_WIRE_NO_LIMIT;
  return true;
}

// The runtime itself samples one of 100 KiB; what is asked for more often than that cannot be had.
static bool parse_interval(const char *text, uint64_t *bytes, struct cs_error *err) {
  static const char suffixes[] = "kmg";
  char *end;
  double value = strtod(text, &end);
  const char *suffix = *end != '\0' ? strchr(suffixes, *end | 0x20) : NULL;
  for (long i = suffix != NULL ? suffix - suffixes : -1; i >= 0; i--) value *= 1024;
  bool number = end != text && (*end == '\0' || (suffix != NULL && end[1] == '\0'));
  if (!number || !isfinite(value) || value < LEAST_INTERVAL || value > MOST_INTERVAL)
    return cs_error_set(err, "--alloc wants bytes between two objects, 100k to 1g, not '%s'", text);
  *bytes = (uint64_t)value;
  return true;
}

static bool apply(void *self, int opt, const char *arg, struct cs_error *err) {
  struct cs_record_options *o = self;
  uint32_t mib = 0;
  switch (opt) {
    case 'd':
      return parse_seconds(arg, &o->seconds, err);
    case 'F':
      return cs_parse_number("--frequency", arg, MAX_HZ, &o->hz, err);
    case 'p':
      return cs_parse_pid(arg, &o->pid, err);
    case OPT_DEPTH:
      return cs_parse_number("--depth", arg, MAX_DEPTH, &o->depth, err);
    case OPT_MODE:
      return cs_parse_modes(arg, &o->modes, err);
    case OPT_LINES:
      o->lines = true;
      return true;
    case OPT_INLINED:
      o->lines = o->inlined = true;
      return true;
    case OPT_LABELS:
      o->labels = true;
      return true;
    case OPT_CHILDREN:
      o->children = true;
      return true;
    case OPT_BUFFER:
      if (!cs_parse_number("--buffer", arg, MAX_BUFFER_MIB, &mib, err)) return false;
      // The ring's size is a power of two: the next one that holds what was asked for.
      while (o->buffer_bytes < (uint64_t)mib << 20) o->buffer_bytes <<= 1;
      while (o->buffer_bytes >> 1 >= (uint64_t)mib << 20) o->buffer_bytes >>= 1;
      return true;
    case OPT_BUDGET:
      return parse_budget(arg, &o->budget_ppm, err);
    case OPT_ENGINE:
      return cs_parse_engine(arg, &o->engine, err);
    case OPT_KERNEL:
      return o->kernel = true;
    case OPT_EVENT:
      return cs_parse_event(arg, &o->event, &o->event_period, err);
    case OPT_WALK_LIMIT:
      return parse_walk_limit(arg, &o->walk_limit_us, err);
    case OPT_ALLOC:
      return parse_interval(arg, &o->alloc_interval, err);
    case OPT_EVENT_RATE:
      return cs_parse_number("--event-rate", arg, MAX_EVENT_RATE, &o->event_rate, err);
    case OPT_CONTINUOUS:
      return cs_parse_span("--continuous", arg, &o->window_ns, err);
    default:
      return cs_parse_view(&o->view, opt, arg, err);
  }
}

static bool check_outputs(const struct cs_view *view, struct cs_error *err) {
  for (unsigned i = 0; i < view->count; i++) {
    if (strcmp(view->outputs[i].path, "-") == 0)
      return cs_error_set(err, "standard output is the program's: --output wants a file");
  }
  return true;
}

// What only the engine perf can do.
static bool check_perf(const struct cs_record_options *o, struct cs_error *err) {
  const char *name = o->event != 0 ? "--event" : o->kernel ? "--kernel" : NULL;
  if (name == NULL) return true;
  if (o->engine != CS_WIRE_ENGINE_AUTO && o->engine != CS_WIRE_ENGINE_PERF)
    return cs_error_set(err, "%s needs the engine perf, not %s", name,
                        cs_wire_engine_name(o->engine));
  if (o->event != 0 && o->hz != 0)
    return cs_error_set(err, "--frequency is of samples in time: --event wants NAME:PERIOD");
  if (o->event != 0 && o->budget_ppm != 0)
    return cs_error_set(err, "--budget lowers a rate in time, which --event has not got");
  return true;
}

static bool settle(struct cs_record_options *o, struct cs_error *err) {
  bool perf = o->event != 0 || o->kernel;
  if ((o->modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU)) == 0 &&
      (o->engine != CS_WIRE_ENGINE_AUTO || perf))
    return cs_error_set(err, "%s is of mode cpu, which is not recorded",
                        o->engine != CS_WIRE_ENGINE_AUTO ? "--engine"
                        : o->kernel                      ? "--kernel"
                                                         : "--event");
  if (!check_perf(o, err)) return false;
  if (o->hz == 0) o->hz = DEFAULT_HZ;
  if (o->window_ns != 0 && o->view.wish.url == NULL)
    return cs_error_set(err, "--continuous sends profiles: it needs --push");
  o->view.wish.live = true;
  o->view.in_windows = o->window_ns != 0;
  return cs_view_settle(&o->view, "flame", err);
}

bool cs_record_options_parse(struct cs_record_options *o, int argc, char **argv,
                             struct cs_error *err) {
  *o = (struct cs_record_options){.modes = CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU),
                                  .depth = DEFAULT_DEPTH,
                                  .view.native = true,
                                  .view.async_callers = true,
                                  .buffer_bytes = CS_DEFAULT_BUFFER};
  // '+': the first word that is no option is the program; the rest is its own.
  const struct cs_option_set set = {"+:d:F:o:p:h", long_options, apply};
  if (!cs_parse_options(&set, o, argc, argv, &o->help, err)) return false;
  if (o->help) return true;
  return cs_parse_target(argc, argv, &o->pid, &o->program, err) &&
         ((o->pid != 0 && !o->children) || check_outputs(&o->view, err)) && settle(o, err) &&
         cs_view_fits(&o->view, o->modes, err);
}
