// SPDX-License-Identifier: MIT
// What the verbs' command lines have in common: one function per kind of value, and the options of
// what is shown. Invariant: what is accepted has been checked to its last character and against its
// limits. One thread. Signal-safe: no.
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/perf.h"
#include "base/print.h"

bool cs_read_number(const char *text, uint32_t max, uint32_t *out) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  *out = (uint32_t)value;
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && value >= 1 &&
         value <= max;
}

bool cs_parse_number(const char *name, const char *text, uint32_t max, uint32_t *out,
                     struct cs_error *err) {
  uint32_t value;
  if (cs_read_number(text, max, &value)) {
    *out = value;
    return true;
  }
  return cs_error_set(err, "%s wants a whole number from 1 to %u, not '%s'", name, max, text);
}

bool cs_parse_span(const char *name, const char *text, uint64_t *ns, struct cs_error *err) {
  static const struct {
    const char *name;
    double seconds;
  } units[] = {{"", 1}, {"s", 1}, {"ms", 0.001}, {"m", 60}, {"h", 3600}};
  char *end;
  double value = strtod(text, &end);
  bool good = end != text && isfinite(value) && value > 0;
  for (size_t i = 0; good && i < CS_COUNT(units); i++) {
    double seconds = value * units[i].seconds;
    if (strcmp(end, units[i].name) != 0 || seconds < 0.1 || seconds > 86400) continue;
    *ns = (uint64_t)(seconds * 1e9);
    return true;
  }
  return cs_error_set(err, "%s wants a time like 10s, from 100ms to 24h, not '%s'", name, text);
}

bool cs_parse_word(const char *name, const char *text, const char *first, const char *other,
                   bool *second, struct cs_error *err) {
  *second = strcmp(text, other) == 0;
  if (*second || strcmp(text, first) == 0) return true;
  return cs_error_set(err, "%s wants '%s' or '%s', not '%s'", name, first, other, text);
}

static bool no_such_event(const char *text, struct cs_error *err) {
  char names[400] = "";
  for (uint32_t i = 1; i < CS_PERF_KINDS; i++) {
    size_t used = strlen(names);
    (void)snprintf(names + used, sizeof names - used, "%s%s", i > 1 ? ", " : "",
                   cs_perf_kind(i)->name);
  }
  if (strncmp(text, "context-switches", 16) == 0)
    return cs_error_set(err,
                        "--event context-switches: its samples would wake each thread from the "
                        "sleep that is counted; --mode wait has what threads wait for");
  return cs_error_set(err, "--event wants one of %s, not '%s'", names, text);
}

bool cs_parse_event(const char *text, uint32_t *event, uint64_t *period, struct cs_error *err) {
  size_t len = strcspn(text, ":");
  uint32_t wanted = 0;
  *event = cs_perf_kind_by_name(text, len);
  if (*event == 0) return no_such_event(text, err);
  *period = cs_perf_kind(*event)->period;
  if (text[len] == '\0') return true;
  if (!cs_parse_number("--event NAME:PERIOD", text + len + 1, 1000000000, &wanted, err))
    return false;
  *period = wanted;
  return true;
}

bool cs_parse_engine(const char *text, enum cs_wire_engine_kind *out, struct cs_error *err) {
  for (unsigned i = 0; i < CS_WIRE_ENGINES; i++) {
    *out = (enum cs_wire_engine_kind)i;
    if (strcmp(text, cs_wire_engine_name(*out)) == 0) return true;
  }
  return cs_error_set(err, "--engine wants auto, perf, clock or timer, not '%s'", text);
}

bool cs_parse_pid(const char *text, pid_t *out, struct cs_error *err) {
  uint32_t pid = 0;
  if (!cs_parse_number("--pid", text, INT32_MAX, &pid, err)) return false;
  *out = (pid_t)pid;
  return true;
}

bool cs_parse_target(int argc, char **argv, pid_t *pid, char ***program, struct cs_error *err) {
  const char *word = optind < argc ? argv[optind] : "";
  bool number = optind + 1 == argc && word[0] != '\0' && strspn(word, "0123456789") == strlen(word);
  if (number && *pid == 0 && strcmp(argv[optind - 1], "--") != 0)
    return cs_parse_pid(word, pid, err);
  if (*pid != 0 && optind < argc)
    return cs_error_set(err, "either a process or a program can be recorded, not both");
  if (*pid == 0 && optind >= argc) return cs_error_set(err, "no program to record, and no process");
  if (*pid == 0) *program = argv + optind;
  return true;
}

bool cs_parse_modes(const char *text, uint32_t *modes, struct cs_error *err) {
  *modes = 0;
  for (const char *at = text;; at++) {
    size_t len = strcspn(at, ",");
    enum cs_wire_mode mode = cs_mode_by_name(at, len);
    if (mode == 0)
      return cs_error_set(
          err,
          "--mode wants some of cpu, wall, alloc, lock, wait, exception, gc with commas "
          "between them, not '%s'",
          text);
    *modes |= CS_WIRE_MODE_BIT(mode);
    at += len;
    if (*at == '\0') return true;
  }
}

// getopt has just refused argv[optind - 1], or an option letter in it.
static bool refused(int opt, char **argv, struct cs_error *err) {
  if (optopt > 0 && optopt < 256 && argv[optind - 1][1] != '-') {
    return cs_error_set(err, opt == ':' ? "option '-%c' wants a value" : "unknown option '-%c'",
                        optopt);
  }
  return cs_error_set(err, opt == ':' ? "option '%s' wants a value" : "unknown option '%s'",
                      argv[optind - 1]);
}

bool cs_parse_options(const struct cs_option_set *set, void *self, int argc, char **argv,
                      bool *help, struct cs_error *err) {
  int opt;
  opterr = 0;
  optind = 0;  // unlike 1, it also forgets what another verb's letters began with
  while ((opt = getopt_long(argc, argv, set->letters, set->options, NULL)) != -1) {
    if (opt == 'h') return *help = true;
    if (opt == ':' || opt == '?') return refused(opt, argv, err);
    if (!set->apply(self, opt, optarg, err)) return false;
  }
  return true;
}

static bool apply_json(void *self, int opt, const char *value, struct cs_error *err) {
  (void)opt, (void)value, (void)err;
  return *(bool *)self = true;
}

static const struct option only_json[] = {
    {"json", no_argument, NULL, 256}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
const struct cs_option_set cs_only_json = {"+:h", only_json, apply_json};

bool cs_parse_view(struct cs_view *view, int opt, const char *arg, struct cs_error *err) {
  bool second = false;
  switch (opt) {
    case CS_OPT_FORMAT:
      return cs_view_set_format(view, arg, err);
    case CS_OPT_NATIVE:
      if (!cs_parse_word("--native", arg, "on", "off", &second, err)) return false;
      view->native = !second;
      return true;
    case CS_OPT_SIGNATURES:
      return cs_parse_word("--signatures", arg, "off", "on", &view->signatures, err);
    case CS_OPT_BY_TRACE:
      view->by_trace = true;
      return true;
    case CS_OPT_RAW_NAMES:
      view->raw_names = true;
      return true;
    case CS_OPT_ASYNC_CALLERS:
      if (!cs_parse_word("--async-callers", arg, "on", "off", &second, err)) return false;
      view->async_callers = !second;
      return true;
    case CS_OPT_THREADS:
      return cs_parse_word("--threads", arg, "grouped", "each", &view->each_thread, err);
    case CS_OPT_TOP:
      return cs_parse_number("--top", arg, 1000000, &view->top, err);
    case CS_OPT_PUSH:
      view->wish.url = arg;
      return true;
    case CS_OPT_PUSH_HEADER:
      if (view->wish.header_count == CS_PUSH_MAX_HEADERS)
        return cs_error_set(err, "there can be %d headers at most", CS_PUSH_MAX_HEADERS);
      view->wish.headers[view->wish.header_count++] = arg;
      return true;
    case CS_OPT_SERVICE:
      view->wish.service = arg;
      return true;
    default:
      return cs_view_add_output(view, arg, err);
  }
}

void cs_print_formats(FILE *out) {
  size_t count;
  const struct cs_format *formats = cs_formats(&count);
  cs_print(out, "\nFormats, and the suffixes that tell them:\n");
  for (size_t i = 0; i < count; i++) {
    cs_print(out, "  %-12s%-18s %s\n", formats[i].name, formats[i].suffixes[0], formats[i].about);
  }
}
