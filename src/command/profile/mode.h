// SPDX-License-Identifier: MIT
// What a sample is of, in words: one row for each mode. Any thread.
#ifndef CS_PROFILE_MODE_H
#define CS_PROFILE_MODE_H

#include <stdio.h>

#include "wire/wire.h"

enum cs_unit { CS_UNIT_NS, CS_UNIT_BYTES, CS_UNIT_COUNT };

struct cs_mode {
  const char *token;
  enum cs_unit unit;    // of the samples' weights
  bool timed;           // taken in time; else an event of the runtime
  const char *what[2];  // what a sample is, one and several
  // What pprof calls the number of samples and their weight. NULL: the number says it all.
  const char *count, *weight;
  const char *whole;  // what weights, and so shares, are of: "CPU time"
};

const struct cs_mode *cs_mode(enum cs_wire_mode mode);
// Mode cpu, but counted in an event of the kernel's (base/perf.h).
const struct cs_mode *cs_mode_of_event(uint32_t event);
// 0: it is none.
enum cs_wire_mode cs_mode_by_name(const char *name, size_t len);
const char *cs_unit_name(enum cs_unit unit);  // "nanoseconds", "bytes", "count"
// A number of that unit for people: "1.25 s", "3.1 MB", "12".
void cs_put_amount(FILE *out, enum cs_unit unit, uint64_t amount);
// "22 samples"; of events that were not all walked, "12345 waits, 500 of them walked".
struct cs_facts;
void cs_put_samples(FILE *out, const struct cs_facts *facts);
// "1.25 s of CPU time", "12 exceptions"
void cs_put_whole(FILE *out, const struct cs_mode *mode, uint64_t amount);

#endif
