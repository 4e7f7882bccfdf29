// SPDX-License-Identifier: MIT
// What the dynamic section of an ELF image says: its first and last functions, and its exports.
// Read from memory, since the file may be gone. Not for handlers.
#pragma once

#include "native/maps.h"

// The runtime's descriptor, which CoreCLR exports.
#define CS_CORECLR_SYMBOL "DotNetRuntimeContractDescriptor"

struct cs_dynamic {
  uint64_t bias;
  uint64_t init, fini;                  // functions of DT_INIT and DT_FINI; 0: none
  uint64_t symbols, strings, gnu_hash;  // 0: none
};

// Reads the section of `size` bytes at `address`. Returns false if it cannot be read.
bool cs_dynamic_read(struct cs_process_memory *process, uint64_t bias, uint64_t address,
                     uint64_t size, struct cs_dynamic *out);
// Returns the address of an exported symbol, or 0 if there is none of that name. Does not check
// that the address is in the image.
uint64_t cs_dynamic_find(struct cs_process_memory *process, const struct cs_dynamic *dynamic,
                         const char *name);
