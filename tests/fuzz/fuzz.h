// SPDX-License-Identifier: MIT
// What the fuzz targets share. A target is one function over bytes that somebody else has written;
// it must end soon and touch no memory that is not its own, whatever they say. Linked with
// libFuzzer by `./dev fuzz`, and with replay.c, which runs the corpus, for the tests.
#ifndef CS_FUZZ_H
#define CS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
