// SPDX-License-Identifier: MIT
// The managed code of a process, as perf, samply and bpftrace want it: a line "START SIZE NAME" in
// hexadecimal for each piece. It is read from outside, from the runtime's own map of code, while
// the process runs. One thread.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct cs_perfmap;

struct cs_perfmap_counts {
  uint32_t jitted, precompiled;  // methods
  bool double_mapped;            // jitted code is in a file that perf takes for a library
};

// Returns NULL, with the reason in *err.
struct cs_perfmap *cs_perfmap_read(int pid, bool raw_names, struct cs_error *err);
const struct cs_perfmap_counts *cs_perfmap_counts(const struct cs_perfmap *map);
bool cs_perfmap_write(const struct cs_perfmap *map, FILE *out);
void cs_perfmap_free(struct cs_perfmap *map);  // may be NULL
