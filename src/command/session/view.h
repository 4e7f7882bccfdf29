// SPDX-License-Identifier: MIT
// What `record` makes of a recording at its end, and `report` of the file: the same options, the
// same files, the same summary.
#pragma once

#include "formats/format.h"
#include "push/push.h"
#include "recording/output.h"
#include "recording/recording.h"
#include "symbols/sources.h"

#define CS_VIEW_MAX_OUTPUTS 16
#define CS_VIEW_ONE_FORMAT \
  "--format applies to one --output; several are told apart by their suffixes"

struct cs_view_output {
  const char *path;  // "-": standard output
  const struct cs_format *format;
  struct cs_output file;
};

struct cs_view {
  struct cs_view_output outputs[CS_VIEW_MAX_OUTPUTS];
  unsigned count;
  const struct cs_format *format;  // of --format; NULL: by suffix
  bool native, signatures, no_lines, raw_names, each_thread, async_callers, by_trace, by_route,
      idle;
  struct cs_symbol_sources sources;  // of --symbols
  uint32_t modes;                    // of the recorded ones, CS_WIRE_MODE_BITs; 0: all
  uint32_t event;                    // that cpu mode has to count (base/perf.h); 0: any
  uint32_t top;                      // 0: no table
  const char *search;                // NULL: nothing is searched for
  char *name;                        // the output's default name
  struct cs_push_options push_options;
  struct cs_push *push;  // open, if there is somewhere to push to
  bool in_windows;       // the push gets windows during the recording, not the whole
  bool sole;             // what is written is nowhere else: the recording is in no file
  bool unwritten;        // an output could not be written, which has been said
};

// Stores one option's value. `arg` must live as long as the view.
bool cs_view_add_output(struct cs_view *view, const char *arg, struct cs_error *err);
bool cs_view_set_format(struct cs_view *view, const char *arg, struct cs_error *err);
// To be called after all options: every output gets its format. Without an output or a push there
// is one output, named `stem` with the format's suffix.
bool cs_view_settle(struct cs_view *view, const char *stem, struct cs_error *err);
// Checks that every output can show these modes. Returns false on failure; *err names one that
// cannot.
bool cs_view_fits(const struct cs_view *view, uint32_t modes, struct cs_error *err);
bool cs_view_wants_whole(const struct cs_view *view);  // something other than windows is made
bool cs_view_timeline(const struct cs_view *view);     // a format shows samples one by one
// Returns the path of the output that is the recording itself, or NULL if there is none.
const char *cs_view_recording(const struct cs_view *view);

// Opens all files except the recording, the sources of symbols and the push, so that a failure
// shows before the program starts.
bool cs_view_open(struct cs_view *view, struct cs_error *err);
// Chooses among the recording's modes. Returns false if it has none of those that were asked for.
bool cs_view_choose(struct cs_view *view, const struct cs_recording *rec, struct cs_error *err);
// Profiles of these modes of a recording, as the view's options want them: cs_resolve. With
// `group_labels`, --by-trace and --by-route put frames into the stacks.
size_t cs_view_resolve(const struct cs_view *view, const struct cs_recording *rec, uint32_t modes,
                       bool group_threads, bool group_labels, struct cs_profile *profiles);
// Names the frames, prints the summary and the table, writes the files and pushes. Returns false if
// part of that failed, which has been reported.
bool cs_view_write(struct cs_view *view, struct cs_recording *rec);
// Returns the sources of symbols for a recording, or NULL if --symbols names none.
struct cs_symbol_sources *cs_view_sources(struct cs_view *view);
void cs_view_close(struct cs_view *view);  // removes what was not written

// Returns whether an output's size is within a bounded multiple of the recordings' size. If not,
// says that `path` is not written (fits.c).
bool cs_output_is_bounded(const char *path, const struct cs_profile_set *set,
                          enum cs_expansion expansion, uint64_t recording_bytes);
