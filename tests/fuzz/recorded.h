// SPDX-License-Identifier: MIT
// What the targets over recording files share.
#ifndef CS_FUZZ_RECORDED_H
#define CS_FUZZ_RECORDED_H

#include "formats/format.h"
#include "recording/resolve.h"

enum { FUZZ_MOST_BYTES = 1 << 16 };

// Reads a recording from bytes whose checksums are corrected first, as an attacker can do, too.
bool fuzz_read_recording(const uint8_t *data, size_t size, struct cs_recording *rec);

// A stream that counts what is written and keeps nothing.
FILE *fuzz_stream(void);
// Is that still a bounded multiple of recordings of so many bytes? Ends the program if not; counts
// from 0 again.
void fuzz_check_stream(FILE *out, uint64_t recording_bytes);
// A limit of frames that is as large for small recordings as is bearable here.
uint64_t fuzz_expansion_limit(uint64_t recording_bytes);

// Options that follow from the input, so that each is met by some.
struct cs_resolve_opts fuzz_options(uint32_t random, const struct cs_recording *rec);
uint32_t fuzz_random(const uint8_t *data, size_t size);

#endif
