// SPDX-License-Identifier: MIT
// native: builds the tables of the component images: reads the maps of a process, and compiles
// .eh_frame into rows. Signal-safe: no.
#pragma once

#include "images/images.h"

struct cs_native;  // the builder; owns all compiled images, and the interned rules
// Makes a builder for this process (pid 0) or another one. Returns NULL if out of memory.
struct cs_native *cs_native_new(int pid);
// Reads /proc/PID/maps, compiles new images, drops those that are gone, and returns the current
// table (the same pointer as before if nothing has changed). Never takes the dynamic loader's lock.
// Old tables are kept until cs_native_retire. To be called by one thread at a time. Returns NULL
// only if there has never been a table, because memory ran out or the maps cannot be read.
const struct cs_images *cs_native_refresh(struct cs_native *native);
// The same, but begins to compile no image, except one, when `limit_ns` nanoseconds are over; the
// images that are left are not in the table, which counts as unsettled, until a later call.
const struct cs_images *cs_native_refresh_in(struct cs_native *native, uint64_t limit_ns);
#define CS_NATIVE_NO_LIMIT (UINT64_MAX / 2)
// Returns whether the last call has left images.
bool cs_native_has_left(const struct cs_native *native);
// Frees all tables but the newest and `still_used` (which may be NULL), and the images that are
// only in freed ones. To be called when no handler reads those tables any more.
void cs_native_retire(struct cs_native *native, const struct cs_images *still_used);
// Keeps tables from number `sequence` on from being retired, because samples that refer to them
// have no names yet. UINT32_MAX, the initial value, allows all to be retired.
void cs_native_keep(struct cs_native *native, uint32_t sequence);
// Returns whether there are tables besides the newest.
bool cs_native_has_older(const struct cs_native *native);
// Returns the table for which cs_loader_now was `loaded`, with *exact set, or else the one with
// number `sequence`; NULL if both are gone.
const struct cs_images *cs_native_table(const struct cs_native *native, uint64_t loaded,
                                        uint32_t sequence, bool *exact);
void cs_native_free(struct cs_native *native);
// Returns the counters that show whether images have been loaded or unloaded; NULL for another
// process.
const struct cs_loader *cs_native_loader(const struct cs_native *native);
// Returns whether all images of `before` (which may be NULL) are in `now`. Neither may have been
// retired.
bool cs_images_all_stay(const struct cs_images *before, const struct cs_images *now);

// Finds the words of the dynamic loader to watch. Takes the loader's lock briefly, for the list of
// images, so it is called once, at start. Returns false if they are not found; the images then
// count as unsettled for good. Not for handlers.
bool cs_loader_init(struct cs_loader *loader);
