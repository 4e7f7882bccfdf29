// SPDX-License-Identifier: MIT
// The part of the benchmark that measures walks of the calling thread through managed frames:
// managed.c fills it, bench.c prints it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// "A managed frame": the table, after the program has run. False: nothing was measured.
bool managed_print(void);
// Its cells as a JSON array.
void managed_json(FILE *out);
