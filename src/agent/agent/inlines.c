// SPDX-License-Identifier: MIT
// What the JIT has inlined into a method, from the debug info that the runtime keeps with the code
// when it was started with DOTNET_RichDebugInfo=1. No API hands it out; docs/inlined.md has its
// form, which is no part of the data contract.
//
// Invariant: so nothing of it is believed that does not fit: the tree's root must be this very
// method, every node reachable from it once, mappings in order and inside the code. Else there is
// no tree. All is read guarded. The agent's thread only. Signal-safe: no.
#include <string.h>

#include "agent/agent.h"
#include "base/nibbles.h"
#include "clr_names/calls.h"
#include "codemap/method.h"

enum {
  FLAG_PATCHPOINTS = 1,  // a code version that on-stack replacement leaves: nothing is inlined
  FLAG_RICH = 2,
  MAX_BYTES = 256 << 10,
  MAX_NODES = 4096,  // of one method; with more, or more mappings, it has no tree
  MAX_MAPPINGS = 16384,
  NO_NODE = 0xFFFFFFFF,
};

struct tree {
  uint32_t node_count, mapping_count;
  struct node {
    uint64_t function_id;
    uint32_t parent, child, sibling;  // child, sibling: 0 is none
  } nodes[MAX_NODES];
  struct cs_wire_inline_mapping mappings[MAX_MAPPINGS];
};

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

// The IL offset of the call is there, too, but .NET 10 keeps whatever was in memory.
static void read_nodes(struct reader *n, struct tree *out) {
  uint32_t child = 0, sibling = 0;
  for (uint32_t i = 0; i < out->node_count && !n->failed; i++) {
    uint64_t low = next_word(n), high = next_word(n);
    (void)next_number(n);
    child = next_difference(n, child);
    sibling = next_difference(n, sibling);
    out->nodes[i] = (struct node){high << 32 | low, NO_NODE, child, sibling};
  }
}

// Children are given their parents. False: a node is nobody's, or two nodes', or comes before its
// parent.
static bool link_nodes(struct tree *out) {
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

// Of several for one instruction the last one is right: the others' code is empty.
static bool read_mappings(struct reader *n, uint32_t count, struct tree *out) {
  struct cs_wire_inline_mapping m = {0, 0, CS_WIRE_IL_PROLOG};
  for (uint32_t i = 0; i < count && !n->failed; i++) {
    m.begin += next_number(n);
    m.node = next_difference(n, m.node);
    m.il = next_difference(n, m.il);
    (void)next_number(n);  // whether it is a call, whether the IL's stack is empty
    if (m.node >= out->node_count || m.begin > CS_WIRE_MANAGED_OFFSET) return false;
    bool same = out->mapping_count > 0 && out->mappings[out->mapping_count - 1].begin == m.begin;
    if (!same) out->mapping_count++;
    out->mappings[out->mapping_count - 1] = m;
  }
  return !n->failed;
}

// Drops the nodes that no code has come from, nor from what was inlined into them: most are small
// methods that the optimizer has made part of an expression, and to name them is what costs.
static void prune(struct tree *tree) {
  static uint32_t moved[MAX_NODES];
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

static bool read_tree(const uint8_t *bytes, uint32_t size, uint64_t function_id, struct tree *out) {
  struct reader n = {{bytes, size, 0}, false};
  out->mapping_count = 0;
  out->node_count = next_number(&n);
  uint32_t mappings = next_number(&n);
  if (n.failed || out->node_count == 0 || out->node_count > MAX_NODES || mappings > MAX_MAPPINGS)
    return false;
  read_nodes(&n, out);
  return !n.failed && out->nodes[0].function_id == function_id && link_nodes(out) &&
         read_mappings(&n, mappings, out);
}

// ---- To the wire ----

static bool put_tree(const struct cs_method_at *method, uint32_t id, const struct tree *tree) {
  static struct {
    struct cs_wire_inlines head;
    uint8_t rest[MAX_NODES * sizeof(struct cs_wire_inline_node) +
                 MAX_MAPPINGS * sizeof(struct cs_wire_inline_mapping)];
  } record;
  struct cs_wire_inline_node node = {id, 0, CS_WIRE_IL_NO_MAPPING};
  size_t size = 0, mappings = tree->mapping_count * sizeof tree->mappings[0];
  for (uint32_t i = 0; i < tree->node_count; i++) {
    if (i > 0 && !cs_inlinee_to_wire(tree->nodes[i].function_id, method, &node.function))
      return false;
    node.parent = tree->nodes[i].parent;
    uint64_t caller = tree->nodes[node.parent].function_id;
    if (i == 0 || !cs_call_find(cs_agent.info, caller, tree->nodes[i].function_id, &node.il))
      node.il = CS_WIRE_IL_NO_MAPPING;
    memcpy(record.rest + size, &node, sizeof node);
    size += sizeof node;
  }
  memcpy(record.rest + size, tree->mappings, mappings);
  size += mappings;
  record.head = (struct cs_wire_inlines){id, tree->node_count, tree->mapping_count, 0};
  // One that would fill the ring must not keep its method's samples out.
  if (size > cs_agent.wire.capacity / 4) {
    record.head.nodes = record.head.mappings = 0;
    size = 0;
  }
  return cs_producer_put(&cs_agent.wire, CS_WIRE_INLINES, &record, sizeof record.head + size, NULL,
                         0);
}

bool cs_inlines_to_wire(const struct cs_method_at *method, uint32_t id) {
  static uint8_t bytes[MAX_BYTES];
  static struct tree tree;
  const struct cs_mem *mem = &cs_core.world.mem;
  uint64_t at, function;
  uint8_t flags;
  uint32_t size;
  // Without a FunctionID it is ReadyToRun code, which has no header, and no tree.
  if (method->function_id == 0 ||
      !cs_method_debug_info(&cs_core.world, method->start, &function, &at) ||
      function != method->function_id || !cs_mem_read_guarded(mem, at, &flags, 1) ||
      (flags & FLAG_RICH) == 0 || (flags & FLAG_PATCHPOINTS) != 0)
    return true;
  bool valid = cs_mem_read_guarded(mem, at + 1, &size, 4) && size <= sizeof bytes &&
               cs_mem_read_guarded(mem, at + 5, bytes, size) &&
               read_tree(bytes, size, method->function_id, &tree);
  if (valid)
    prune(&tree);
  else
    tree.node_count = tree.mapping_count = 0;
  return tree.node_count == 1 || put_tree(method, id, &tree);  // 1: nothing was inlined
}
