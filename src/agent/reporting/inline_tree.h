// SPDX-License-Identifier: MIT
// What the JIT has inlined into a method: a tree of methods, and which of them each piece of the
// machine code comes from. Not for handlers.
#pragma once

#include "base/base.h"
#include "wire/wire.h"

enum { CS_INLINE_NODES = 4096, CS_INLINE_MAPPINGS = 16384 };  // with more there is no tree

struct cs_inline_tree_node {
  uint64_t function_id;
  uint32_t parent, child, sibling;  // child, sibling: 0 is none
};

struct cs_inline_tree {
  uint32_t node_count, mapping_count;
  struct cs_inline_tree_node nodes[CS_INLINE_NODES];  // the method itself, then what is inlined;
                                                      // parents come before their children
  struct cs_wire_inline_mapping mappings[CS_INLINE_MAPPINGS];  // by rising offsets
};

// From the bytes that the runtime keeps. Nodes that no code has come from are left out. Returns
// false if they are not a tree of that method's.
bool cs_inline_tree_read(const uint8_t *bytes, uint32_t size, uint64_t function_id,
                         struct cs_inline_tree *out);
