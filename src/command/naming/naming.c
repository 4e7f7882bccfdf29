// SPDX-License-Identifier: MIT
// Names of native functions and source lines, from files. Invariant: a name comes from the file
// that was recorded, or from the PDB of the module that was loaded; files that are not proven to be
// those are not used, which is reported. One thread. Signal-safe: no.
#include "naming/naming.h"

#include <stdio.h>
#include <string.h>

#include "metadata/kallsyms.h"
#include "metadata/runtime_class.h"
#include "naming/inlined.h"
#include "naming/missing.h"
#include "naming/place.h"
#include "symbols/sources.h"

static const struct cs_target *target_of(struct cs_recording *rec) {
  if (rec->target == NULL) rec->target = cs_target_of(0);
  return rec->target;
}

// If the process has ended, this machine's files may be used: their ids show whether they are the
// recorded ones.
void cs_name_from(struct cs_recording *rec, pid_t pid) {
  bool has_one = rec->target != NULL;
  rec->live = true;
  if (pid <= 0 || rec->native != NULL || (has_one && cs_target_pid(rec->target) == pid)) return;
  struct cs_target *target = cs_target_of(pid);
  if (cs_target_is_within_reach(target)) {
    cs_target_free(rec->target);
    rec->target = target;
    return;
  }
  cs_target_free(target);
  (void)target_of(rec);
}

static void open_image(struct cs_recording *rec, uint32_t i) {
  const struct cs_wire_image *image = &rec->images[i].image;
  struct cs_elf_image of = {
      .mapping = {image->begin, image->inode, image->device,
                  cs_recording_get(rec, rec->images[i].path)},
      .id_size = image->build_id_size,
      .id = image->build_id,
  };
  if (rec->native == NULL) rec->native = cs_elfsyms_new(target_of(rec));
  if (rec->sources != NULL) {
    struct cs_elf_places places = cs_symbol_sources_places(rec->sources, rec->sourced);
    cs_elfsyms_set_places(rec->native, &places);
  }
  cs_elfsyms_add(rec->native, i, &of);
}

void cs_name_open_image(struct cs_recording *rec, uint32_t image_id) {
  uint32_t i;
  if (cs_map_get(&rec->image_ids, image_id, &i)) open_image(rec, i);
}

// After a reboot, or in another kernel, functions have other addresses.
static void name_kernel_frame(struct cs_recording *rec, uint64_t frame) {
  if (!rec->live) return;
  if (rec->kernel == NULL) rec->kernel = cs_kallsyms_read();
  const char *name = cs_kallsyms_find(rec->kernel, frame | ~CS_WIRE_KERNEL_ADDRESS);
  if (name != NULL) cs_recording_set_symbol(rec, frame, name);
}

void cs_name_native_frame(struct cs_recording *rec, uint64_t frame) {
  uint32_t i;
  if (cs_key_kind(frame) == CS_KEY_KERNEL) {
    name_kernel_frame(rec, frame);
    return;
  }
  if (!cs_map_get(&rec->image_ids, cs_wire_frame_image(frame), &i)) return;
  const struct cs_rec_image *image = &rec->images[i];
  open_image(rec, i);
  uint64_t vaddr = image->image.begin + cs_wire_frame_offset(frame) - image->image.bias;
  const char *name = cs_elfsyms_find(rec->native, i, vaddr);
  if (name == NULL && (image->image.flags & CS_WIRE_IMAGE_RUNTIME) != 0)
    name = cs_elfsyms_landmark(rec->native, i, vaddr);
  if (name != NULL) cs_recording_set_symbol(rec, frame, name);
}

static void name_managed(struct cs_recording *rec, struct cs_places *places, uint64_t frame) {
  struct cs_line line;
  uint32_t i;
  // Those of async mode have theirs already.
  if (cs_key_awaits(frame) || cs_map_get(&rec->place_ids, frame, &i)) return;
  if (cs_places_find(places, frame, &line))
    cs_recording_set_place(rec, frame, cs_recording_text(rec, line.file), line.line);
}

static void name_inlined(struct cs_recording *rec, struct cs_places *places, uint64_t frame) {
  uint64_t chain[CS_INLINED_DEPTH];
  uint32_t i;
  size_t count = cs_inlined_at(rec, frame, chain);
  for (size_t at = 0; at < count; at++)
    if ((chain[at] & CS_REC_PLACE) != 0 && !cs_map_get(&rec->place_ids, chain[at], &i))
      name_managed(rec, places, chain[at]);
}

// Reports the images in which samples were taken, and those whose files gave no names.
static void report_images(struct cs_recording *rec) {
  struct cs_symbol_facts *f = &rec->symbol_facts;
  f->images = f->refused = 0;
  f->missing[0] = '\0';
  struct cs_missing missing = {.text = f->missing, .size = sizeof f->missing};
  for (uint32_t i = 0; i < rec->image_count && rec->native != NULL; i++) {
    const char *why = cs_elfsyms_refused(rec->native, i);
    f->images++;
    if (why == NULL) continue;
    f->refused++;
    cs_missing_add(&missing, cs_recording_get(rec, rec->images[i].path), why, false);
  }
  cs_missing_end(&missing);
}

static void report_kernel(struct cs_recording *rec) {
  struct cs_symbol_facts *f = &rec->symbol_facts;
  (void)snprintf(f->kernel, sizeof f->kernel, "%s",
                 rec->live ? cs_kallsyms_refused(rec->kernel)
                           : "they are put on when a recording ends, and this one has no end");
}

void cs_name_frames_from(struct cs_recording *rec, size_t first) {
  if (first >= rec->frame_count) return;
  struct cs_places *places = rec->lines ? cs_places_new(rec, target_of(rec)) : NULL;
  bool in_kernel = false;
  for (size_t i = first; i < rec->frame_count; i++) {
    uint64_t frame = rec->frames[i];
    enum cs_key_kind kind = cs_key_kind(frame);
    if (kind == CS_KEY_NATIVE || kind == CS_KEY_KERNEL) cs_name_native_frame(rec, frame);
    in_kernel = in_kernel || kind == CS_KEY_KERNEL;
    if (kind == CS_KEY_MANAGED && places != NULL) {
      name_managed(rec, places, frame);
      name_inlined(rec, places, frame);
    }
  }
  if (places != NULL) {
    cs_places_report(places, &rec->line_facts);
    cs_places_free(places);
  }
  report_images(rec);
  if (in_kernel) report_kernel(rec);
}

// A recording that has names, but not those of the debug files that the caller knows of.
static void name_again(struct cs_recording *rec) {
  struct cs_map before = rec->symbols;
  rec->symbols = (struct cs_map){0};
  for (size_t i = 0; i < rec->frame_count; i++) {
    uint32_t name;
    bool added, had = cs_map_get(&before, rec->frames[i], &name);
    if (cs_key_kind(rec->frames[i]) == CS_KEY_NATIVE &&
        (!had || cs_runtime_class_shown(cs_recording_get(rec, name)) != CS_RUNTIME_UNKNOWN))
      cs_name_native_frame(rec, rec->frames[i]);
    if (had) (void)cs_map_put(&rec->symbols, rec->frames[i], name, &added);
  }
  cs_map_free(&before);
}

void cs_name_frames(struct cs_recording *rec) {
  bool again = rec->named && !rec->sourced && rec->sources != NULL;
  rec->sourced = true;  // the recording is over, so that servers may be waited for
  if (again) name_again(rec);
  if (!rec->named) cs_name_frames_from(rec, 0);
  rec->named = true;
  if (rec->sources != NULL) cs_symbol_sources_report(rec->sources);
}
