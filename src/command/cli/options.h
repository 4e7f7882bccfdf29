// SPDX-License-Identifier: MIT
// The command lines of `clrsnap record` and `clrsnap report`.
#ifndef CS_CLI_OPTIONS_H
#define CS_CLI_OPTIONS_H

#include <getopt.h>
#include <sys/types.h>

#include "recording/label_choice.h"
#include "recording/view.h"
#include "wire/wire.h"

#define CS_DEFAULT_BUFFER (16ull << 20)  // of shared memory, in bytes

struct cs_record_options {
  double seconds;  // 0: until the program ends
  uint32_t hz;
  uint32_t modes;  // CS_WIRE_MODE_BITs
  struct cs_view view;
  uint32_t depth;
  bool lines;    // methods are recorded by source line
  bool inlined;  // with those that were inlined
  uint64_t buffer_bytes;
  char **program;  // argv of the program, NULL-terminated; NULL: a process that runs is recorded
  pid_t pid;       // that one
  bool children;   // and what it starts
  bool labels;     // samples say which Activity was current
  uint32_t event_rate;      // 0: by cost
  uint64_t alloc_interval;  // 0: by its cost
  uint32_t budget_ppm;      // of one processor, in millionths; 0: no limit
  enum cs_wire_engine_kind engine;
  bool kernel;     // with the kernel's frames
  uint32_t event;  // what is counted in place of CPU time (base/perf.h); 0: nothing
  uint64_t event_period;
  uint32_t walk_limit_us;  // as the wire has it
  uint64_t window_ns;      // what is pushed at a time; 0: the whole, at the end
  bool help;               // nothing else was looked at
};

struct cs_report_options {
  struct cs_view view;
  const char *file;
  bool one_trace;  // only samples of `trace`
  struct cs_label_choice trace;
  bool write;  // false: only the table is wanted
  bool help;
};

bool cs_record_options_parse(struct cs_record_options *o, int argc, char **argv,
                             struct cs_error *err);
void cs_record_print_help(FILE *out);
bool cs_report_options_parse(struct cs_report_options *o, int argc, char **argv,
                             struct cs_error *err);
void cs_report_print_help(FILE *out);

// ---- values, options.c ----
bool cs_read_number(const char *text, uint32_t max, uint32_t *out);  // from 1; without a sentence
bool cs_parse_number(const char *name, const char *text, uint32_t max, uint32_t *out,
                     struct cs_error *err);
// A span of time: "10s", "500ms", "2m", "1h"; without a unit, seconds.
bool cs_parse_span(const char *name, const char *text, uint64_t *ns, struct cs_error *err);
// One of two words; *second says which.
bool cs_parse_word(const char *name, const char *text, const char *first, const char *other,
                   bool *second, struct cs_error *err);
// Of --engine.
bool cs_parse_engine(const char *text, enum cs_wire_engine_kind *out, struct cs_error *err);
// Of --event: NAME or NAME:PERIOD.
bool cs_parse_event(const char *text, uint32_t *event, uint64_t *period, struct cs_error *err);
// What is behind the options: a command line, or nothing but a number. After "--", a number is a
// program like any other. *pid may have been named by an option; else it is 0.
bool cs_parse_target(int argc, char **argv, pid_t *pid, char ***program, struct cs_error *err);
bool cs_parse_pid(const char *text, pid_t *out, struct cs_error *err);  // of --pid
// "cpu,alloc": CS_WIRE_MODE_BITs.
bool cs_parse_modes(const char *text, uint32_t *modes, struct cs_error *err);
// What both verbs know: -o, --format, --native, --signatures, --raw-names, --async-callers,
// --threads, --top, --push, --push-header, --service.
enum {
  CS_OPT_FORMAT = 512,
  CS_OPT_NATIVE,
  CS_OPT_SIGNATURES,
  CS_OPT_RAW_NAMES,
  CS_OPT_ASYNC_CALLERS,
  CS_OPT_BY_TRACE,
  CS_OPT_THREADS,
  CS_OPT_TOP,
  CS_OPT_PUSH,
  CS_OPT_PUSH_HEADER,
  CS_OPT_SERVICE
};
#define CS_VIEW_LONG_OPTIONS                                                                    \
  {"output", required_argument, NULL, 'o'}, {"format", required_argument, NULL, CS_OPT_FORMAT}, \
      {"native", required_argument, NULL, CS_OPT_NATIVE},                                       \
      {"signatures", required_argument, NULL, CS_OPT_SIGNATURES},                               \
      {"raw-names", no_argument, NULL, CS_OPT_RAW_NAMES},                                       \
      {"by-trace", no_argument, NULL, CS_OPT_BY_TRACE},                                         \
      {"async-callers", required_argument, NULL, CS_OPT_ASYNC_CALLERS},                         \
      {"threads", required_argument, NULL, CS_OPT_THREADS},                                     \
      {"push", required_argument, NULL, CS_OPT_PUSH},                                           \
      {"push-header", required_argument, NULL, CS_OPT_PUSH_HEADER},                             \
      {"service", required_argument, NULL, CS_OPT_SERVICE}, {                                   \
    "top", required_argument, NULL, CS_OPT_TOP                                                  \
  }
bool cs_parse_view(struct cs_view *view, int opt, const char *arg, struct cs_error *err);
void cs_print_formats(FILE *out);  // the part of a help text

// ---- a verb's command line, options.c ----
struct cs_option_set {
  const char *letters;           // as getopt_long has them; "+" first: the first word ends them
  const struct option *options;  // 'h' among them
  // Takes one with its value into the verb's own struct. False: *err says why not.
  bool (*apply)(void *self, int opt, const char *value, struct cs_error *err);
};
// All of argv's options; optind is then the first word behind them. *help: there is -h, and nothing
// behind it was looked at. False: *err says what is wrong with one.
bool cs_parse_options(const struct cs_option_set *set, void *self, int argc, char **argv,
                      bool *help, struct cs_error *err);
extern const struct cs_option_set cs_only_json;  // --json and no other; self is a bool

#endif
