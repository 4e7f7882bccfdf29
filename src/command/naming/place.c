// SPDX-License-Identifier: MIT
// Lines of managed frames. Invariant: a place has the line of the IL that its instruction comes
// from, or none: code of the JIT's own (no mapping) does not get the line of code next to it. A
// prolog is its method's first line, an epilog its last. One thread. Signal-safe: no.
#include "naming/place.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "naming/missing.h"
#include "naming/module_kind.h"
#include "recording/inlines.h"

struct cs_places {
  const struct cs_recording *rec;
  struct cs_lines *lines;
  uint64_t places, named;
};

struct cs_places *cs_places_new(const struct cs_recording *rec, const struct cs_target *target) {
  struct cs_places *p = cs_allocate(sizeof *p);
  p->rec = rec;
  p->lines = cs_lines_new(target);
  for (size_t i = 0; i < rec->image_count; i++)
    if ((rec->images[i].image.flags & CS_WIRE_IMAGE_RUNTIME) != 0)
      cs_lines_set_program(p->lines, cs_recording_get(rec, rec->images[i].path));
  for (size_t i = 0; i < rec->module_count; i++) {
    const struct cs_rec_module *m = &rec->modules[i];
    struct cs_lines_module of = {
        .path = cs_recording_get(rec, m->path),
        .pdb = cs_recording_get(rec, m->pdb),
        .known = (m->module.flags & CS_WIRE_MODULE_READ) != 0,
        .has_id = (m->module.flags & CS_WIRE_MODULE_HAS_ID) != 0,
        .embedded = (m->module.flags & CS_WIRE_MODULE_EMBEDDED) != 0,
    };
    _Static_assert(sizeof of.id == sizeof m->module.pdb_id, "all of it");
    memcpy(of.id, m->module.pdb_id, sizeof of.id);
    cs_lines_add(p->lines, &of);
  }
  return p;
}

static bool find_il(const struct cs_recording *rec, uint64_t frame, uint32_t *il) {
  if ((frame & (CS_REC_INLINED | CS_REC_AT_IL)) != 0) {
    *il = (uint32_t)frame & CS_REC_IL;
    return (frame & CS_REC_PLACE) != 0;
  }
  const struct cs_wire_il_range *range = cs_inlines_il_range(rec, frame);
  *il = range != NULL ? range->il : CS_WIRE_IL_NO_MAPPING;
  return *il != CS_WIRE_IL_NO_MAPPING;
}

uint32_t cs_place_il(uint32_t il) {
  return il == CS_WIRE_IL_PROLOG ? CS_LINES_FIRST : il == CS_WIRE_IL_EPILOG ? CS_LINES_LAST : il;
}

bool cs_places_find(struct cs_places *p, uint64_t frame, struct cs_line *out) {
  const struct cs_recording *rec = p->rec;
  uint32_t f, il;
  if (!cs_map_get(&rec->function_ids, cs_wire_frame_function(frame), &f)) return false;
  const struct cs_rec_function *function = &rec->functions[f];
  if (function->kind != CS_WIRE_FN_METHOD) return false;
  const char *module = cs_strings_get(&rec->strings, function->text[CS_FN_MODULE], NULL);
  p->places++;
  if (cs_lines_of_module(p->lines, module) != CS_SYMBOLS_FOUND || !find_il(rec, frame, &il) ||
      !cs_lines_find(p->lines, module, function->token, cs_place_il(il), out))
    return false;
  p->named++;
  return true;
}

struct report {
  struct cs_line_facts *out;
  struct cs_missing missing;
};

static void add_module(const char *module, enum cs_symbols symbols, void *data) {
  static const char *const why[] = {
      [CS_SYMBOLS_NONE] = "no portable PDB",
      [CS_SYMBOLS_OTHER] = "its PDB is of another build",
      [CS_SYMBOLS_BROKEN] = "its PDB cannot be read",
      [CS_SYMBOLS_NO_MODULE] = "its image in memory could not be read",
      [CS_SYMBOLS_EMBEDDED] =
          "its PDB is embedded, and its file is not there, as in a single-file program; DebugType "
          "portable puts the PDB beside it",
      [CS_SYMBOLS_AMBIGUOUS] = "several builds of it were loaded",
  };
  struct report *r = data;
  r->out->modules++;
  if (symbols == CS_SYMBOLS_FOUND)
    r->out->with_symbols++;
  else
    cs_missing_add(&r->missing, module, why[symbols], cs_module_is_framework(cs_file_of(module)));
}

void cs_places_report(const struct cs_places *p, struct cs_line_facts *out) {
  *out = (struct cs_line_facts){.wanted = true, .places = p->places, .named = p->named};
  for (size_t i = 0; i < p->rec->il_map_count; i++) {
    int32_t result = p->rec->il_maps[i].head.result;
    out->methods++;
    if (result >= 0) continue;
    out->unmapped++;
    if (out->why_unmapped != CS_WIRE_E_IL_REPLACED) out->why_unmapped = result;
  }
  struct report report = {out, {.text = out->missing, .size = sizeof out->missing}};
  cs_lines_visit(p->lines, add_module, &report);
  cs_missing_end(&report.missing);
}

void cs_places_free(struct cs_places *p) {
  cs_lines_free(p->lines);
  free(p);
}
