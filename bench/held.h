// SPDX-License-Identifier: MIT
// The part of the benchmark that measures what a thread loses when another one walks it:
// held.c fills it, bench.c prints it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "clrsnap/corprof.h"

// A scene of the program (Bench.cs), and the thread that is in it.
struct held_scene {
  const char *name;
  ThreadID target;
  uint32_t tid;
};
// Measures it. False: it is none of these.
bool held_run(const struct held_scene *scene);
void held_print(void);
void held_json(FILE *out);
// Were all rows measured?
bool held_complete(void);
