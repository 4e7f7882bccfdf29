// SPDX-License-Identifier: MIT
// What the fuzz targets share. A target is one function over untrusted bytes; whatever they are, it
// must end soon and touch no memory that is not its own. Linked with libFuzzer by `./dev fuzz`, and
// for the tests with replay.c, which runs the corpus.
#ifndef CS_FUZZ_H
#define CS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
