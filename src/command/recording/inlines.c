// SPDX-License-Identifier: MIT
// Where a method called what was inlined into it. Neither map shows that by itself: the IL map has
// the call in place of the inlined method, and the map of inlined methods has their IL only.
//
// Invariant: what is unknown is left out, never guessed. One thread. Signal-safe: no.
#include "recording/inlines.h"

#include <stdlib.h>

#define NOT_SEEN UINT32_MAX

// Ranges may be empty: if two IL offsets share an instruction, only one of them has bytes.
const struct cs_wire_il_range *cs_inlines_il_range(const struct cs_recording *rec, uint64_t frame) {
  uint32_t m, offset = (uint32_t)frame & CS_WIRE_MANAGED_OFFSET;
  if ((frame & CS_REC_PLACE) == 0 ||
      !cs_map_get(&rec->il_map_ids, cs_wire_frame_function(frame), &m))
    return NULL;
  const struct cs_rec_il_map *map = &rec->il_maps[m];
  for (uint32_t i = 0; i < map->head.count; i++)
    if (offset >= map->ranges[i].begin && offset < map->ranges[i].end) return &map->ranges[i];
  return NULL;
}

uint64_t cs_inlines_place(const struct cs_rec_inlines *in, uint32_t offset) {
  return cs_key_of_method(in->head.function, CS_REC_PLACE | offset);
}

uint32_t cs_inlines_outermost(const struct cs_rec_inlines *in, uint32_t node) {
  while (in->nodes[node].parent != 0) node = in->nodes[node].parent;
  return node;
}

static bool is_special(uint32_t il) {
  return il == CS_WIRE_IL_NO_MAPPING || il == CS_WIRE_IL_PROLOG || il == CS_WIRE_IL_EPILOG;
}

// Either all code from one inlined call has the call's IL offset in the IL map, or none has: then
// the JIT did not know it, and the map continues the range before. So the map is used if it has the
// same offset for all of that code, and if one of its ranges begins with some of it.
static void note_call(struct cs_rec_inlines *in, uint32_t *il, uint32_t node,
                      const struct cs_wire_il_range *range, uint32_t begin) {
  bool fresh = range != NULL && range->begin == begin;
  uint32_t says = range != NULL ? range->il : CS_WIRE_IL_NO_MAPPING;
  if (says == CS_WIRE_IL_NO_MAPPING && fresh)
    return;  // the JIT may lose the mapping at the start of a block
  if (is_special(says) || il[node] == CS_INLINES_NO_CALL ||
      (il[node] != NOT_SEEN && il[node] != says)) {
    il[node] = CS_INLINES_NO_CALL;
    return;
  }
  il[node] = says;
  if (fresh && in->calls[node] == CS_INLINES_NO_CALL) in->calls[node] = begin;
}

void cs_inlines_find_calls(const struct cs_recording *rec, struct cs_rec_inlines *in) {
  uint32_t *il = cs_allocate(in->head.nodes * sizeof *il);
  in->calls = cs_allocate(in->head.nodes * sizeof *in->calls);
  for (uint32_t i = 0; i < in->head.nodes; i++) {
    il[i] = NOT_SEEN;
    in->calls[i] = CS_INLINES_NO_CALL;
  }
  for (uint32_t i = 0; i < in->head.mappings; i++) {
    const struct cs_wire_inline_mapping *m = &in->mappings[i];
    if (m->node == 0) continue;
    note_call(in, il, cs_inlines_outermost(in, m->node),
              cs_inlines_il_range(rec, cs_inlines_place(in, m->begin)), m->begin);
  }
  for (uint32_t i = 0; i < in->head.nodes; i++)
    if (il[i] == CS_INLINES_NO_CALL) in->calls[i] = CS_INLINES_NO_CALL;
  free(il);
}
