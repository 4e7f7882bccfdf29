// SPDX-License-Identifier: MIT
// Converts counter ticks to nanoseconds: ns = origin_ns + (tsc - origin_tsc) * rate / 2^32.
// Invariant: the origin is written once, before `rate` is published, and only `rate` changes later,
// so a reader never combines two measurements. Any thread. Signal-safe: cs_clock_ticks_to_ns only.
#include "base/clock.h"

#include <pthread.h>

// A pair is accurate to about 50 ns, which makes an error of 20 ppm over this time; cs_clock_refine
// reduces it.
#define CALIBRATION_NS 5000000
enum { READINGS = 8 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct cs_clock_pair origin;
static uint64_t rate;  // nanoseconds per tick, with 32 fractional bits

uint64_t cs_clock_read_ns(clockid_t clock) {
  struct timespec now;
  return clock_gettime(clock, &now) == 0 ? cs_timespec_ns(now) : 0;
}

uint64_t cs_clock_now_ns(void) {
  return cs_clock_read_ns(CLOCK_MONOTONIC);
}

struct cs_clock_pair cs_clock_read_pair(clockid_t clock, unsigned readings) {
  struct cs_clock_pair best = {0, 0};
  uint64_t best_width = UINT64_MAX;
  for (unsigned i = 0; i < readings; i++) {
    uint64_t before = cs_tsc(), ns = cs_clock_read_ns(clock), after = cs_tsc();
    if (after - before >= best_width) continue;
    best_width = after - before;
    best = (struct cs_clock_pair){before + best_width / 2, ns};
  }
  return best;
}

static void measure(void) {
  struct cs_clock_pair now = cs_clock_read_pair(CLOCK_MONOTONIC, READINGS);
  if (now.tsc <= origin.tsc || now.ns <= origin.ns) return;
  unsigned __int128 scaled = (unsigned __int128)(now.ns - origin.ns) << 32;
  cs_store_release(&rate, (uint64_t)(scaled / (now.tsc - origin.tsc)));
}

static void calibrate(void) {
  origin = cs_clock_read_pair(CLOCK_MONOTONIC, READINGS);
  struct timespec nap = {0, CALIBRATION_NS};
  while (nanosleep(&nap, &nap) != 0) {
  }
  measure();
}

void cs_clock_init(void) {
  (void)pthread_once(&once, calibrate);
}

void cs_clock_refine(void) {
  cs_clock_init();
  measure();
}

uint64_t cs_clock_ticks_to_ns(uint64_t ticks) {
  return (uint64_t)(((unsigned __int128)ticks * cs_load_acquire(&rate)) >> 32);
}

uint64_t cs_clock_tsc_to_ns(uint64_t tsc) {
  if (tsc >= origin.tsc) return origin.ns + cs_clock_ticks_to_ns(tsc - origin.tsc);
  return origin.ns - cs_clock_ticks_to_ns(origin.tsc - tsc);  // read before the calibration
}
