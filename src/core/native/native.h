// SPDX-License-Identifier: MIT
// native: makes the tables of the room images: reads the maps of a process, and compiles .eh_frame
// into rows. Signal-safe: no.
#ifndef CS_NATIVE_NATIVE_H
#define CS_NATIVE_NATIVE_H

#include "images/images.h"

struct cs_native;  // the builder: owns all images ever compiled, and the interned rules
// Makes a builder for this process (pid 0) or another one. NULL when out of memory.
struct cs_native *cs_native_new(int pid);
// Reads /proc/PID/maps, compiles what is new, drops what is gone, and returns the table as it
// stands (the same pointer as before when nothing changed). No dynamic-loader lock is taken, ever.
// Old tables are kept until cs_native_retire says that no handler reads them any more. One thread
// at a time. NULL only when there has never been a table: out of memory, or the maps cannot be
// read.
const struct cs_images *cs_native_refresh(struct cs_native *native);
// Frees every table but the newest and `still_used` (may be NULL), and the images that only the
// freed ones had.
void cs_native_retire(struct cs_native *native, const struct cs_images *still_used);
// Tables from this number on are not to be retired: samples that were walked by them have no names
// yet. UINT32_MAX (as it is at first): none is kept.
bool cs_native_has_older(const struct cs_native *native);  // than the newest table
void cs_native_keep(struct cs_native *native, uint32_t sequence);
// The table of exactly those images (cs_loader_now), or else the one of that number. NULL: neither
// is there any more. *exact says which.
const struct cs_images *cs_native_table(const struct cs_native *native, uint64_t loaded,
                                        uint32_t sequence, bool *exact);
void cs_native_free(struct cs_native *native);
// The counters that show whether images have come or gone since; NULL for another process than this
// one.
const struct cs_loader *cs_native_loader(const struct cs_native *native);
// Are all images of `before` (may be NULL) in `now`? Both not retired yet.
bool cs_images_all_stay(const struct cs_images *before, const struct cs_images *now);

// Finds what is to be watched. Takes the loader's lock for the list of images for a moment, so it
// is called once, at start. False: not found; then it is never settled. Not for handlers.
bool cs_loader_init(struct cs_loader *loader);

#endif
