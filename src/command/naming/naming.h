// SPDX-License-Identifier: MIT
// Names of native functions and source lines for a recording, from files. One thread.
#pragma once

#include "recording/recording.h"

// Sets the process that names come from, through the files that it has mapped, as long as it
// exists: so each image's file must be opened when its record arrives. Without this, names come
// from this machine's files if those have the recorded ids. May be called again for another process
// until the first image is opened.
void cs_name_from(struct cs_recording *rec, pid_t pid);
void cs_name_open_image(struct cs_recording *rec, uint32_t image_id);
// Adds the names of native functions and the source lines. A file other than the recorded one is
// not used. Only this asks servers (rec->sources), so the recording is over by then. Does nothing
// if the names are there.
void cs_name_frames(struct cs_recording *rec);
// The same for the frames from `first` on; `line_facts` then covers only those.
void cs_name_frames_from(struct cs_recording *rec, size_t first);

// For a recording that grows: finds the name of one function of native code or of the kernel, if it
// has one.
void cs_name_native_frame(struct cs_recording *rec, uint64_t frame);
