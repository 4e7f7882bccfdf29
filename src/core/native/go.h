// SPDX-License-Identifier: MIT
// Recognises images whose code is Go's, and so runs on small stacks of its own. Not for handlers.
#pragma once

#include <elf.h>

#include "native/maps.h"

struct cs_go_search {
  struct cs_process_memory *process;
  uint64_t bias;      // of the image
  uint64_t searched;  // bytes of its segments searched so far
};

// Returns whether the segment shows that the image is Go's. Called for each program header, until
// it returns true.
bool cs_go_is_in(struct cs_go_search *go, const Elf64_Phdr *ph);
