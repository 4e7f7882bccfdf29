// SPDX-License-Identifier: MIT
// From a place in machine code to the methods that were inlined there. The JIT describes them in
// two maps. A method's IL map covers its own IL only, and has the call in place of an inlined
// method. The map of inlined methods has their IL, but no ends: neither where the JIT's own code
// begins, nor where it has lost track of what was inlined. So a mapping holds from its beginning to
// that of the next range of the IL map.
//
// Invariant: what is unknown is left out, never guessed: a line, or a frame. One thread.
// Signal-safe: no.
#include "naming/inlined.h"

#include <stdlib.h>
#include <string.h>

#include "recording/inlines.h"
#include "util/say.h"

// Returns the last mapping at or before an offset, or NULL if all begin after it.
static const struct cs_wire_inline_mapping *mapping_at(const struct cs_rec_inlines *in,
                                                       uint32_t offset) {
  size_t after = CS_FIRST_NOT(i, 0, in->head.mappings, in->mappings[i].begin <= offset);
  return after > 0 ? &in->mappings[after - 1] : NULL;
}

// Returns the method itself at the call: by its IL offset, or by its machine code.
static uint64_t caller_at(const struct cs_rec_inlines *in, uint32_t il, uint32_t call) {
  if (il <= CS_REC_IL) return cs_key_of_method(in->head.function, CS_REC_PLACE | CS_REC_AT_IL | il);
  return call != CS_INLINES_NO_CALL ? cs_inlines_place(in, call)
                                    : cs_key_of_method(in->head.function, 0);
}

size_t cs_inlined_at(const struct cs_recording *rec, uint64_t frame,
                     uint64_t chain[CS_INLINED_DEPTH]) {
  uint32_t i;
  if (cs_key_kind(frame) != CS_KEY_MANAGED || (frame & CS_REC_PLACE) == 0 ||
      !cs_map_get(&rec->inlines_ids, cs_wire_frame_function(frame), &i))
    return 0;
  const struct cs_rec_inlines *in = &rec->inlines[i];
  const struct cs_wire_inline_mapping *m = mapping_at(in, (uint32_t)frame & CS_WIRE_MANAGED_OFFSET);
  const struct cs_wire_il_range *range = cs_inlines_il_range(rec, frame);
  if (m == NULL || m->node == 0 || range == NULL || m->begin < range->begin ||
      range->il == CS_WIRE_IL_PROLOG || range->il == CS_WIRE_IL_EPILOG)
    return 0;
  size_t count = 1;
  for (uint32_t node = m->node; node != 0; node = in->nodes[node].parent)
    if (++count > CS_INLINED_DEPTH) return 0;
  uint32_t node = m->node, il = m->il;
  for (size_t at = count; at-- > 1; node = in->nodes[node].parent) {
    uint32_t place = il <= CS_REC_IL ? CS_REC_PLACE | il : 0;
    chain[at] = cs_key_of_method(in->nodes[node].function, CS_REC_INLINED | place);
    il = in->nodes[node].il;
  }
  chain[0] = caller_at(in, il, in->calls[cs_inlines_outermost(in, m->node)]);
  return count;
}

struct builder {
  const struct cs_recording *rec;
  struct cs_inlined *out;
  size_t capacity;
  struct cs_map ids;  // of keys that are not the recording's -> index
};

static uint32_t frame_index(struct builder *b, uint64_t frame) {
  bool added;
  struct cs_inlined *out = b->out;
  uint32_t i = cs_map_put(&b->ids, frame, (uint32_t)out->frame_count, &added);
  if (!added) return i;
  CS_APPEND(out->own_frames, out->frame_count, b->capacity, frame);
  return i;
}

// Returns the node for a node of the recording, below `parent`, or CS_TREE_FULL if there are
// too many nodes.
static uint32_t add_node(struct builder *b, const struct cs_node *node, uint32_t parent) {
  uint64_t chain[CS_INLINED_DEPTH];
  struct cs_tree *tree = &b->out->own_tree;
  size_t count = node->parent == 0 ? 0 : cs_inlined_at(b->rec, b->rec->frames[node->frame], chain);
  if (count == 0) return cs_tree_child(tree, parent, node->frame);
  uint32_t at = parent;
  for (size_t i = 0; i < count && at != CS_TREE_FULL; i++)
    at = cs_tree_child(tree, at, frame_index(b, chain[i]));
  return at;
}

static bool add_nodes(struct builder *b) {
  const struct cs_tree *raw = &b->rec->tree;
  uint32_t *map = b->out->own_node;
  for (size_t i = 1; i < raw->count; i++) {
    map[i] = add_node(b, &raw->nodes[i], map[raw->nodes[i].parent]);
    if (map[i] == CS_TREE_FULL) return false;
    b->out->own_tree.nodes[map[i]].samples += raw->nodes[i].samples;
    b->out->own_tree.nodes[map[i]].weight += raw->nodes[i].weight;
    b->out->own_tree.nodes[map[i]].squares += raw->nodes[i].squares;
  }
  return true;
}

void cs_inlined_make(struct cs_inlined *in, const struct cs_recording *rec) {
  struct builder b = {.rec = rec, .out = in};
  *in = (struct cs_inlined){rec, &rec->tree, rec->frames, rec->frame_count, .node = NULL};
  if (rec->inlines_count == 0) return;
  cs_tree_init(&in->own_tree);
  in->own_node = cs_allocate(rec->tree.count * sizeof *in->own_node);
  b.capacity = rec->frame_count + 1;
  in->own_frames = cs_allocate(b.capacity * sizeof *in->own_frames);
  if (rec->frame_count > 0)
    memcpy(in->own_frames, rec->frames, rec->frame_count * sizeof *in->own_frames);
  if (add_nodes(&b)) {
    in->tree = &in->own_tree;
    in->frames = in->own_frames;
    in->node = in->own_node;
  } else {
    cs_say("the call tree is too large for inlined methods: it is shown without");
    in->frame_count = rec->frame_count;
  }
  cs_map_free(&b.ids);
}

void cs_inlined_free(struct cs_inlined *in) {
  if (in->own_node != NULL) cs_tree_free(&in->own_tree);
  free(in->own_frames);
  free(in->own_node);
}
