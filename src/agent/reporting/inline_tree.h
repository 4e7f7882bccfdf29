// SPDX-License-Identifier: MIT
// What the JIT has inlined into a method: a tree of methods, and from which of them each piece of
// the machine code comes. Not for handlers.
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

// Reads the tree from the bytes that the runtime keeps, and leaves out nodes from which no code has
// come. Returns false if the bytes are not a tree of that method.
bool cs_inline_tree_read(const uint8_t *bytes, uint32_t size, uint64_t function_id,
                         struct cs_inline_tree *out);
