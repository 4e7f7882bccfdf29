// SPDX-License-Identifier: MIT
// What an ELF image's dynamic section says: where it begins and ends to run, and what it exports.
// Read from memory: its file may have gone. Not for handlers.
#ifndef CS_NATIVE_DYNAMIC_H
#define CS_NATIVE_DYNAMIC_H

#include "native/maps.h"

// The runtime's descriptor, as CoreCLR exports it.
#define CS_CORECLR_SYMBOL "DotNetRuntimeContractDescriptor"

struct cs_dynamic {
  uint64_t bias;
  uint64_t init, fini;                  // functions of DT_INIT and DT_FINI; 0: none
  uint64_t symbols, strings, gnu_hash;  // 0: none
};

// The section is at `address`, of `size` bytes. False: it cannot be read.
bool cs_dynamic_read(struct cs_process_memory *process, uint64_t bias, uint64_t address,
                     uint64_t size, struct cs_dynamic *out);
// The address of an exported symbol; 0: the image exports none of that name. Not checked: whether
// it is in the image.
uint64_t cs_dynamic_find(struct cs_process_memory *process, const struct cs_dynamic *dynamic,
                         const char *name);

#endif
