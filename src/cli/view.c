// SPDX-License-Identifier: MIT
// From a recording to files. Invariant: nothing here knows where the recording came from, so a file
// reported from is shown as the program was when it ended. One thread. Signal-safe: no.
#include "cli/view.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/resolve.h"
#include "cli/summary.h"

bool cs_view_add_output(struct cs_view *view, const char *arg, struct cs_error *err) {
  if (arg[0] == '\0') return cs_error_set(err, "--output wants a name");
  if (view->count == CS_VIEW_MAX_OUTPUTS)
    return cs_error_set(err, "there can be %d outputs at most", CS_VIEW_MAX_OUTPUTS);
  view->outputs[view->count++] = (struct cs_view_output){.path = arg};
  return true;
}

bool cs_view_set_format(struct cs_view *view, const char *arg, struct cs_error *err) {
  view->format = cs_format_by_name(arg);
  if (view->format != NULL) return true;
  char *names = cs_format_names();
  (void)cs_error_set(err, "--format wants one of %s, not '%s'", names != NULL ? names : "", arg);
  free(names);
  return false;
}

static bool settle_formats(struct cs_view *view, struct cs_error *err) {
  unsigned recordings = 0;
  for (unsigned i = 0; i < view->count; i++) {
    struct cs_view_output *o = &view->outputs[i];
    o->format = view->format != NULL ? view->format : cs_format_by_path(o->path);
    // One output may have any name; of several, each must tell what it is.
    if (o->format == NULL && view->count > 1)
      return cs_error_set(err, "the suffix of '%s' tells no format", o->path);
    if (o->format == NULL) o->format = cs_format_by_name("html");
    if (o->format->write == NULL && recordings++ > 0)
      return cs_error_set(err, "there can be one recording only");
  }
  return true;
}

bool cs_view_settle(struct cs_view *view, const char *stem, struct cs_error *err) {
  if (view->format != NULL && view->count > 1)
    return cs_error_set(err, "--format goes with one --output; of several the suffixes tell");
  if (view->count == 0 && (view->wish.url == NULL || view->format != NULL)) {
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
  return view->count > 0 || view->top > 0 || !view->in_windows;
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

static bool is_stdout(const struct cs_view_output *o) {
  return strcmp(o->path, "-") == 0;
}

bool cs_view_open(struct cs_view *view, struct cs_error *err) {
  for (unsigned i = 0; i < view->count; i++) {
    struct cs_view_output *o = &view->outputs[i];
    if (o->format->write == NULL) continue;
    bool opened =
        is_stdout(o) ? cs_output_stdout(&o->file, err) : cs_output_open(&o->file, o->path, err);
    if (!opened) return false;
  }
  if (view->wish.url == NULL) return true;
  view->push = cs_push_open(&view->wish, err);
  return view->push != NULL;
}

struct content {
  const struct cs_profile *profile;
  const struct cs_format *format;
};

static bool write_content(void *context, FILE *file) {
  const struct content *c = context;
  return c->format->write(c->profile, file);
}

static bool write_output(struct cs_view_output *o, const struct cs_profile *profile) {
  struct content content = {profile, o->format};
  struct cs_error err;
  if (!cs_output_commit(&o->file, write_content, &content, &err)) {
    cs_say("%s", err.text);
    return false;
  }
  if (!is_stdout(o)) cs_say("wrote %s", o->path);
  return true;
}

static void resolve(const struct cs_view *view, const struct cs_recording *rec, bool each_thread,
                    struct cs_profile *profile) {
  cs_profile_init(profile);
  cs_resolve(rec,
             &(struct cs_resolve_opts){.native = view->native,
                                       .signatures = view->signatures,
                                       .lines = rec->lines && !view->no_lines,
                                       .raw_names = view->raw_names,
                                       .group_threads = !each_thread},
             profile);
}

bool cs_view_write(struct cs_view *view, struct cs_recording *rec) {
  bool all = true, resolved[2] = {false, false};
  struct cs_profile profiles[2];  // with threads grouped, and each by itself
  cs_name_frames(rec);
  resolve(view, rec, view->each_thread, &profiles[view->each_thread]);
  resolved[view->each_thread] = true;
  cs_print_summary(&profiles[view->each_thread].facts, stderr);
  if (view->top > 0) cs_write_top(&profiles[view->each_thread], view->top, "clrsnap: ", stderr);
  for (unsigned i = 0; i < view->count; i++) {
    struct cs_view_output *o = &view->outputs[i];
    if (o->format->write == NULL) continue;
    bool each = view->each_thread || o->format->each_thread;
    if (!resolved[each]) resolve(view, rec, each, &profiles[each]);
    resolved[each] = true;
    all &= write_output(o, &profiles[each]);
  }
  if (view->push != NULL && !view->in_windows) {
    if (!resolved[1]) resolve(view, rec, true, &profiles[1]);
    resolved[1] = true;
    cs_push_add(view->push, &profiles[1]);
  }
  for (int i = 0; i < 2; i++)
    if (resolved[i]) cs_profile_free(&profiles[i]);
  return (view->push == NULL || cs_push_finish(view->push)) && all;
}

void cs_view_close(struct cs_view *view) {
  for (unsigned i = 0; i < view->count; i++) cs_output_abandon(&view->outputs[i].file);
  cs_push_close(view->push);
  free(view->name);
  memset(view, 0, sizeof *view);
}
