// SPDX-License-Identifier: MIT
// Converts counter ticks to nanoseconds: ns = origin_ns + (tsc - origin_tsc) * rate / 2^32.
// Invariant: the origin is written once, before `rate` is published, and only `rate` changes later,
// so a reader never combines two measurements. Any thread. Signal-safe: cs_clock_ticks_to_ns only.
#include "base/clock.h"

#include <pthread.h>

// A pair is accurate to about 50 ns, which makes an error of 20 ppm over this time; cs_clock_refine
// reduces it.
#define CALIBRATION_NS 5000000

struct pair {
  uint64_t tsc, ns;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct pair origin;
static uint64_t rate;  // nanoseconds per tick, with 32 fractional bits

uint64_t cs_clock_read_ns(clockid_t clock) {
  struct timespec now;
  return clock_gettime(clock, &now) == 0 ? cs_timespec_ns(now) : 0;
}

uint64_t cs_clock_now_ns(void) {
  return cs_clock_read_ns(CLOCK_MONOTONIC);
}

// Reads the counter and the clock at the same instant. Of several tries the tightest is used, so
// that an interrupt between the reads does no harm.
static struct pair read_pair(void) {
  struct pair best = {0, 0};
  uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < 8; i++) {
    uint64_t before = cs_tsc(), ns = cs_clock_now_ns(), after = cs_tsc();
    if (after - before < best_width) {
      best_width = after - before;
      best = (struct pair){before + best_width / 2, ns};
    }
  }
  return best;
}

static void measure(void) {
  struct pair now = read_pair();
  if (now.tsc <= origin.tsc || now.ns <= origin.ns) return;
  unsigned __int128 scaled = (unsigned __int128)(now.ns - origin.ns) << 32;
  cs_store_release(&rate, (uint64_t)(scaled / (now.tsc - origin.tsc)));
}

static void calibrate(void) {
  origin = read_pair();
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
