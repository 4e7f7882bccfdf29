// SPDX-License-Identifier: MIT
// What a mode records, in words. Any thread.
#pragma once

#include <stdio.h>

#include "wire/wire.h"

enum cs_unit { CS_UNIT_NS, CS_UNIT_BYTES, CS_UNIT_COUNT };

struct cs_mode {
  const char *token;
  const char *about;    // what is recorded
  enum cs_unit unit;    // of the samples' weights
  bool timed;           // samples in time; otherwise events of the runtime
  const char *what[2];  // a sample's noun, singular and plural
  // pprof's names for the number of samples and for their weight. NULL weight: there is only a
  // number.
  const char *count, *weight;
  const char *whole;  // what weights and shares are parts of: "CPU time"
};

const struct cs_mode *cs_mode(enum cs_wire_mode mode);
// CPU mode that counts a perf event (base/perf.h) instead of CPU time.
const struct cs_mode *cs_mode_of_event(uint32_t event);
// Returns 0 if no mode has that name.
enum cs_wire_mode cs_mode_by_name(const char *name, size_t len);
// The names of these CS_WIRE_MODE_BITs: "cpu, wall, ...".
#define CS_MODE_NAMES_BYTES 80
const char *cs_mode_names(uint32_t which, char text[CS_MODE_NAMES_BYTES]);
const char *cs_unit_name(enum cs_unit unit);  // "nanoseconds", "bytes", "count"
// Prints an amount for people: "1.25 s", "3.1 MB", "12".
void cs_put_amount(FILE *out, enum cs_unit unit, uint64_t amount);
// "1.25 s of CPU time", "12 exceptions"
void cs_put_whole(FILE *out, const struct cs_mode *mode, uint64_t amount);
// The line on the time of idle threads that is left out, if there is any.
void cs_put_left_out(FILE *out, const struct cs_mode *mode, uint64_t amount);
// A sentence without its full stop on the time in which the program was stopped, in wall mode.
void cs_put_halts(FILE *out, uint64_t halted_ns);
