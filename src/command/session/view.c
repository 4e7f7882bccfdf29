// SPDX-License-Identifier: MIT
// From a recording to files. Invariant: nothing here depends on where the recording came from, so a
// report from a file is the same as at the end of the program. One thread. Signal-safe: no.
#include "session/view.h"
#include "naming/naming.h"

#include <stdlib.h>
#include <string.h>

#include "base/perf.h"
#include "formats/writers.h"
#include "naming/endpoints.h"
#include "naming/resolve.h"
#include "profile/traces.h"
#include "session/summary.h"
#include "util/say.h"

bool cs_view_add_output(struct cs_view *view, const char *arg, struct cs_error *err) {
  if (arg[0] == '\0') return cs_error_set(err, "--output takes a name");
  if (view->count == CS_VIEW_MAX_OUTPUTS)
    return cs_error_set(err, "there can be %d outputs at most", CS_VIEW_MAX_OUTPUTS);
  for (unsigned i = 0; i < view->count; i++)
    if (strcmp(view->outputs[i].path, arg) == 0)
      return cs_error_set(err, "two outputs have the name '%s'", arg);
  view->outputs[view->count++] = (struct cs_view_output){.path = arg};
  return true;
}

bool cs_view_set_format(struct cs_view *view, const char *arg, struct cs_error *err) {
  view->format = cs_format_by_name(arg);
  if (view->format != NULL) return true;
  char *names = cs_format_names();
  struct cs_spelling near = {.word = arg};
  cs_format_suggest(&near);
  (void)cs_error_set(err, "--format takes one of %s, not '%s'", names != NULL ? names : "", arg);
  free(names);
  return cs_spelling_suggest(&near, "", err);
}

// Standard output is read by a person, or by a program whose command line has --format.
static const struct cs_format *format_of(const char *path) {
  return cs_output_is_stdout(path) ? cs_format_by_name("text") : cs_format_by_path(path);
}

static bool refuse_name(const char *path, struct cs_error *err) {
  char *suffixes = cs_format_suffixes();
  struct cs_spelling near = {0};
  cs_format_suggest_suffix(path, &near);
  (void)cs_error_set(err, "a format is chosen by %s, or by --format: '%s' has none of these",
                     suffixes != NULL ? suffixes : "the suffix", path);
  free(suffixes);
  return cs_spelling_suggest(&near, "", err);
}

static bool settle_formats(struct cs_view *view, struct cs_error *err) {
  unsigned recordings = 0;
  for (unsigned i = 0; i < view->count; i++) {
    struct cs_view_output *o = &view->outputs[i];
    o->format = view->format != NULL ? view->format : format_of(o->path);
    if (o->format == NULL) return refuse_name(o->path, err);
    if (view->format == NULL && !cs_format_check_name(o->path, err)) return false;
    if (o->format->write == NULL && recordings++ > 0)
      return cs_error_set(err, "there can be one recording only");
  }
  return true;
}

bool cs_view_settle(struct cs_view *view, const char *stem, struct cs_error *err) {
  if (view->format != NULL && view->count > 1) return cs_error_set(err, CS_VIEW_ONE_FORMAT);
  if (view->by_trace && view->by_route)
    return cs_error_set(err, "--by-trace and --by-route cannot be combined");
  if (view->count == 0 && (view->push_options.url == NULL || view->format != NULL)) {
    const struct cs_format *format =
        view->format != NULL ? view->format : cs_format_by_name("html");
    if (asprintf(&view->name, "%s%s", stem, format->suffixes[0]) < 0) {
      view->name = NULL;
      return cs_error_set(err, "out of memory");
    }
    view->outputs[view->count++] = (struct cs_view_output){.path = view->name};
  }
  return settle_formats(view, err);
}

bool cs_view_wants_whole(const struct cs_view *view) {
  return view->count > 0 || view->top > 0 || view->search != NULL || !view->in_windows;
}

// Which modes are too many for an output, and what to do: in a report they are chosen here.
static bool refuse_modes(const struct cs_view_output *output, const char *shows, uint32_t modes,
                         bool report, struct cs_error *err) {
  char names[CS_MODE_NAMES_BYTES];
  return cs_error_set(err, "'%s': the format %s shows %s, and these are %s: %s; %s", output->path,
                      output->format->name, shows, report ? "to be shown" : "to be recorded",
                      cs_mode_names(modes, names),
                      report ? "choose with --mode"
                             : "make a recording (-o FILE.clrsnap) and choose with 'clrsnap "
                               "report --mode', or leave that output out");
}

static bool fits(const struct cs_view *view, uint32_t modes, bool report, struct cs_error *err) {
  for (unsigned i = 0; i < view->count; i++) {
    const struct cs_view_output *o = &view->outputs[i];
    if (o->format->several == CS_MODES_ONE && (modes & (modes - 1)) != 0)
      return refuse_modes(o, "one mode at a time", modes, report, err);
    if (o->format->several == CS_MODES_ONE_TIMED &&
        (modes & CS_WIRE_TIMED_MODES) == CS_WIRE_TIMED_MODES)
      return refuse_modes(o, "one of cpu and wall", modes, report, err);
  }
  return true;
}

bool cs_view_fits(const struct cs_view *view, uint32_t modes, struct cs_error *err) {
  return fits(view, modes, false, err);
}

bool cs_view_choose(struct cs_view *view, const struct cs_recording *rec, struct cs_error *err) {
  uint32_t wanted = view->modes != 0 ? view->modes : UINT32_MAX,
           missing = wanted & ~rec->meta.modes;
  char names[CS_MODE_NAMES_BYTES];
  if (view->modes != 0 && missing != 0)
    return cs_error_set(err, "the recording has no %s mode; it has: %s",
                        cs_mode((enum cs_wire_mode)__builtin_ctz(missing))->token,
                        cs_mode_names(rec->meta.modes, names));
  if (view->event != 0 && view->event != rec->meta.event)
    return cs_error_set(err, "the recording has no %s mode: it counts %s in cpu mode; it has: %s",
                        cs_perf_kind(view->event)->name, cs_perf_kind(rec->meta.event)->words,
                        cs_mode_names(rec->meta.modes, names));
  view->modes = rec->meta.modes & wanted;
  return fits(view, view->modes, true, err);
}

bool cs_view_timeline(const struct cs_view *view) {
  for (unsigned i = 0; i < view->count; i++) {
    if (view->outputs[i].format->timeline) return true;
  }
  return false;
}

const char *cs_view_recording(const struct cs_view *view) {
  for (unsigned i = 0; i < view->count; i++) {
    if (view->outputs[i].format->write == NULL) return view->outputs[i].path;
  }
  return NULL;
}

bool cs_view_open(struct cs_view *view, struct cs_error *err) {
  for (unsigned i = 0; i < view->count; i++) {
    struct cs_view_output *o = &view->outputs[i];
    if (o->format->write == NULL) continue;
    bool opened = cs_output_is_stdout(o->path) ? cs_output_stdout(&o->file, err)
                                               : cs_output_open(&o->file, o->path, err);
    if (!opened) return false;
  }
  if (!cs_symbol_sources_open(&view->sources, err)) return false;
  if (view->push_options.url == NULL) return true;
  view->push = cs_push_open(&view->push_options, err);
  return view->push != NULL;
}

struct content {
  const struct cs_profile_set *set;
  const struct cs_format *format;
};

static bool write_content(void *context, FILE *file) {
  const struct content *c = context;
  return c->format->write(c->set, file);
}

static bool write_output(struct cs_view_output *o, const struct cs_profile_set *set,
                         uint64_t recording_bytes) {
  struct content content = {set, o->format};
  struct cs_error err;
  if (!cs_output_is_bounded(o->path, set, o->format->expansion, recording_bytes)) return false;
  if (!cs_output_commit(&o->file, write_content, &content, &err)) {
    cs_say("%s", err.text);
    return false;
  }
  if (!cs_output_is_stdout(o->path)) cs_say("wrote %s", o->path);
  return true;
}

struct resolved {
  struct cs_profile profiles[CS_WIRE_MODES];
  struct cs_profile_set set;  // count 0: not resolved yet
};

size_t cs_view_resolve(const struct cs_view *view, const struct cs_recording *rec, uint32_t modes,
                       bool group_threads, bool group_labels, struct cs_profile *profiles) {
  const struct cs_resolve_opts opts = {.native = view->native,
                                       .signatures = view->signatures,
                                       .lines = rec->lines && !view->no_lines,
                                       .raw_names = view->raw_names,
                                       .async_callers = view->async_callers && !view->raw_names,
                                       .group_threads = group_threads};
  size_t count = cs_resolve(rec, modes, &opts, profiles);
  for (size_t i = 0; i < count; i++) {
    struct cs_profile *p = &profiles[i];
    p->by_route = view->by_route;
    p->with_idle = view->idle;
    if (group_labels && view->by_trace) cs_group_by_trace(p);
    if (group_labels && view->by_route) cs_group_by_endpoint(p);
  }
  return count;
}

static const struct cs_profile_set *resolve(const struct cs_view *view,
                                            const struct cs_recording *rec, bool each_thread,
                                            bool is_page, struct resolved resolved[3]) {
  struct resolved *r = &resolved[is_page ? 2 : each_thread];
  r->set.profiles = r->profiles;
  if (r->set.count == 0)
    r->set.count = cs_view_resolve(view, rec, view->modes, !each_thread, !is_page, r->profiles);
  return &r->set;
}

// A pushed profile has one mode, as its readers expect.
static void push(const struct cs_view *view, const struct cs_profile_set *set) {
  for (size_t i = 0; i < set->count; i++) cs_push_add(view->push, &set->profiles[i]);
}

// A grouping that the recording has nothing for.
static void check_grouping(const struct cs_view *view, const struct cs_recording *rec) {
  bool labels = cs_labels_count(&rec->labels) > 1, routes = false;
  const char **endpoints = cs_endpoints_by_label(rec);
  for (uint32_t i = 1; i < cs_labels_count(&rec->labels); i++) routes |= endpoints[i][0] != '\0';
  if (view->by_trace && !labels)
    cs_say("--by-trace changes nothing: the recording has no labels; record with --labels");
  if (view->by_route && !routes)
    cs_say(
        "--by-route changes nothing: the recording has no routes; record with --labels, while "
        "requests come in that have an Activity");
  free(endpoints);
}

bool cs_view_write(struct cs_view *view, struct cs_recording *rec) {
  // With threads grouped, each by itself, and for the page, which groups by route and chooses
  // traces.
  struct resolved resolved[3] = {0};
  cs_name_frames(rec);
  const struct cs_profile_set *set = resolve(view, rec, view->each_thread, false, resolved);
  cs_print_summary(set, stderr);
  for (size_t i = 0; i < set->count && view->top > 0; i++)
    cs_write_top(&set->profiles[i], view->top, "clrsnap: ", stderr);
  check_grouping(view, rec);
  if (view->search != NULL) cs_write_search(set, view->search, "clrsnap: ", stderr);
  for (unsigned i = 0; i < view->count; i++) {
    struct cs_view_output *o = &view->outputs[i];
    if (o->format->write == NULL) continue;
    bool each = view->each_thread || o->format->each_thread;
    bool is_page = o->format->write == cs_write_html;
    o->file.sole = view->sole;
    if (!write_output(o, resolve(view, rec, each, is_page, resolved), rec->bytes))
      view->unwritten = true;
  }
  if (view->push != NULL && !view->in_windows)
    push(view, resolve(view, rec, true, false, resolved));
  for (int i = 0; i < 3; i++)
    for (size_t m = 0; m < resolved[i].set.count; m++) cs_profile_free(&resolved[i].profiles[m]);
  return (view->push == NULL || cs_push_finish(view->push)) && !view->unwritten;
}

struct cs_symbol_sources *cs_view_sources(struct cs_view *view) {
  return cs_symbol_sources_any(&view->sources) ? &view->sources : NULL;
}

void cs_view_close(struct cs_view *view) {
  for (unsigned i = 0; i < view->count; i++) cs_output_abandon(&view->outputs[i].file);
  cs_push_close(view->push);
  cs_symbol_sources_close(&view->sources);
  free(view->name);
  memset(view, 0, sizeof *view);
}
