// SPDX-License-Identifier: MIT
// Shared by the targets over recording files.
#pragma once

#include "formats/format.h"
#include "naming/resolve.h"

enum { FUZZ_MOST_BYTES = 1 << 16 };

// Reads a recording from bytes whose checksums are corrected first, as an attacker could do.
bool fuzz_read_recording(const uint8_t *data, size_t size, struct cs_recording *rec);

// A stream that counts the bytes written and discards them.
FILE *fuzz_stream(void);
// Checks that the output is still a bounded multiple of recordings of this size, and restarts the
// count. Ends the program if it is not.
void fuzz_check_stream(FILE *out, uint64_t recording_bytes);
// The limit of frames, lowered for small recordings so that a run stays short.
uint64_t fuzz_expansion_limit(uint64_t recording_bytes);

// Options derived from the input, so that each option is set for some inputs.
struct cs_resolve_opts fuzz_options(uint32_t random, const struct cs_recording *rec);
uint32_t fuzz_random(const uint8_t *data, size_t size);
