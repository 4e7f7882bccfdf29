// SPDX-License-Identifier: MIT
// .eh_frame without anything that says where it is. Not for handlers.
#ifndef CS_NATIVE_SEARCH_H
#define CS_NATIVE_SEARCH_H

#include "base/base.h"

struct cs_found {
  size_t begin, end;  // of the records, in the bytes
  size_t last;        // where the last of them begins
  uint32_t fdes;
};

// Finds it in a copy of a segment: the longest run of records that are one with another.
bool cs_eh_frame_search(const uint8_t *bytes, size_t size, struct cs_found *found);

#endif
