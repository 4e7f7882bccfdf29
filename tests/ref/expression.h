// SPDX-License-Identifier: MIT
// DWARF expressions (DWARF 5, section 2.5), as far as .eh_frame may contain them, and the encoded
// numbers that .eh_frame consists of. One thread; not for handlers.
#pragma once

#include "ref/cfi.h"

// Little-endian numbers; bytes beyond the end read as 0.
uint64_t cfi_fixed(struct cfi_bytes *in, unsigned size);
uint64_t cfi_uleb(struct cfi_bytes *in);
int64_t cfi_sleb(struct cfi_bytes *in);

struct expression {
  const uint64_t *registers;
  bool (*read)(uint64_t address, uint64_t *word);
};
// Returns the top of the stack at the end. `first` (may be NULL) is on the stack at the beginning.
bool expression_value(const struct expression *e, struct cfi_bytes program, const uint64_t *first,
                      uint64_t *value);
