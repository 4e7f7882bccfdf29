// SPDX-License-Identifier: MIT
// Shared by the fuzz targets. A target is one function over untrusted bytes. Whatever the bytes
// are, the function must return soon and touch only its own memory. `./dev fuzz` links the targets
// with libFuzzer; for the tests they are linked with replay.c, which runs the corpus.
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
