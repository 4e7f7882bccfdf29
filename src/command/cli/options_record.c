// SPDX-License-Identifier: MIT
// The options of `clrsnap record`. One thread. Signal-safe: no.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/perf.h"
#include "base/prefix.h"
#include "cli/options.h"
#include "cli/verbs.h"

#define LEAST_INTERVAL 102400.0  // the runtime itself samples one object in 100 KiB
#define MOST_INTERVAL 1073741824.0

static bool refuse_event(const char *text, size_t len, struct cs_error *err) {
  char names[400] = "";
  for (uint32_t i = 1; i < CS_PERF_KINDS; i++) {
    size_t used = strlen(names);
    (void)snprintf(names + used, sizeof names - used, "%s%s", i > 1 ? ", " : "",
                   cs_perf_kind(i)->name);
  }
  if (cs_has_prefix(text, "context-switches"))
    return cs_error_set(err,
                        "--event context-switches: its samples would wake each thread from "
                        "the sleep that is counted; --mode wait shows what threads wait for");
  struct cs_spelling spelling = {.word = text, .len = len};
  if (len > 0) cs_offer_events(&spelling);
  (void)cs_error_set(err, "--event takes one of %s, not '%s'", names, text);
  return cs_spelling_suggest(&spelling, "", err);
}

// NAME or NAME:PERIOD.
static bool set_event(const struct cs_option *option, void *field, const char *value,
                      struct cs_error *err) {
  struct cs_consumer_opts *ask = field;
  size_t len = strcspn(value, ":");
  uint32_t period = 0;
  (void)option;
  ask->event = cs_perf_kind_by_name(value, len);
  if (ask->event == 0) return refuse_event(value, len, err);
  ask->event_period = cs_perf_kind(ask->event)->period;
  if (value[len] == '\0') return true;
  if (!cs_parse_number("--event NAME:PERIOD", value + len + 1, 1000000000, &period, err))
    return false;
  ask->event_period = period;
  return true;
}

static bool set_budget(const struct cs_option *option, void *field, const char *value,
                       struct cs_error *err) {
  char *end;
  double percent = strtod(value, &end);
  bool number = end != value && (end[0] == '\0' || strcmp(end, "%") == 0);
  if (!number || !isfinite(percent) || percent < 0.01 || percent > 100)
    return cs_error_set(err, "--%s takes 0.01%% to 100%% of a processor, not '%s'", option->name,
                        value);
  *(uint32_t *)field = (uint32_t)(percent * 1e4 + 0.5);
  return true;
}

static bool set_walk_limit(const struct cs_option *option, void *field, const char *value,
                           struct cs_error *err) {
  if (strcmp(value, "off") != 0) return cs_set_number(option, field, value, err);
  *(uint32_t *)field = CS_WIRE_NO_LIMIT;
  return true;
}

static bool set_interval(const struct cs_option *option, void *field, const char *value,
                         struct cs_error *err) {
  static const char suffixes[] = "kmg";
  char *end;
  double bytes = strtod(value, &end);
  const char *suffix = *end != '\0' ? strchr(suffixes, *end | 0x20) : NULL;
  for (long i = suffix != NULL ? suffix - suffixes : -1; i >= 0; i--) bytes *= 1024;
  bool number = end != value && (*end == '\0' || (suffix != NULL && end[1] == '\0'));
  if (!number || !isfinite(bytes) || bytes < LEAST_INTERVAL || bytes > MOST_INTERVAL)
    return cs_error_set(err, "--%s takes the bytes between two objects, 100k to 1g, not '%s'",
                        option->name, value);
  *(uint64_t *)field = (uint64_t)bytes;
  return true;
}

// The ring's size is a power of two: the least that holds what was asked for.
static bool set_buffer(const struct cs_option *option, void *field, const char *value,
                       struct cs_error *err) {
  uint64_t *bytes = field;
  uint32_t mib = 0;
  if (!cs_set_number(option, &mib, value, err)) return false;
  for (*bytes = 1u << 20; *bytes < (uint64_t)mib << 20;) *bytes <<= 1;
  return true;
}

static bool set_window(const struct cs_option *option, void *field, const char *value,
                       struct cs_error *err) {
  double seconds;
  if (!cs_parse_time(value, &seconds) || !(seconds >= 0.1 && seconds <= 86400))
    return cs_error_set(err, "--%s takes a time like 10s, from 100ms to 24h, not '%s'",
                        option->name, value);
  *(uint64_t *)field = (uint64_t)(seconds * 1e9);
  return true;
}

#define RECORD(member) .field = offsetof(struct cs_record_options, member)
#define ASK(member) RECORD(agent.ask.member)
static const struct cs_option what[] = {
    {'d', "duration", "TIME", "stop recording after 10s, 500ms, 2m, ...; the program runs on",
     cs_set_seconds, RECORD(seconds), .least = 0.001, .most = 604800},
    {0, "children", NULL, "also record the processes that it starts, each into files of its own",
     NULL, RECORD(children)},
    {0, "mode", "MODE[,MODE]", "what is recorded: one or more of the modes below (cpu)",
     cs_set_modes, ASK(modes)},
    {0, "async", NULL,
     "with wall mode: suspended async operations, as async mode. The program is stopped for about "
     "1 % of the time to read its heap",
     NULL, RECORD(async)},
    {0, "holders", "on|off",
     "whether lock mode also records holders mode (on); an output that shows one mode at a time "
     "leaves it out in any case",
     cs_set_on_off, RECORD(holders)},
    {0, "event", "EVENT[:N]",
     "in cpu mode, count one of the events below instead of CPU time, with a sample for about "
     "every N of them",
     set_event, RECORD(agent.ask)},
    {0, "alloc", "BYTES",
     "alloc mode: one sample per this many bytes, 100k to 1g (as many as cost 0.5 % of the "
     "program's CPU time)",
     set_interval, ASK(alloc_interval)},
    {0, "event-rate", "N",
     "exceptions and waits per second and mode whose stacks are walked; each stands for the "
     "others, and all are counted (500, fewer if they would cost more than 0.5 %)",
     cs_set_number, ASK(event_rate), .most = 1000000},
    {0, "depth", "N", "frames per stack, 1 to 65536 (2048)", cs_set_number, ASK(max_depth),
     .most = 65536},
    {0, "lines", NULL, "methods by source line, from portable PDBs; --inlined implies it", NULL,
     ASK(lines)},
    {0, "labels", NULL, "samples with the endpoint, the trace and the span of the current Activity",
     NULL, ASK(labels)},
    {0}};
static const struct cs_option cost[] = {
    {0, "budget", "PERCENT",
     "of one processor that recording may use, 0.01% to 100%: the frequency is lowered to stay "
     "within it, and the summary says how far",
     set_budget, ASK(budget_ppm)},
    {0, "walk-limit", "N",
     "microseconds of CPU time for one walk, 1 to 1000000 (500), or off: a walk that takes longer "
     "is cut, and shown as cut",
     set_walk_limit, ASK(walk_limit_us), .most = 1000000},
    {0, "buffer", "MIB", "memory shared with the program, 1 to 1024 (16)", set_buffer,
     ASK(capacity), .most = 1024},
    {0}};
static const struct cs_option output[] = {
    {'o', "output", "FILE", "where to write (flame.html); can be given several times",
     cs_set_output, RECORD(view)},
    {0, "format", "FORMAT", "what to write, if FILE's suffix does not say (html)", cs_set_format,
     RECORD(view)},
    {0, "continuous", "TIME", "with --push: send what was recorded every 10s, 1m, ...", set_window,
     RECORD(window_ns)},
    {0}};
static const struct cs_option_group groups[] = {
    {"What is recorded", cs_agent_options, offsetof(struct cs_record_options, agent)},
    {NULL, what, 0},
    {"What it may cost", cost, 0},
    {"Where it goes", output, 0},
    {NULL, cs_push_options, offsetof(struct cs_record_options, view)},
    {"What is shown", cs_view_options, offsetof(struct cs_record_options, view)},
    {0}};

static const struct cs_record_options defaults = {.agent.ask = {CS_AGENT_DEFAULTS},
                                                  .holders = true,
                                                  .view.native = true,
                                                  .view.async_callers = true};

static bool check_outputs(const struct cs_view *view, bool shared, struct cs_error *err) {
  for (unsigned i = 0; i < view->count; i++) {
    if (!cs_output_is_stdout(view->outputs[i].path)) continue;
    if (shared)
      return cs_error_set(err, "standard output belongs to the program: --output takes a file");
    if (view->outputs[i].format->write == NULL)
      return cs_error_set(err,
                          "a recording is a file, not standard output: name one that ends in "
                          ".clrsnap");
  }
  return true;
}

// The scans are made from outside, by the command that records one process.
static bool check_async(struct cs_record_options *o, struct cs_error *err) {
  const uint32_t async = CS_WIRE_MODE_BIT(CS_WIRE_MODE_ASYNC);
  uint32_t *modes = &o->agent.ask.modes;
  if (o->async) *modes |= async;
  if ((*modes & async) == 0) return true;
  if ((*modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_WALL)) == 0)
    return cs_error_set(err, "async mode goes with wall mode: --mode wall --async");
  if (o->children) return cs_error_set(err, "async mode is of one process: not with --children");
  if (o->agent.ask.budget_ppm != 0)
    return cs_error_set(err,
                        "--budget does not cover the scans of async mode, which have a limit "
                        "of their own: 1 %% of the time");
  return true;
}

// Holders mode belongs to lock mode: it shows which threads held the locks.
static bool check_holders(struct cs_record_options *o, struct cs_error *err) {
  const uint32_t holders = CS_WIRE_MODE_BIT(CS_WIRE_MODE_HOLDERS);
  uint32_t *modes = &o->agent.ask.modes;
  bool locks = (*modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_LOCK)) != 0;
  if (!o->holders && (*modes & holders) != 0)
    return cs_error_set(err, "--holders off contradicts --mode holders");
  if (!o->holders && !locks)
    return cs_error_set(err, "--holders belongs to lock mode, which is not recorded");
  if (!o->holders || !locks || (*modes & holders) != 0) return true;
  o->one_mode =
      !cs_view_fits(&o->view, *modes | holders, NULL) && cs_view_fits(&o->view, *modes, NULL);
  if (!o->one_mode) *modes |= holders;
  return true;
}

// Refuses an option that would have no effect in the modes that are recorded. --frequency is
// accepted with every mode, since one command line is often used for several.
static bool check_modes(const struct cs_record_options *o, struct cs_error *err) {
  enum {
    ALLOC = CS_WIRE_MODE_BIT(CS_WIRE_MODE_ALLOC),
    WALL = CS_WIRE_MODE_BIT(CS_WIRE_MODE_WALL),
    RATED = CS_WIRE_MODE_BIT(CS_WIRE_MODE_EXCEPTION) | CS_WIRE_MODE_BIT(CS_WIRE_MODE_LOCK) |
            CS_WIRE_MODE_BIT(CS_WIRE_MODE_HOLDERS) | CS_WIRE_MODE_BIT(CS_WIRE_MODE_WAIT),
  };
  const struct cs_consumer_opts *ask = &o->agent.ask;
  const struct {
    bool given;
    uint32_t modes;
    const char *name;
  } all[] = {{ask->alloc_interval != 0, ALLOC, "--alloc"},
             {ask->event_rate != 0, RATED, "--event-rate"},
             {o->view.idle, WALL, "--idle"}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    char names[CS_MODE_NAMES_BYTES];
    if (all[i].given && (ask->modes & all[i].modes) == 0)
      return cs_error_set(err, "%s belongs to a mode that is not recorded: %s", all[i].name,
                          cs_mode_names(all[i].modes, names));
  }
  return true;
}

static bool check(void *options, int count, char **operands, struct cs_error *err) {
  struct cs_record_options *o = options;
  struct cs_consumer_opts *ask = &o->agent.ask;
  ask->async_callers = o->view.async_callers;
  if (!check_modes(o, err)) return false;
  if (!cs_check_agent_options(&o->agent, count, operands, err)) return false;
  if (!cs_push_check(&o->view.push_options, err) || !check_async(o, err)) return false;
  if (o->window_ns != 0 && o->view.push_options.url == NULL)
    return cs_error_set(err, "--continuous sends profiles: it needs --push");
  o->view.push_options.live = true;
  o->view.in_windows = o->window_ns != 0;
  return cs_view_settle(&o->view, "flame", err) &&
         check_outputs(&o->view, o->agent.pid == 0 || o->children, err) && check_holders(o, err) &&
         cs_view_fits(&o->view, ask->modes, err);
}

const struct cs_command cs_record_command = {
    .name = "record",
    .summary = "record where a program spends its time, from its start or by attach",
    .usage =
        "usage: clrsnap record [options] [--] program [arguments]\n"
        "       clrsnap record [options] PID\n",
    .about =
        "Starts a .NET program, samples the stacks of its threads until it ends, and writes a "
        "flame graph. The runtime is not suspended for this. Standard input and output, signals "
        "and the exit code remain the program's own.\n"
        "With PID, records a program that is already running, until Ctrl-C, the end of --duration, "
        "or its own end. It needs no preparation, and nothing stays active afterwards.",
    .groups = groups,
    .shows_formats = true,
    .examples =
        "  clrsnap record -- dotnet app.dll\n"
        "  clrsnap record -d 10 1234\n"
        "  clrsnap record --mode cpu,alloc,lock,gc -o all.html -- dotnet app.dll\n"
        "  clrsnap record -o busy.clrsnap -o busy.html --top 10 -- dotnet app.dll\n"
        "  clrsnap record --labels -o app.pb.gz -- dotnet app.dll\n"
        "  clrsnap record --push otlp+http://collector:4318 --continuous 10s 1234\n",
    .takes_program = true,
    .size = sizeof(struct cs_record_options),
    .defaults = &defaults,
    .check = check,
    .run = cs_run_record};
