// SPDX-License-Identifier: MIT
// Where the runtime is in this process. Private to the component. Not for handlers.
#pragma once

#include "base/base.h"

struct cs_runtime {
  char path[1024];
  uint64_t begin, end;  // of all its mappings, [begin, end)
  bool single_file;     // it is linked into the executable
};

// Finds libcoreclr.so among the loaded objects, or else the executable if it is a single-file host.
// Returns false if there is no CoreCLR in this process.
bool cs_runtime_find(struct cs_runtime *out);
// Returns the descriptor's address, or 0 if the runtime has none (.NET 8 and earlier).
uint64_t cs_runtime_descriptor(const struct cs_runtime *runtime);
// The same for g_dacTable, the runtime's table for its debugger.
uint64_t cs_runtime_debug_table(const struct cs_runtime *runtime);
// Parses the version in .../Microsoft.NETCore.App/10.0.12/libcoreclr.so. Returns false if the path
// has none.
bool cs_runtime_path_version(const char *path, uint16_t version[3]);
