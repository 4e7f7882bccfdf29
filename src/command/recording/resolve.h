// SPDX-License-Identifier: MIT
// From a recording (ids, addresses) to a profile (names). One thread.
#ifndef CS_RECORDING_RESOLVE_H
#define CS_RECORDING_RESOLVE_H

#include "recording/inlined.h"
#include "recording/recording.h"

struct cs_resolve_opts {
  bool native;         // with native frames, or managed ones only
  bool signatures;     // methods with their parameters, so that overloads are told apart
  bool lines;          // a frame for each line of a method, "Type.Method (File.cs:12)"
  bool raw_names;      // as compilers made them, and every frame as it was on the stack
  bool async_callers;  // who awaits in place of who has resumed; else the stack as it was
  bool group_threads;  // those of one name are one, as the thread pool's
};

// Makes a profile for each of `modes` (CS_WIRE_MODE_BITs), in their order, of a recording whose
// frames have been named (cs_name_frames); returns how many. They point into the recording, which
// must live longer.
size_t cs_resolve(const struct cs_recording *rec, uint32_t modes,
                  const struct cs_resolve_opts *opts, struct cs_profile *profiles);

// The same for one frame of a recording that still grows, native ones included, without lines.
struct cs_resolved {
  uint32_t methods[CS_INLINED_DEPTH];  // frames of the profile, each inlined into the one before
  size_t count;                        // at least 1
  bool awaits, resumes;  // it is not on the stack but awaits; it has resumed what is awaited
};
// False: a record that names it has not come yet; *out is for the time being.
bool cs_resolve_frame(const struct cs_recording *rec, size_t frame, struct cs_profile *profile,
                      struct cs_resolved *out);

#endif
