// SPDX-License-Identifier: MIT
// Decodes records into structures. Invariant: no read goes beyond the record's own size, which the
// consumer has checked against the ring. Any thread. Signal-safe: no.
#include "wire/decode.h"

#include "base/bytes.h"

static bool take_text(struct cs_bytes *c, struct cs_text *text) {
  uint16_t len;
  if (!cs_take(c, &len, sizeof len) || c->left < len) return false;
  *text = (struct cs_text){(const char *)c->at, len};
  return cs_take(c, NULL, len);
}

static bool open_record(const struct cs_wire_record *r, enum cs_wire_kind kind,
                        struct cs_bytes *c) {
  if (r->kind != kind || r->size < sizeof *r) return false;
  *c = (struct cs_bytes){(const uint8_t *)(r + 1), r->size - sizeof *r};
  return true;
}

bool cs_decode_start(const struct cs_wire_record *r, struct cs_wire_start *start,
                     struct cs_text *runtime) {
  struct cs_bytes c;
  return open_record(r, CS_WIRE_START, &c) && cs_take(&c, start, sizeof *start) &&
         take_text(&c, runtime);
}

bool cs_decode_thread(const struct cs_wire_record *r, struct cs_wire_thread *thread,
                      struct cs_text *name) {
  struct cs_bytes c;
  return open_record(r, CS_WIRE_THREAD, &c) && cs_take(&c, thread, sizeof *thread) &&
         take_text(&c, name);
}

bool cs_decode_function(const struct cs_wire_record *r, struct cs_wire_function *function,
                        struct cs_text text[CS_FN_TEXTS]) {
  struct cs_bytes c;
  if (!open_record(r, CS_WIRE_FUNCTION, &c) || !cs_take(&c, function, sizeof *function))
    return false;
  for (int i = 0; i < CS_FN_TEXTS; i++) {
    if (!take_text(&c, &text[i])) return false;
  }
  return true;
}

bool cs_decode_il_map(const struct cs_wire_record *r, struct cs_wire_il_map *map,
                      const struct cs_wire_il_range **ranges) {
  struct cs_bytes c;
  if (!open_record(r, CS_WIRE_IL_MAP, &c) || !cs_take(&c, map, sizeof *map)) return false;
  _Static_assert((sizeof(struct cs_wire_record) + sizeof(struct cs_wire_il_map)) % 4 == 0,
                 "ranges are aligned in the record");
  *ranges = (const struct cs_wire_il_range *)(const void *)c.at;
  return c.left / sizeof **ranges >= map->count;
}

static bool is_tree(const struct cs_wire_inlines *inlines, const struct cs_wire_inline_node *nodes,
                    const struct cs_wire_inline_mapping *mappings) {
  enum { ID_BITS = 30 };  // as in a frame
  for (uint32_t i = 0; i < inlines->nodes; i++)
    if (nodes[i].function >> ID_BITS != 0) return false;
  for (uint32_t i = 1; i < inlines->nodes; i++)
    if (nodes[i].parent >= i) return false;
  for (uint32_t i = 0; i < inlines->mappings; i++)
    if (mappings[i].node >= inlines->nodes || (i > 0 && mappings[i].begin <= mappings[i - 1].begin))
      return false;
  return true;
}

bool cs_decode_inlines(const struct cs_wire_record *r, struct cs_wire_inlines *inlines,
                       const struct cs_wire_inline_node **nodes,
                       const struct cs_wire_inline_mapping **mappings) {
  struct cs_bytes c;
  if (!open_record(r, CS_WIRE_INLINES, &c) || !cs_take(&c, inlines, sizeof *inlines)) return false;
  _Static_assert((sizeof(struct cs_wire_record) + sizeof(struct cs_wire_inlines)) % 4 == 0 &&
                     sizeof **nodes % 4 == 0,
                 "nodes and mappings are aligned in the record");
  *nodes = (const struct cs_wire_inline_node *)(const void *)c.at;
  if (c.left / sizeof **nodes < inlines->nodes) return false;
  *mappings = (const struct cs_wire_inline_mapping *)(const void *)(*nodes + inlines->nodes);
  c.left -= inlines->nodes * sizeof **nodes;
  return c.left / sizeof **mappings >= inlines->mappings && is_tree(inlines, *nodes, *mappings);
}

bool cs_decode_image(const struct cs_wire_record *r, struct cs_wire_image *image,
                     struct cs_text *path) {
  struct cs_bytes c;
  return open_record(r, CS_WIRE_IMAGE, &c) && cs_take(&c, image, sizeof *image) &&
         take_text(&c, path) && image->begin <= image->end &&
         image->build_id_size <= CS_WIRE_BUILD_ID;
}

bool cs_decode_module(const struct cs_wire_record *r, struct cs_wire_module *module,
                      struct cs_text *path, struct cs_text *pdb) {
  struct cs_bytes c;
  return open_record(r, CS_WIRE_MODULE, &c) && cs_take(&c, module, sizeof *module) &&
         take_text(&c, path) && take_text(&c, pdb);
}

bool cs_decode_plain(const struct cs_wire_record *r, enum cs_wire_kind kind, void *out,
                     size_t size) {
  struct cs_bytes c;
  return open_record(r, kind, &c) && cs_take(&c, out, size);
}

bool cs_decode_sample(const struct cs_wire_record *r, struct cs_wire_sample *sample,
                      const uint64_t **frames, const struct cs_label **label) {
  struct cs_bytes c;
  if (!open_record(r, CS_WIRE_SAMPLE, &c) || !cs_take(&c, sample, sizeof *sample)) return false;
  _Static_assert((sizeof(struct cs_wire_record) + sizeof(struct cs_wire_sample)) % 8 == 0,
                 "frames are aligned in the record");
  *frames = (const uint64_t *)(const void *)c.at;
  *label = NULL;
  if (c.left / 8 < sample->frame_count) return false;
  if ((r->flags & CS_WIRE_LABELLED) == 0) return true;
  *label = (const struct cs_label *)(const void *)(c.at + sample->frame_count * 8ull);
  return c.left - sample->frame_count * 8ull >= sizeof **label;
}

bool cs_decode_engine(const struct cs_wire_record *r, struct cs_wire_engine *engine,
                      struct cs_text text[CS_ENGINE_TEXTS]) {
  struct cs_bytes c;
  if (!open_record(r, CS_WIRE_ENGINE, &c) || !cs_take(&c, engine, sizeof *engine)) return false;
  for (int i = 0; i < CS_ENGINE_TEXTS; i++) {
    if (!take_text(&c, &text[i])) return false;
  }
  return engine->requested < CS_WIRE_ENGINES && engine->used < CS_WIRE_ENGINES;
}

bool cs_decode_events(const struct cs_wire_record *r, struct cs_wire_events *events) {
  struct cs_bytes c;
  return open_record(r, CS_WIRE_EVENTS, &c) && cs_take(&c, events, sizeof *events) &&
         events->mode < CS_WIRE_MODES;
}

bool cs_decode_scans(const struct cs_wire_record *r, struct cs_wire_scans *scans,
                     struct cs_text *why) {
  struct cs_bytes c;
  return open_record(r, CS_WIRE_SCANS, &c) && cs_take(&c, scans, sizeof *scans) &&
         take_text(&c, why);
}
