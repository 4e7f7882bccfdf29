// SPDX-License-Identifier: MIT
// The options that several verbs have. One thread. Signal-safe: no.
#include "cli/options.h"

#include <string.h>

#include "base/perf.h"

#define DEFAULT_HZ 499  // not in step with what a program does every 1, 2, 5 or 10 ms

// ---- What is shown, and where it is sent ----

bool cs_set_output(const struct cs_option *option, void *view, const char *value,
                   struct cs_error *err) {
  (void)option;
  return cs_view_add_output(view, value, err);
}

bool cs_set_format(const struct cs_option *option, void *view, const char *value,
                   struct cs_error *err) {
  (void)option;
  return cs_view_set_format(view, value, err);
}

void cs_offer_events(struct cs_spelling *spelling) {
  for (uint32_t i = 1; i < CS_PERF_KINDS; i++)
    cs_spelling_offer(spelling, cs_perf_kind(i)->name, strlen(cs_perf_kind(i)->name));
}

void cs_offer_modes(struct cs_spelling *spelling) {
  for (unsigned i = CS_WIRE_MODE_CPU; i < CS_WIRE_MODES; i++) {
    const char *mode = cs_mode((enum cs_wire_mode)i)->token;
    cs_spelling_offer(spelling, mode, strlen(mode));
  }
}

static bool refuse_modes(const struct cs_option *option, const char *word, size_t len, bool events,
                         const char *value, struct cs_error *err) {
  char names[CS_MODE_NAMES_BYTES];
  struct cs_spelling spelling = {.word = word, .len = len};
  if (len > 0) cs_offer_modes(&spelling);
  if (len > 0 && events) cs_offer_events(&spelling);
  (void)cs_error_set(err, "--%s takes one or more of %s with commas between them, not '%s'",
                     option->name, cs_mode_names(UINT32_MAX, names), value);
  return cs_spelling_suggest(&spelling, "", err);
}

// event: of a mode named after the event that it counts in place of CPU time; NULL: none may be.
static bool read_modes(const struct cs_option *option, const char *value, uint32_t *modes,
                       uint32_t *event, struct cs_error *err) {
  *modes = 0;
  for (const char *at = value;; at++) {
    size_t len = strcspn(at, ",");
    enum cs_wire_mode mode = cs_mode_by_name(at, len);
    uint32_t kind = mode == 0 && event != NULL ? cs_perf_kind_by_name(at, len) : 0;
    if (kind != 0) *event = kind;
    if (kind != 0) mode = CS_WIRE_MODE_CPU;
    if (mode == 0) return refuse_modes(option, at, len, event != NULL, value, err);
    *modes |= CS_WIRE_MODE_BIT(mode);
    at += len;
    if (*at == '\0') break;
  }
  return true;
}

bool cs_set_modes(const struct cs_option *option, void *field, const char *value,
                  struct cs_error *err) {
  return read_modes(option, value, field, NULL, err);
}

bool cs_set_shown_modes(const struct cs_option *option, void *view, const char *value,
                        struct cs_error *err) {
  struct cs_view *v = view;
  v->event = 0;
  return read_modes(option, value, &v->modes, &v->event, err);
}

static bool set_each_thread(const struct cs_option *option, void *field, const char *value,
                            struct cs_error *err) {
  unsigned each = 0;
  bool good = cs_set_word(option, &each, value, err);
  *(bool *)field = each != 0;
  return good;
}

static bool set_search(const struct cs_option *option, void *field, const char *value,
                       struct cs_error *err) {
  *(const char **)field = value;
  return value[0] != '\0' || cs_error_set(err, "--%s takes a text", option->name);
}

static bool add_header(const struct cs_option *option, void *field, const char *value,
                       struct cs_error *err) {
  struct cs_push_options *push_options = field;
  if (push_options->header_count == CS_PUSH_MAX_HEADERS)
    return cs_error_set(err, "--%s can be given %d times at most", option->name,
                        CS_PUSH_MAX_HEADERS);
  push_options->headers[push_options->header_count++] = value;
  return true;
}

static bool add_source(const struct cs_option *option, void *field, const char *value,
                       struct cs_error *err) {
  (void)option;
  return cs_symbol_sources_add(field, value, err);
}

#define VIEW(member) .field = offsetof(struct cs_view, member)
const struct cs_option cs_view_options[] = {
    {0, "native", "on|off", "with native frames (on), or managed ones only", cs_set_on_off,
     VIEW(native)},
    {0, "signatures", "on|off", "methods with their parameters, to distinguish overloads (off)",
     cs_set_on_off, VIEW(signatures)},
    {0, "raw-names", NULL, "names as the compiler made them: <LoadAsync>d__4.MoveNext", NULL,
     VIEW(raw_names)},
    {0, "symbols", "PLACE",
     "where names of native functions are looked for: a directory with debug files "
     "(libcoreclr.so.dbg, or by build id), the URL of a symbol server, microsoft, debuginfod (the "
     "servers of DEBUGINFOD_URLS) or debuginfod+URL; can be given several times. Servers are sent "
     "build ids",
     add_source, VIEW(sources)},
    {0, "async-callers", "on|off",
     "a resumed async method is shown below the methods that await it (on), or below what resumed "
     "it, as on the stack",
     cs_set_on_off, VIEW(async_callers)},
    {0, "by-trace", NULL, "stacks that have a label are shown below a frame for their trace", NULL,
     VIEW(by_trace)},
    {0, "by-route", NULL,
     "stacks of requests are shown below a frame for their endpoint, GET /cart/{id}, without the "
     "server's own frames",
     NULL, VIEW(by_route)},
    {0, "threads", "grouped|each",
     "threads with the same name as one, such as the thread pool's, or each by itself (grouped; "
     "each in pprof and where samples are shown over time)",
     set_each_thread, VIEW(each_thread)},
    {0, "idle", NULL,
     "wall mode: tables, text and Markdown with the threads that wait for work, too, which they "
     "leave out (the page has a switch)",
     NULL, VIEW(idle)},
    {0, "top", "N", "print the N hottest methods", cs_set_number, VIEW(top), .most = 1000000},
    {0, "search", "TEXT",
     "print how much is in and below the methods whose names match TEXT, a regular expression "
     "or a part of them, and where they were inlined",
     set_search, VIEW(search)},
    {0}};

const struct cs_option cs_push_options[] = {
    {0, "push", "URL",
     "send the profile to otlp+http://HOST:4318 or pyroscope+http://HOST:4040 (or https). With "
     "neither --output nor --format, no file is written",
     NULL, VIEW(push_options.url)},
    {0, "push-header", "LINE",
     "an HTTP header for --push, 'NAME: VALUE'; can be given several times", add_header,
     VIEW(push_options)},
    {0, "service", "NAME", "the service's name for --push (the name of the assembly)", NULL,
     VIEW(push_options.service)},
    {0}};

// ---- What is asked of the agent ----

#define AGENT(member) .field = offsetof(struct cs_agent_options, member)
const struct cs_option cs_agent_options[] = {
    {'p', "pid", "PID",
     "the process, by number or by name (clrsnap ps); the option itself may be left out",
     cs_set_pid, AGENT(pid)},
    {'F', "frequency", "HZ", "samples per second and thread, 1 to 10000 (499)", cs_set_number,
     AGENT(ask.hz), .most = 10000},
    {0, "engine", "auto|perf|clock",
     "what makes threads take samples in cpu mode (auto: the best that is available)", cs_set_word,
     AGENT(ask.engine), .least = CS_WIRE_ENGINE_AUTO},
    {0, "kernel", NULL, "cpu mode with the kernel's frames, marked [k]; needs the perf engine",
     NULL, AGENT(ask.kernel)},
    {0, "inlined", NULL,
     "inlined methods as frames of their own. The program is started with DOTNET_RichDebugInfo=1; "
     "a process that is already running must have been started with it",
     NULL, AGENT(ask.inlined)},
    {0}};

bool cs_check_agent_options(struct cs_agent_options *o, int count, char **operands,
                            struct cs_error *err) {
  struct cs_consumer_opts *ask = &o->ask;
  const char *by_perf = ask->event != 0 ? "--event" : ask->kernel ? "--kernel" : NULL;
  const char *by_cpu = ask->engine != CS_WIRE_ENGINE_AUTO ? "--engine" : by_perf;
  if (by_cpu != NULL && (ask->modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU)) == 0)
    return cs_error_set(err, "%s belongs to cpu mode, which is not recorded", by_cpu);
  if (by_perf != NULL && ask->engine != CS_WIRE_ENGINE_AUTO && ask->engine != CS_WIRE_ENGINE_PERF)
    return cs_error_set(err, "%s needs the perf engine, not %s", by_perf,
                        cs_wire_engine_name(ask->engine));
  if (ask->event != 0 && ask->hz != 0)
    return cs_error_set(err,
                        "--frequency is a number of samples per second; --event takes its "
                        "own period, as NAME:PERIOD");
  if (ask->event != 0 && ask->budget_ppm != 0)
    return cs_error_set(err, "--budget lowers the sampling frequency, and --event has none");
  if (ask->hz == 0) ask->hz = DEFAULT_HZ;
  if (ask->inlined) ask->lines = true;
  return cs_parse_target(count, operands, &o->pid, &o->program, err);
}
