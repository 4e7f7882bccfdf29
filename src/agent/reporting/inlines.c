// SPDX-License-Identifier: MIT
// What the JIT has inlined into a method, from the debug info that a runtime started with
// DOTNET_RichDebugInfo=1 keeps with the code. No API returns it; docs/inlined.md has its format,
// which is not part of the data contract, so inline_tree.c rejects what is not consistent.
// Invariant: all reads are guarded. The agent's thread only. Signal-safe: no.
#include "reporting/inlines.h"

#include <string.h>

#include "clr_names/calls.h"
#include "codemap/method.h"
#include "life/library.h"
#include "reporting/inline_tree.h"
#include "state/state.h"

enum {
  FLAG_PATCHPOINTS = 1,  // code that on-stack replacement will leave: nothing is inlined
  FLAG_RICH = 2,
  MAX_BYTES = 256 << 10,
};

static bool put_tree(const struct cs_method_at *method, uint32_t id,
                     const struct cs_inline_tree *tree) {
  static struct {
    struct cs_wire_inlines head;
    uint8_t rest[CS_INLINE_NODES * sizeof(struct cs_wire_inline_node) +
                 CS_INLINE_MAPPINGS * sizeof(struct cs_wire_inline_mapping)];
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
  // A tree that would fill the wire's ring is left out, since it would keep the method's samples
  // out.
  if (size > cs_agent.wire.capacity / 4) {
    record.head.nodes = record.head.mappings = 0;
    size = 0;
  }
  return cs_send(CS_WIRE_INLINES, &record, sizeof record.head + size);
}

bool cs_inlines_to_wire(const struct cs_method_at *method, uint32_t id) {
  static uint8_t bytes[MAX_BYTES];
  static struct cs_inline_tree tree;
  const struct cs_mem *mem = &cs_library.world.mem;
  uint64_t at, function;
  uint8_t flags;
  uint32_t size;
  // Code without a FunctionID is ReadyToRun code, which has no header, and so no tree.
  if (method->function_id == 0 ||
      !cs_method_debug_info(&cs_library.world, method->start, &function, &at) ||
      function != method->function_id || !cs_mem_read_guarded(mem, at, &flags, 1) ||
      (flags & FLAG_RICH) == 0 || (flags & FLAG_PATCHPOINTS) != 0)
    return true;
  bool valid = cs_mem_read_guarded(mem, at + 1, &size, 4) && size <= sizeof bytes &&
               cs_mem_read_guarded(mem, at + 5, bytes, size) &&
               cs_inline_tree_read(bytes, size, method->function_id, &tree);
  if (!valid) tree.node_count = tree.mapping_count = 0;
  return tree.node_count == 1 || put_tree(method, id, &tree);  // 1: nothing was inlined
}
