// SPDX-License-Identifier: MIT
// The debug info of jitted code: the map from its instructions to IL, and the tree of inlined
// methods. The first byte chooses which one.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "remote/il.h"
#include "reporting/inline_tree.h"

static void read_tree(const uint8_t *bytes, uint32_t size) {
  enum { FUNCTION = 0x1234 };
  static struct cs_inline_tree tree;
  if (!cs_inline_tree_read(bytes, size, FUNCTION, &tree)) return;
  for (uint32_t i = 1; i < tree.node_count; i++)
    if (tree.nodes[i].parent >= i) __builtin_trap();
  for (uint32_t i = 0; i < tree.mapping_count; i++)
    if (tree.mappings[i].node >= tree.node_count ||
        (i > 0 && tree.mappings[i - 1].begin >= tree.mappings[i].begin))
      __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t il, offset;
  if (size < 1 + sizeof offset) return 0;
  if (data[0] % 2 == 0) {
    read_tree(data + 1, (uint32_t)(size - 1));
    return 0;
  }
  memcpy(&offset, data + 1, sizeof offset);
  (void)cs_il_of_bounds(data + 1 + sizeof offset, size - 1 - sizeof offset, offset, &il);
  return 0;
}
