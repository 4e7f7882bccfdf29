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

static bool take_texts(struct cs_bytes *c, struct cs_text *text, int count) {
  while (count-- > 0)
    if (!take_text(c, text++)) return false;
  return true;
}

// Takes the fixed part of a record of that kind; `c` is what follows it.
static bool begin(const struct cs_wire_record *r, enum cs_wire_kind kind, void *fixed, size_t size,
                  struct cs_bytes *c) {
  if (r->kind != kind || r->size < sizeof *r) return false;
  *c = (struct cs_bytes){(const uint8_t *)(r + 1), r->size - sizeof *r};
  return cs_take(c, fixed, size);
}

bool cs_decode_start(const struct cs_wire_record *r, struct cs_wire_start *start,
                     struct cs_text *runtime) {
  struct cs_bytes c;
  return begin(r, CS_WIRE_START, start, sizeof *start, &c) && take_text(&c, runtime);
}

bool cs_decode_thread(const struct cs_wire_record *r, struct cs_wire_thread *thread,
                      struct cs_text *name) {
  struct cs_bytes c;
  return begin(r, CS_WIRE_THREAD, thread, sizeof *thread, &c) && take_text(&c, name);
}

bool cs_decode_function(const struct cs_wire_record *r, struct cs_wire_function *function,
                        struct cs_text text[CS_FN_TEXTS]) {
  struct cs_bytes c;
  return begin(r, CS_WIRE_FUNCTION, function, sizeof *function, &c) &&
         take_texts(&c, text, CS_FN_TEXTS);
}

bool cs_decode_il_map(const struct cs_wire_record *r, struct cs_wire_il_map *map,
                      const struct cs_wire_il_range **ranges) {
  struct cs_bytes c;
  if (!begin(r, CS_WIRE_IL_MAP, map, sizeof *map, &c)) return false;
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
  if (!begin(r, CS_WIRE_INLINES, inlines, sizeof *inlines, &c)) return false;
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
  return begin(r, CS_WIRE_IMAGE, image, sizeof *image, &c) && take_text(&c, path) &&
         image->begin <= image->end && image->build_id_size <= CS_WIRE_BUILD_ID;
}

bool cs_decode_module(const struct cs_wire_record *r, struct cs_wire_module *module,
                      struct cs_text *path, struct cs_text *pdb) {
  struct cs_bytes c;
  return begin(r, CS_WIRE_MODULE, module, sizeof *module, &c) && take_text(&c, path) &&
         take_text(&c, pdb);
}

bool cs_decode_plain(const struct cs_wire_record *r, enum cs_wire_kind kind, void *out,
                     size_t size) {
  struct cs_bytes c;
  return begin(r, kind, out, size, &c);
}

bool cs_decode_sample(const struct cs_wire_record *r, struct cs_wire_sample *sample,
                      const uint64_t **frames, const struct cs_label **label) {
  struct cs_bytes c;
  if (!begin(r, CS_WIRE_SAMPLE, sample, sizeof *sample, &c)) return false;
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
  return begin(r, CS_WIRE_ENGINE, engine, sizeof *engine, &c) &&
         take_texts(&c, text, CS_ENGINE_TEXTS) && engine->requested < CS_WIRE_ENGINES &&
         engine->used < CS_WIRE_ENGINES;
}

bool cs_decode_events(const struct cs_wire_record *r, struct cs_wire_events *events) {
  struct cs_bytes c;
  return begin(r, CS_WIRE_EVENTS, events, sizeof *events, &c) && events->mode < CS_WIRE_MODES;
}

bool cs_decode_scans(const struct cs_wire_record *r, struct cs_wire_scans *scans,
                     struct cs_text *why) {
  struct cs_bytes c;
  return begin(r, CS_WIRE_SCANS, scans, sizeof *scans, &c) && take_text(&c, why);
}
