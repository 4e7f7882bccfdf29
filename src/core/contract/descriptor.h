// SPDX-License-Identifier: MIT
// The descriptor's bytes (dotnet/runtime docs/design/datacontracts/contract-descriptor.md): a
// header in memory, a JSON text, and a table of pointers that the JSON's globals refer to by index.
// Private to the component; a header of its own so that tests can pass bytes to it. Not for
// handlers.
#pragma once

#include "base/error.h"
#include "contract/layout.h"

struct cs_descriptor_head {  // as in libcoreclr's data
  uint64_t magic;            // "DNCCDAC\0"
  uint32_t flags;            // bit 0 is always set, bit 1: 32-bit target
  uint32_t json_bytes;
  uint64_t json;
  uint32_t pointer_count;
  uint32_t pad;
  uint64_t pointers;
};
#define CS_DESCRIPTOR_MAGIC 0x0043414443434E44ull
#define CS_DESCRIPTOR_MAX_JSON (1u << 20)  // .NET 10 has 10,563 bytes
#define CS_DESCRIPTOR_MAX_POINTERS 4096u   // .NET 10 has 24

bool cs_descriptor_check_head(const struct cs_descriptor_head *head, struct cs_error *err);

// Fills in all members of `out` that come from the descriptor, and no others. The text need not be
// terminated. On failure `out` is unspecified.
bool cs_descriptor_parse(const char *json, size_t len, const uint64_t *pointers, uint32_t count,
                         struct cs_layout *out, struct cs_error *err);

// Compares a layout with every value that this descriptor also has. Returns false if they differ.
bool cs_descriptor_compare(const char *json, size_t len, const uint64_t *pointers, uint32_t count,
                           struct cs_layout *layout, struct cs_error *err);

// Returns whether no read by this layout leaves the copy of a structure. cs_descriptor_parse calls
// it.
bool cs_descriptor_check_limits(const struct cs_layout *layout, struct cs_error *err);
