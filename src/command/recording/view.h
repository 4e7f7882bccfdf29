// SPDX-License-Identifier: MIT
// What is made of a recording, by `record` at its end and by `report` from the file: the same
// options, the same files, the same summary.
#ifndef CS_RECORDING_VIEW_H
#define CS_RECORDING_VIEW_H

#include "formats/format.h"
#include "push/push.h"
#include "recording/output.h"
#include "recording/recording.h"

#define CS_VIEW_MAX_OUTPUTS 16

struct cs_view_output {
  const char *path;  // "-": standard output
  const struct cs_format *format;
  struct cs_output file;
};

struct cs_view {
  struct cs_view_output outputs[CS_VIEW_MAX_OUTPUTS];
  unsigned count;
  const struct cs_format *format;  // of --format; NULL: by suffix
  bool native, signatures, no_lines, raw_names, each_thread, async_callers, by_trace;
  uint32_t modes;  // of those that were recorded, CS_WIRE_MODE_BITs; 0: all
  uint32_t top;    // 0: no table
  char *name;      // one that was made up for the output
  struct cs_push_wish wish;
  struct cs_push *push;  // open, if there is somewhere to push to
  bool in_windows;       // what is pushed is not the whole, but was added while it was recorded
};

// One option's value into the view. `arg` must live as long as the view.
bool cs_view_add_output(struct cs_view *view, const char *arg, struct cs_error *err);
bool cs_view_set_format(struct cs_view *view, const char *arg, struct cs_error *err);
// When all options are there: every output gets its format; without an output or a push there is
// one, named `stem` and the format's suffix.
bool cs_view_settle(struct cs_view *view, const char *stem, struct cs_error *err);
// Can every output show these modes? False: *err says which one cannot.
bool cs_view_fits(const struct cs_view *view, uint32_t modes, struct cs_error *err);
bool cs_view_wants_whole(const struct cs_view *view);  // not only what is pushed in windows
bool cs_view_timeline(const struct cs_view *view);     // a format wants samples one by one
// The path for the recording itself; NULL: it is not wanted.
const char *cs_view_recording(const struct cs_view *view);

// Opens all files but the recording, so that what cannot be written is known beforehand, and the
// push.
bool cs_view_open(struct cs_view *view, struct cs_error *err);
// Which of a recording's modes are wanted. False: it has none of them.
bool cs_view_choose(struct cs_view *view, const struct cs_recording *rec, struct cs_error *err);
// Profiles of these modes of a recording, as the view's options want them: cs_resolve.
size_t cs_view_resolve(const struct cs_view *view, const struct cs_recording *rec, uint32_t modes,
                       bool group_threads, struct cs_profile *profiles);
// Names the frames, prints the summary and the table, writes the files and pushes. False: not all
// of it could be done, and it has been said.
bool cs_view_write(struct cs_view *view, struct cs_recording *rec);
void cs_view_close(struct cs_view *view);  // what was not written is taken away

// Is what a format makes of recordings of so many bytes no more than a bounded multiple of that? If
// not it is said that `path` is not written (fits.c).
bool cs_fits(const char *path, const struct cs_profile_set *set, enum cs_expansion expansion,
             uint64_t recording_bytes);

#endif
