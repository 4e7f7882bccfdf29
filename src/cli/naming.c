// SPDX-License-Identifier: MIT
// Names of native functions and source lines, by the files on this machine. Invariant: a name comes
// from the very file that was recorded: live, the file must not have changed since the program may
// have loaded it (loaded.c); of a recording that was read, it must have the size and time that it
// had then. One thread. Signal-safe: no.
#include <sys/stat.h>

#include "cli/elfsym.h"
#include "cli/inlined.h"
#include "cli/place.h"
#include "cli/recording.h"

static bool is_recorded_file(const struct cs_recording *rec, uint32_t path) {
  uint32_t i;
  struct stat st;
  if (!cs_map_get(&rec->file_ids, path, &i)) return !rec->from_file;
  return stat(cs_recording_get(rec, path), &st) == 0 &&
         rec->files[i].size == (uint64_t)st.st_size &&
         rec->files[i].mtime_ns ==
             (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
}

void cs_name_native_frame(struct cs_recording *rec, struct cs_elfsyms *symbols, uint64_t frame) {
  uint32_t i;
  if (!cs_map_get(&rec->image_ids, (uint32_t)(frame >> 40) & 0x3FFFFFu, &i)) return;
  const struct cs_rec_image *image = &rec->images[i];
  if (!is_recorded_file(rec, image->path)) return;
  uint64_t vaddr = image->image.begin + (frame & 0xFFFFFFFFFFull) - image->image.bias;
  const char *name = cs_elfsyms_find(symbols, cs_recording_get(rec, image->path), vaddr);
  if (name != NULL) cs_recording_set_symbol(rec, frame, name);
}

static void name_managed(struct cs_recording *rec, struct cs_places *places, uint64_t frame) {
  uint32_t i;
  struct cs_line line;
  if ((uint32_t)frame == CS_REC_AWAITS || !cs_map_get(&rec->function_ids, frame >> 32, &i)) return;
  uint32_t module = rec->functions[i].text[CS_FN_MODULE];
  if (!is_recorded_file(rec, module)) {
    if (rec->functions[i].kind == CS_WIRE_FN_METHOD)
      cs_places_refuse(places, cs_recording_get(rec, module));
    return;
  }
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

void cs_name_frames_from(struct cs_recording *rec, size_t first) {
  if (first >= rec->frame_count) return;
  struct cs_elfsyms *symbols = cs_elfsyms_new();
  struct cs_places *places = rec->lines ? cs_places_new(rec) : NULL;
  for (size_t i = first; i < rec->frame_count; i++) {
    uint64_t frame = rec->frames[i];
    if (CS_WIRE_FRAME_KIND(frame) == CS_WIRE_FRAME_NATIVE)
      cs_name_native_frame(rec, symbols, frame);
    if (CS_WIRE_FRAME_KIND(frame) == CS_WIRE_FRAME_MANAGED && places != NULL) {
      name_managed(rec, places, frame);
      name_inlined(rec, places, frame);
    }
  }
  if (places != NULL) {
    cs_places_tell(places, &rec->line_facts);
    cs_places_free(places);
  }
  cs_elfsyms_free(symbols);
}

void cs_name_frames(struct cs_recording *rec) {
  if (rec->named) return;
  cs_name_frames_from(rec, 0);
  rec->named = true;
}
