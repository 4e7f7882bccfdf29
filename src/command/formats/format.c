// SPDX-License-Identifier: MIT
// The table of formats. One thread. Signal-safe: no.
#include "formats/format.h"

#include <string.h>

#include "base/path.h"
#include "base/print.h"
#include "formats/writers.h"

static const struct cs_format formats[] = {
    {"html",
     {".html", ".htm"},
     "a page for the browser: flame graph, timeline, methods",
     true,
     false,
     CS_MODES_ALL,
     CS_EXPAND_NOTHING,
     cs_write_html},
    {"collapsed",
     {".collapsed", ".folded"},
     "one line per stack; counts are nanoseconds, bytes or events",
     false,
     false,
     CS_MODES_ONE,
     CS_EXPAND_STACKS,
     cs_write_collapsed},
    {"json",
     {".json"},
     "for scripts: call tree, samples in time, names",
     true,
     false,
     CS_MODES_ALL,
     CS_EXPAND_NOTHING,
     cs_write_json},
    {"text",
     {".txt", ".tree"},
     "the call tree, indented, hottest first",
     false,
     false,
     CS_MODES_ALL,
     CS_EXPAND_NOTHING,
     cs_write_text},
    {"md",
     {".md", ".markdown"},
     "a summary of at most 4 KB, for people and assistants",
     false,
     false,
     CS_MODES_ALL,
     CS_EXPAND_NOTHING,
     cs_write_markdown},
    {"pprof",
     {".pb.gz", ".pprof"},
     "for `go tool pprof` and compatible tools",
     false,
     true,
     CS_MODES_ALL,
     CS_EXPAND_STACKS,
     cs_write_pprof},
    {"otlp",
     {".otlp"},
     "OpenTelemetry's profiles: the request that --push posts",
     false,
     true,
     CS_MODES_ALL,
     CS_EXPAND_STACKS,
     cs_write_otlp},
    {"speedscope",
     {".speedscope.json", ".speedscope"},
     "for speedscope: each thread over time",
     true,
     true,
     CS_MODES_ALL,
     CS_EXPAND_SAMPLES,
     cs_write_speedscope},
    {"firefox",
     {".firefox.json", ".profile.json"},
     "for the Firefox Profiler, processed format",
     true,
     true,
     CS_MODES_ONE_TIMED,
     CS_EXPAND_NOTHING,
     cs_write_firefox},
    {"chromium",
     {".trace.json", ".trace"},
     "trace events, for Perfetto and chrome://tracing",
     true,
     true,
     CS_MODES_ONE_TIMED,
     CS_EXPAND_CHANGES,
     cs_write_chromium},
    {"recording",
     {".clrsnap"},
     "everything, for clrsnap report",
     false,
     false,
     CS_MODES_ALL,
     CS_EXPAND_NOTHING,
     NULL},
};

const struct cs_format *cs_formats(size_t *count) {
  *count = CS_COUNT(formats);
  return formats;
}

const struct cs_format *cs_format_by_name(const char *name) {
  for (size_t i = 0; i < CS_COUNT(formats); i++) {
    if (strcmp(formats[i].name, name) == 0) return &formats[i];
  }
  return NULL;
}

static size_t fitting(const struct cs_format *format, const char *path) {
  size_t longest = 0, len = strlen(path);
  for (size_t i = 0; i < CS_COUNT(format->suffixes) && format->suffixes[i] != NULL; i++) {
    size_t suffix = strlen(format->suffixes[i]);
    if (suffix < len && suffix > longest && strcmp(path + len - suffix, format->suffixes[i]) == 0)
      longest = suffix;
  }
  return longest;
}

const struct cs_format *cs_format_by_path(const char *path) {
  const struct cs_format *best = NULL;
  for (size_t i = 0; i < CS_COUNT(formats); i++) {
    size_t len = fitting(&formats[i], path);
    if (len > 0 && (best == NULL || len > fitting(best, path))) best = &formats[i];
  }
  return best;
}

// OTLP's own JSON, which nothing here writes, has this suffix.
bool cs_format_check_name(const char *path, struct cs_error *err) {
  static const char otlp_json[] = ".otlp.json";
  size_t len = strlen(path), suffix = sizeof otlp_json - 1;
  if (len < suffix || strcmp(path + len - suffix, otlp_json) != 0) return true;
  return cs_error_set(err,
                      "'%s': there is no OTLP in JSON: .otlp is OTLP (protobuf), and .json is "
                      "clrsnap's own format",
                      path);
}

// What the formats are called elsewhere.
static const struct {
  const char *word, *name;
} elsewhere[] = {{"flamegraph", "html"},  {"svg", "html"},          {"markdown", "md"},
                 {"stacks", "collapsed"}, {"perfetto", "chromium"}, {"gecko", "firefox"},
                 {"protobuf", "pprof"},   {"clrsnap", "recording"}};

static void offer(struct cs_spelling *spelling, const char *word, const struct cs_format *format,
                  const struct cs_format **found) {
  const char *before = spelling->found;
  cs_spelling_offer(spelling, word, strlen(word));
  if (spelling->found != before) *found = format;
}

static const struct cs_format *nearest(struct cs_spelling *spelling) {
  const struct cs_format *found = NULL;
  for (size_t i = 0; i < CS_COUNT(formats); i++) {
    offer(spelling, formats[i].name, &formats[i], &found);
    for (size_t k = 0; k < CS_COUNT(formats[i].suffixes) && formats[i].suffixes[k] != NULL; k++)
      offer(spelling, formats[i].suffixes[k] + 1, &formats[i], &found);
  }
  for (size_t i = 0; i < CS_COUNT(elsewhere); i++)
    offer(spelling, elsewhere[i].word, cs_format_by_name(elsewhere[i].name), &found);
  return found;
}

void cs_format_suggest(struct cs_spelling *spelling) {
  const struct cs_format *format = nearest(spelling);
  spelling->found = format != NULL ? format->name : NULL;
  spelling->found_len = format != NULL ? strlen(format->name) : 0;
}

const struct cs_format *cs_format_suggest_suffix(const char *path, struct cs_spelling *spelling) {
  const char *file = cs_file_of(path);
  const struct cs_format *best = NULL;
  for (const char *dot = file[0] != '\0' ? strchr(file + 1, '.') : NULL; dot != NULL;
       dot = strchr(dot + 1, '.')) {
    struct cs_spelling suffix = {.word = dot + 1};
    const struct cs_format *format = dot[1] != '\0' ? nearest(&suffix) : NULL;
    if (format == NULL || (best != NULL && suffix.distance >= spelling->distance)) continue;
    best = format;
    *spelling = suffix;
    spelling->found = format->suffixes[0];
    spelling->found_len = strlen(spelling->found);
  }
  return best;
}

static char *list(bool suffixes) {
  char *text = NULL;
  size_t len = 0;
  FILE *out = open_memstream(&text, &len);
  if (out == NULL) return NULL;
  for (size_t i = 0; i < CS_COUNT(formats); i++)
    cs_print(out, "%s%s", i > 0 ? ", " : "", suffixes ? formats[i].suffixes[0] : formats[i].name);
  (void)fclose(out);
  return text;
}

char *cs_format_names(void) {
  return list(false);
}

char *cs_format_suffixes(void) {
  return list(true);
}
