// SPDX-License-Identifier: MIT
// Score tests: the variance is that which the samples would have if the limit were the truth, so a
// side without any sample in question is not a special case. Any thread. Signal-safe: no.
#include "profile/change.h"

#include <math.h>

static const double quantile = 1.959963984540054;  // of CS_CHANGE_SIGNIFICANCE
enum { STEPS = 200 };                              // of a bisection, more than a double has bits
#define LARGEST_RATIO 1e9

// Returns the number of equal samples that would be as uncertain.
static double samples_of(const struct cs_comparison *c, const struct cs_measure *m) {
  if (!c->shares) return m->whole;
  return m->whole_squares > 0 ? m->whole * m->whole / m->whole_squares : 0;
}

static double between(double value, double least, double most) {
  return value < least ? least : value > most ? most : value;
}

// The true values on both sides, if the change is `limit` and otherwise what was measured.
static void assume(const struct cs_comparison *c, double limit, double truth[2]) {
  double n[2] = {samples_of(c, &c->before), samples_of(c, &c->after)};
  double seen[2] = {cs_measure_value(&c->before), cs_measure_value(&c->after)};
  double most = c->shares ? 1 : INFINITY;
  if (c->kind == CS_CHANGE_LEVEL) {
    truth[0] = 0;
    truth[1] = limit;
  } else if (c->kind == CS_CHANGE_RATIO) {
    double all = n[0] + limit * n[1];
    truth[0] = all > 0 ? (n[0] * seen[0] + n[1] * seen[1]) / all : 0;
    truth[1] = limit * truth[0];
  } else {
    double all = n[0] + n[1];
    truth[0] = all > 0 ? (n[0] * seen[0] + n[1] * (seen[1] - limit)) / all : 0;
    truth[1] = truth[0] + limit;
  }
  for (int i = 0; i < 2; i++) truth[i] = between(truth[i], 0, most);
}

// Of part / whole, if the truth is `value`, and the samples in question weigh `typical` each: their
// sum of squares is estimated from both sides, because one of them may have none.
static double variance(const struct cs_comparison *c, const struct cs_measure *m, double value,
                       double typical) {
  if (m->whole <= 0) return 0;
  double part = typical * value / m->whole;
  if (!c->shares) return part;
  double all = m->whole_squares / (m->whole * m->whole);
  double sum = part * (1 - 2 * value) + all * value * value;
  return sum > 0 ? sum : 0;
}

// How heavy a sample in question is: where there is none, as any sample.
static double typical_weight(const struct cs_comparison *c) {
  double part = c->before.part + c->after.part;
  double whole = c->before.whole + c->after.whole;
  if (part > 0) return (c->before.part_squares + c->after.part_squares) / part;
  return c->shares && whole > 0 ? (c->before.whole_squares + c->after.whole_squares) / whole : 0;
}

// By how many standard deviations the measured change exceeds the limit.
static double excess(const struct cs_comparison *c, double limit) {
  double truth[2], typical = typical_weight(c), factor = 1;
  double more = cs_measure_value(&c->after) - limit;
  assume(c, limit, truth);
  if (c->kind == CS_CHANGE_RATIO) {
    factor = limit;
    more = cs_measure_value(&c->after) - limit * cs_measure_value(&c->before);
  } else if (c->kind == CS_CHANGE_DIFFERENCE) {
    more -= cs_measure_value(&c->before);
  }
  double sum = variance(c, &c->after, truth[1], typical);
  if (c->kind != CS_CHANGE_LEVEL)
    sum += factor * factor * variance(c, &c->before, truth[0], typical);
  if (sum > 0) return more / sqrt(sum);
  return more > 0 ? INFINITY : more < 0 ? -INFINITY : 0;
}

double cs_change_measured(const struct cs_comparison *c) {
  double before = cs_measure_value(&c->before), after = cs_measure_value(&c->after);
  if (c->kind == CS_CHANGE_LEVEL) return after;
  if (c->kind == CS_CHANGE_DIFFERENCE) return after - before;
  if (before > 0) return after / before;
  return after > 0 ? INFINITY : NAN;
}

double cs_change_chance(const struct cs_comparison *c, double limit) {
  return erfc(excess(c, limit) / sqrt(2)) / 2;
}

// Returns where `excess`, which falls as the limit rises, comes down to `wanted`.
static double cross(const struct cs_comparison *c, double least, double most, double wanted) {
  if (excess(c, least) <= wanted) return least;
  if (excess(c, most) >= wanted) return most;
  for (int i = 0; i < STEPS; i++) {
    // Ratios may be far apart, so that their middle is the geometric one.
    bool far = least > 0 && most / least > 4;
    double middle = far ? sqrt(least * most) : (least + most) / 2;
    if (excess(c, middle) > wanted)
      least = middle;
    else
      most = middle;
  }
  return least;
}

void cs_change_interval(const struct cs_comparison *c, double *low, double *high) {
  double most = cs_measure_value(&c->before) + cs_measure_value(&c->after);
  double room = most + 10 * quantile * sqrt(variance(c, &c->after, most, typical_weight(c)));
  double from = 0, to = c->shares ? 1 : room;
  if (c->kind == CS_CHANGE_DIFFERENCE) from = -to;
  if (c->kind == CS_CHANGE_RATIO) to = LARGEST_RATIO;
  *low = cross(c, from, to, quantile);
  *high = cross(c, from, to, -quantile);
  if (c->kind == CS_CHANGE_RATIO && *high >= LARGEST_RATIO) *high = INFINITY;
}

double cs_share_error(double whole, double whole_squares) {
  if (whole <= 0 || whole_squares <= 0) return 0.5;
  double error = quantile / 2 * sqrt(whole_squares) / whole;
  return error < 0.5 ? error : 0.5;
}
