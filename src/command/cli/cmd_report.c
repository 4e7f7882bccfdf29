// SPDX-License-Identifier: MIT
// `clrsnap report`: a recording file into what `record` could have written at its end. One thread.
// Signal-safe: no.
#include <stdio.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "recording/recfile.h"
#include "util/say.h"

static bool report(struct cs_report_options *o, struct cs_recording *rec) {
  struct cs_error err, note;
  rec->keep_samples = cs_view_timeline(&o->view);
  rec->only = o->one_trace ? &o->trace : NULL;
  if (!cs_recfile_read(o->file, rec, &note, &err) || !cs_view_choose(&o->view, rec, &err) ||
      !cs_view_open(&o->view, &err)) {
    cs_say("%s", err.text);
    return false;
  }
  if (note.text[0] != '\0') cs_say("%s", note.text);
  if (o->one_trace && rec->taken == 0) {
    cs_say("%s has no sample with that label (%u different labels are in it)", o->file,
           cs_labels_count(&rec->labels) - 1);
    return false;
  }
  return cs_view_write(&o->view, rec);
}

int cs_cmd_report(int argc, char **argv) {
  static struct cs_recording rec;  // its histogram is large for a stack
  struct cs_report_options options;
  struct cs_error err;
  if (!cs_report_options_parse(&options, argc, argv, &err)) {
    cs_view_close(&options.view);
    cs_say("%s; 'clrsnap help report' lists the options", err.text);
    return CS_EXIT_USAGE;
  }
  if (options.help) {
    cs_report_print_help(stdout);
    return 0;
  }
  cs_recording_init(&rec);
  bool ok = report(&options, &rec);
  cs_view_close(&options.view);
  cs_recording_free(&rec);
  return ok ? 0 : CS_EXIT_FAILURE;
}
