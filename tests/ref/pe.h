// SPDX-License-Identifier: MIT
// A ReadyToRun image as a file: sections by their addresses in memory, and the RUNTIME_FUNCTION
// table. Written from the documentation of the PE format and of ReadyToRun, without any of the
// product's code.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ref_function {
  uint32_t begin, end, unwind;  // RVAs
};

struct ref_section {
  uint32_t rva, size, file, file_size;
};

struct ref_pe {
  const uint8_t *bytes;
  size_t size;
  struct ref_section sections[96];
  uint32_t section_count;
  const struct ref_function *functions;  // in the file
  uint32_t function_count;               // 0: no ReadyToRun code
  uint32_t table_size;                   // of the functions, in bytes
};

// Returns false if the file is damaged or no PE file. An image without native code has no
// functions.
bool ref_pe_open(struct ref_pe *pe, const char *path);
void ref_pe_close(struct ref_pe *pe);
// Returns `size` bytes at an RVA, or NULL if the file has none there.
const uint8_t *ref_pe_at(const struct ref_pe *pe, uint32_t rva, uint32_t size);
