// SPDX-License-Identifier: MIT
// images: the table of the ELF images of this process, kept up to date. Not for handlers, except
// where a function says so.
#pragma once

#include "life/library.h"

struct cs_images;

bool cs_library_images_init(void);  // at start; returns false if there is no memory
// Gives back the memory of the cached rules of call sites, when no walk is in progress.
void cs_library_images_rest(void);
// Looks for ELF images that have been loaded or unloaded, and publishes the new table. Costs a read
// of /proc/self/maps even if nothing has changed, so it is called now and then, and when a walk has
// met unknown code.
bool cs_library_refresh_images(void);  // true: there is a new table
// The same, in some milliseconds, or as long as one image takes; the others are left for the next
// call (cs_library_images_are_left).
bool cs_library_refresh_images_briefly(void);
// Notes that a walk in a handler has met unknown code, and could not look for new images.
// Async-signal-safe.
void cs_library_note_unknown_code(void);
// Refreshes if that has happened since the last time.
void cs_library_refresh_after_handlers(void);
// Returns whether images have come or gone since the table was made, and none is just coming or
// going. A few loads.
bool cs_library_images_are_old(void);
// Returns whether the last refresh was brief, and has left images.
bool cs_library_images_are_left(void);
// For the one caller that names frames later, by the table that their walk used: keeps tables from
// that number on (UINT32_MAX: none), and finds the table of a walk (native/native.h).
uint32_t cs_library_images_sequence(void);  // of the newest
void cs_library_images_keep(uint32_t sequence);
const struct cs_images *cs_library_images_of(uint64_t loaded, uint32_t sequence, bool *exact);
