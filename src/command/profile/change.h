// SPDX-License-Identifier: MIT
// Whether a number of one recording differs from that of another by more than the chance of
// sampling. The tests are one-sided score tests in the normal approximation: of two binomial
// shares, or of two Poisson amounts, both generalised to samples that weigh differently. An
// interval holds the limits that the test would not reject. Each sample counts as independent of
// the others, and nothing is known about how much two runs of the program differ. Any thread.
#pragma once

#include <stdbool.h>

// One-sided. An interval leaves out as much at each end, so it is one of 95 %.
#define CS_CHANGE_SIGNIFICANCE 0.025
#define CS_CHANGE_INTERVAL "95 %%"  // in a format

// Of one recording: the weights of the samples in question, and of all; and the sums of the squares
// of the single weights.
struct cs_measure {
  double part, part_squares;
  double whole, whole_squares;
};
static inline double cs_measure_value(const struct cs_measure *m) {
  return m->whole > 0 ? m->part / m->whole : 0;
}

enum cs_change_kind {
  CS_CHANGE_RATIO,       // after / before
  CS_CHANGE_DIFFERENCE,  // after - before
  CS_CHANGE_LEVEL,       // after
};

struct cs_comparison {
  enum cs_change_kind kind;
  // Whether `whole` is the sum of samples. If not, it is known exactly: seconds, or 1. What is
  // compared is part / whole of each side in both cases.
  bool shares;
  struct cs_measure before, after;
};

// What was measured; INFINITY: the ratio to 0; NAN: 0 to 0.
double cs_change_measured(const struct cs_comparison *c);
// Returns the probability that chance alone shows at least what was measured if the true change is
// `limit`.
double cs_change_chance(const struct cs_comparison *c, double limit);
// The interval of CS_CHANGE_INTERVAL; *high may be INFINITY.
void cs_change_interval(const struct cs_comparison *c, double *low, double *high);
// By how much a share of about one half may be off either way, in an interval of
// CS_CHANGE_INTERVAL: 0.5 means that it is not known at all.
double cs_share_error(double whole, double whole_squares);
