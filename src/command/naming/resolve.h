// SPDX-License-Identifier: MIT
// From a recording (ids, addresses) to a profile (names). One thread.
#pragma once

#include "naming/inlined.h"
#include "recording/recording.h"

struct cs_resolve_opts {
  bool native;         // with native frames, or managed ones only
  bool signatures;     // methods with their parameters, which distinguishes overloads
  bool lines;          // a frame for each line of a method, "Type.Method (File.cs:12)"
  bool raw_names;      // the compilers' names, and every frame as it was on the stack
  bool async_callers;  // awaiting methods in place of what has resumed them
  bool group_threads;  // threads of one name, such as the thread pool's, are one
};

// Makes a profile of each of `modes` (CS_WIRE_MODE_BITs), in their order, and returns their number.
// The recording's frames must be named (cs_name_frames). The profiles point into the recording,
// which must live longer.
size_t cs_resolve(const struct cs_recording *rec, uint32_t modes,
                  const struct cs_resolve_opts *opts, struct cs_profile *profiles);

// Resolves one frame of a recording that still grows, with native frames and without lines.
struct cs_resolved {
  uint32_t methods[CS_INLINED_DEPTH];  // frames of the profile, each inlined into the one before
  size_t count;                        // at least 1
  bool awaits, resumes;  // not on the stack, but awaiting; has resumed what is awaited
};
// Returns false if a record that names it has not arrived; *out is then provisional.
bool cs_resolve_frame(const struct cs_recording *rec, size_t frame, struct cs_profile *profile,
                      struct cs_resolved *out);
