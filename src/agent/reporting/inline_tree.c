// SPDX-License-Identifier: MIT
// The tree of what was inlined into a method, as the runtime packs it (docs/inlined.md). Invariant:
// the tree is used only if all of it is consistent: its root is this very method, every node is
// reachable from the root once, and mappings are in order. The agent's thread only. Signal-safe:
// no.
#include "reporting/inline_tree.h"

#include <string.h>

#include "base/nibbles.h"

enum { NO_NODE = 0xFFFFFFFF };

struct reader {
  struct cs_nibbles nibbles;
  bool failed;
};

static uint32_t next_number(struct reader *r) {
  uint32_t value = 0;
  r->failed = r->failed || !cs_nibbles_u32(&r->nibbles, &value);
  return value;
}

static uint32_t next_word(struct reader *r) {
  uint32_t value = 0, nibble = 0;
  for (unsigned shift = 0; shift < 32; shift += 4) {
    r->failed = r->failed || !cs_nibble(&r->nibbles, &nibble);
    value |= nibble << shift;
  }
  return value;
}

static uint32_t next_difference(struct reader *n, uint32_t from) {
  uint32_t coded = next_number(n), amount = coded >> 1;
  return (coded & 1u) != 0 ? from - amount : from + amount;
}

// ---- The tree ----

// A node also has the IL offset of the call, but .NET 10 leaves it uninitialised.
static void read_nodes(struct reader *n, struct cs_inline_tree *out) {
  uint32_t child = 0, sibling = 0;
  for (uint32_t i = 0; i < out->node_count && !n->failed; i++) {
    uint64_t low = next_word(n), high = next_word(n);
    (void)next_number(n);
    child = next_difference(n, child);
    sibling = next_difference(n, sibling);
    out->nodes[i] = (struct cs_inline_tree_node){high << 32 | low, NO_NODE, child, sibling};
  }
}

// Sets each node's parent. Returns false if a node has no parent, or two, or comes before its
// parent.
static bool link_nodes(struct cs_inline_tree *out) {
  uint32_t reached = 1;
  if (out->nodes[0].sibling != 0) return false;
  out->nodes[0].parent = 0;
  for (uint32_t parent = 0; parent < out->node_count; parent++) {
    for (uint32_t i = out->nodes[parent].child; i != 0; i = out->nodes[i].sibling) {
      if (i <= parent || i >= out->node_count || out->nodes[i].parent != NO_NODE) return false;
      out->nodes[i].parent = parent;
      reached++;
    }
  }
  return reached == out->node_count;
}

// ---- The mappings ----

// Of several mappings for one instruction, the last one is right: the code of the others is empty.
static bool read_mappings(struct reader *n, uint32_t count, struct cs_inline_tree *out) {
  struct cs_wire_inline_mapping m = {0, 0, CS_WIRE_IL_PROLOG};
  for (uint32_t i = 0; i < count && !n->failed; i++) {
    uint32_t step = next_number(n);
    if (step > CS_WIRE_MANAGED_OFFSET - m.begin) return false;
    m.begin += step;
    m.node = next_difference(n, m.node);
    m.il = next_difference(n, m.il);
    (void)next_number(n);  // flags: it is a call, the IL stack is empty
    if (m.node >= out->node_count) return false;
    bool same = out->mapping_count > 0 && out->mappings[out->mapping_count - 1].begin == m.begin;
    if (!same) out->mapping_count++;
    out->mappings[out->mapping_count - 1] = m;
  }
  return !n->failed;
}

// Drops nodes from which no code has come, neither directly nor through nodes that were inlined
// into them: most are small methods that the optimizer has folded into an expression, and naming
// them is expensive.
static void prune(struct cs_inline_tree *tree) {
  static uint32_t moved[CS_INLINE_NODES];
  memset(moved, 0, tree->node_count * sizeof moved[0]);
  for (uint32_t i = 0; i < tree->mapping_count; i++) moved[tree->mappings[i].node] = 1;
  for (uint32_t i = tree->node_count; i-- > 1;)
    if (moved[i] != 0) moved[tree->nodes[i].parent] = 1;
  uint32_t kept = 1;
  moved[0] = 0;
  for (uint32_t i = 1; i < tree->node_count; i++) {
    if (moved[i] == 0) continue;
    tree->nodes[kept] = tree->nodes[i];
    tree->nodes[kept].parent = moved[tree->nodes[i].parent];  // which comes before it
    moved[i] = kept++;
  }
  tree->node_count = kept;
  for (uint32_t i = 0; i < tree->mapping_count; i++)
    tree->mappings[i].node = moved[tree->mappings[i].node];
}

// ---- All of it ----

bool cs_inline_tree_read(const uint8_t *bytes, uint32_t size, uint64_t function_id,
                         struct cs_inline_tree *out) {
  struct reader n = {{bytes, size, 0}, false};
  out->mapping_count = 0;
  out->node_count = next_number(&n);
  uint32_t mappings = next_number(&n);
  if (n.failed || out->node_count == 0 || out->node_count > CS_INLINE_NODES ||
      mappings > CS_INLINE_MAPPINGS)
    return false;
  read_nodes(&n, out);
  if (n.failed || out->nodes[0].function_id != function_id || !link_nodes(out) ||
      !read_mappings(&n, mappings, out))
    return false;
  prune(out);
  return true;
}
