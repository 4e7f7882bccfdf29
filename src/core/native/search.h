// SPDX-License-Identifier: MIT
// Finds an .eh_frame that nothing points to. Not for handlers.
#pragma once

#include "base/base.h"

struct cs_found {
  size_t begin, end;  // offsets of the records
  size_t last;        // offset of the last record
  uint32_t fdes;
};

// Finds the longest run of records that refer to each other, in a copy of a segment.
bool cs_eh_frame_search(const uint8_t *bytes, size_t size, struct cs_found *found);
