// SPDX-License-Identifier: MIT
// `clrsnap report`: makes of a recording file everything that `record` can write at its end.
// One thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/verbs.h"
#include "naming/endpoints.h"
#include "recording/recfile.h"
#include "util/say.h"

struct options {
  struct cs_view view;
  const char *file;
  struct cs_label_choice choice;  // of samples by their label
  bool write;                     // false: only the table or the push is wanted
};

static bool set_trace(const struct cs_option *option, void *options, const char *value,
                      struct cs_error *err) {
  struct options *o = options;
  (void)option;
  return cs_parse_trace(value, &o->choice, err);
}

static bool set_status(const struct cs_option *option, void *options, const char *value,
                       struct cs_error *err) {
  struct options *o = options;
  (void)option;
  return cs_parse_status(value, &o->choice, err);
}

#define REPORT(member) .field = offsetof(struct options, member)
static const struct cs_option what[] = {
    {'o', "output", "OUT",
     "where to write (FILE's name with another suffix), - for standard output; can be given "
     "several times",
     cs_set_output, REPORT(view)},
    {0, "format", "FORMAT",
     "what to write, if OUT's suffix does not say (html; text on standard output)", cs_set_format,
     REPORT(view)},
    {0, "mode", "MODE[,MODE]",
     "only these of the recorded modes (all), or of the events: page-faults", cs_set_shown_modes,
     REPORT(view)},
    {0, "trace", "ID[:SPAN]", "only samples with this label: a trace, or one of its spans",
     set_trace, .field = 0},
    {0, "route", "ROUTE",
     "only samples of requests with this route, as the service declares it (/cart/{id}), or with "
     "this HTTP method and route (GET /cart/{id}); needs a recording with --labels",
     NULL, REPORT(choice.route)},
    {0, "status", "STATUS",
     "only samples of requests that have ended with this HTTP status (404), or with one of its "
     "group "
     "(5xx); needs a recording with --labels",
     set_status, .field = 0},
    {0, "no-lines", NULL, "whole methods, even where lines were recorded", NULL,
     REPORT(view.no_lines)},
    {0}};
static const struct cs_option_group groups[] = {
    {NULL, what, 0},
    {NULL, cs_view_options, offsetof(struct options, view)},
    {NULL, cs_push_options, offsetof(struct options, view)},
    {0}};
static const struct options defaults = {
    .view.native = true, .view.async_callers = true, .choice.any_trace = true};

// "busy.clrsnap" is "busy"; any other name is kept whole.
static char *stem_of(const char *file) {
  size_t len = strlen(file), suffix = strlen(".clrsnap");
  bool has = len > suffix && strcmp(file + len - suffix, ".clrsnap") == 0;
  return strndup(file, has ? len - suffix : len);
}

static bool check(void *options, int count, char **operands, struct cs_error *err) {
  struct options *o = options;
  struct cs_view *view = &o->view;
  if (count == 0) return cs_error_set(err, "no recording to report");
  if (count > 1) return cs_error_set(err, "one recording at a time: '%s'", operands[1]);
  if (!cs_push_check(&view->push_options, err)) return false;
  o->file = operands[0];
  o->write = view->count > 0 || view->format != NULL ||
             (view->top == 0 && view->search == NULL && view->push_options.url == NULL);
  if (!o->write) return true;
  char *stem = stem_of(o->file);
  bool settled =
      stem != NULL ? cs_view_settle(view, stem, err) : cs_error_set(err, "out of memory");
  free(stem);
  if (settled && cs_view_recording(view) != NULL)
    return cs_error_set(err, "'%s' is a recording already: no output can be one", o->file);
  return settled;
}

static void say_nothing_chosen(const struct options *o, const struct cs_recording *rec) {
  char *routes = cs_endpoints_list(rec);
  uint32_t labels = cs_labels_count(&rec->labels) - 1;
  if (o->choice.least_status != 0)
    cs_say("%s has no sample of a request that has ended with such a status%s", o->file,
           rec->statuses.count == 0
               ? ": it has no statuses; record with --labels, while requests end"
               : "");
  else if (o->choice.route == NULL)
    cs_say("%s has no sample with that label (%u different labels are in it)", o->file, labels);
  else if (routes[0] != '\0')
    cs_say("%s has no sample of that route; it has: %s", o->file, routes);
  else
    cs_say("%s has no routes: record with --labels, while requests come in", o->file);
  free(routes);
}

// The file has a status after the samples of its request, which are chosen by it.
static void read_statuses(const struct options *o, struct cs_recording *rec) {
  static struct cs_recording first;
  struct cs_error err, note;
  cs_recording_init(&first);
  if (cs_recfile_read(o->file, &first, &note, &err)) {
    rec->statuses = first.statuses;
    first.statuses = (struct cs_map){0};
  }
  cs_recording_free(&first);
}

static bool report(struct options *o, struct cs_recording *rec) {
  struct cs_error err, note;
  rec->keep_samples = cs_view_timeline(&o->view);
  bool chosen = !o->choice.any_trace || o->choice.route != NULL || o->choice.least_status != 0;
  if (o->choice.least_status != 0) read_statuses(o, rec);
  rec->only = chosen ? &o->choice : NULL;
  rec->sources = cs_view_sources(&o->view);
  if (!cs_recfile_read(o->file, rec, &note, &err) || !cs_view_choose(&o->view, rec, &err) ||
      !cs_view_open(&o->view, &err)) {
    cs_say("%s", err.text);
    return false;
  }
  if (note.text[0] != '\0') cs_say("%s", note.text);
  if (chosen && rec->taken == 0) {
    say_nothing_chosen(o, rec);
    return false;
  }
  return cs_view_write(&o->view, rec);
}

static int run(void *options) {
  static struct cs_recording rec;  // its histogram is large for a stack
  struct options *o = options;
  cs_recording_init(&rec);
  bool ok = report(o, &rec);
  cs_view_close(&o->view);
  cs_recording_free(&rec);
  return ok ? 0 : CS_EXIT_FAILURE;
}

const struct cs_command cs_report_command = {
    .name = "report",
    .summary = "make a flame graph or another format of a recording",
    .usage = "usage: clrsnap report [options] FILE\n",
    .about =
        "Makes a flame graph or another format of a recording (clrsnap record -o FILE.clrsnap). A "
        "recording that is still growing, or whose recorder was killed, is shown as far as it "
        "goes. With --top, --search or --push, and with neither --output nor --format, no file is "
        "written.",
    .groups = groups,
    .shows_formats = true,
    .examples =
        "  clrsnap report busy.clrsnap\n"
        "  clrsnap report --top 20 busy.clrsnap\n"
        "  clrsnap report --search 'Cart|Basket' busy.clrsnap\n"
        "  clrsnap report --mode alloc -o allocations.collapsed busy.clrsnap\n"
        "  clrsnap report --trace 4bf92f3577b34da6a3ce929d0e0e4736 busy.clrsnap\n"
        "  clrsnap report --native off -o busy.collapsed busy.clrsnap\n"
        "  clrsnap report --push otlp+http://collector:4318 busy.clrsnap\n",
    .size = sizeof(struct options),
    .defaults = &defaults,
    .check = check,
    .run = run};
