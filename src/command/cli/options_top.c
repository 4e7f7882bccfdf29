// SPDX-License-Identifier: MIT
// The options of `clrsnap top`. One thread. Signal-safe: no.
#include <string.h>

#include "cli/options.h"
#include "cli/verbs.h"

static bool set_filter(const struct cs_option *option, void *field, const char *value,
                       struct cs_error *err) {
  if (strlen(value) >= CS_TOP_FILTER)
    return cs_error_set(err, "--%s takes %d bytes at most", option->name, CS_TOP_FILTER - 1);
  memcpy(field, value, strlen(value) + 1);
  return true;
}

#define TOP(member) .field = offsetof(struct cs_top_options, member)
static const struct cs_option what[] = {
    {0, "mode", "cpu|wall", "running threads (cpu), or all threads (wall)", cs_set_word, TOP(mode),
     .least = CS_WIRE_MODE_CPU},
    {0, "no-counters", NULL, "do not read the runtime's counters: no allocations, heap and GC",
     NULL, TOP(no_counters)},
    {0, "async-callers", "on|off",
     "the time of a resumed async method counts for the methods that await it (on), or for what "
     "resumed it, as on the stack",
     cs_set_on_off, TOP(agent.ask.async_callers)},
    {0}};
static const struct cs_option table[] = {
    {0, "interval", "TIME", "between two tables, 100ms to 1h (1s)", cs_set_seconds, TOP(interval_s),
     0.1, 3600},
    {0, "window", "TIME", "the time that a table covers, 100ms to 1h (10s)", cs_set_seconds,
     TOP(window_s), 0.1, 3600},
    {0, "whole", NULL, "the time since the start instead of a window", NULL, TOP(view.whole)},
    {0, "threads", NULL, "threads instead of methods", NULL, TOP(view.threads)},
    {0, "sort", "self|total|name", "what methods are sorted by (self)", cs_set_word,
     TOP(view.sort)},
    {0, "native", "on|off", "with native frames (on), or with their time in the managed caller",
     cs_set_on_off, TOP(view.native)},
    {0, "filter", "TEXT", "only what has TEXT in its name or module", set_filter, TOP(view.filter)},
    {0, "text", NULL, "tables as text, even on a terminal", NULL, TOP(text)},
    {0, "json", NULL, "one JSON object per line, with methods and threads", NULL, TOP(json)},
    {0, "rows", "N", "rows of a table as text or JSON (20)", cs_set_number, TOP(rows),
     .most = 1000000},
    {'n', "count", "N", "end after N tables as text or JSON", cs_set_number, TOP(count),
     .most = 1000000000},
    {0}};
static const struct cs_option_group groups[] = {
    {"What is watched", cs_agent_options, offsetof(struct cs_top_options, agent)},
    {NULL, what, 0},
    {"What is shown", table, 0},
    {0}};
static const struct cs_top_options defaults = {.agent.ask = {CS_AGENT_DEFAULTS},
                                               .mode = CS_WIRE_MODE_CPU,
                                               .interval_s = 1,
                                               .window_s = 10,
                                               .rows = 20,
                                               .view.native = true};

static bool check(void *options, int count, char **operands, struct cs_error *err) {
  struct cs_top_options *o = options;
  o->agent.ask.modes = CS_WIRE_MODE_BIT(o->mode);
  if (o->json && o->text) return cs_error_set(err, "--json and --text exclude each other");
  return cs_check_agent_options(&o->agent, count, operands, err);
}

const struct cs_command cs_top_command = {
    .name = "top",
    .summary = "watch where a program spends its time, live",
    .usage =
        "usage: clrsnap top [options] PID\n"
        "       clrsnap top [options] [--] program [arguments]\n",
    .about =
        "Shows where a .NET program spends its time, live: the hottest methods, threads, CPU time, "
        "allocations and GC. On a terminal it redraws one table ('?' lists the keys); elsewhere it "
        "prints a table per interval. A program that top has started ends with it; a process that "
        "was already running runs on.",
    .groups = groups,
    .examples =
        "  clrsnap top 4711\n"
        "  clrsnap top -- dotnet app.dll\n"
        "  clrsnap top --threads --window 2 -- dotnet app.dll\n"
        "  clrsnap top --json -n 10 4711 | jq -r '.methods[0].name'\n",
    .takes_program = true,
    .size = sizeof(struct cs_top_options),
    .defaults = &defaults,
    .check = check,
    .run = cs_run_top};
