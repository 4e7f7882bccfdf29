// SPDX-License-Identifier: MIT
// Invariant: each moment of a suspension is accounted for by one sample at most, whichever thread
// takes it. Signal-safe: yes; atomics and loads only.
#include "signal/suspension.h"

enum { TRIES = 8 };  // compare-and-swaps that other threads' handlers may win

CS_ISLAND bool cs_suspension_waits_for(const struct cs_suspension *suspension,
                                       const struct cs_world *world, uint32_t tid,
                                       uint64_t clr_thread) {
  return cs_load_acquire(&suspension->accounted) != 0 &&
         cs_load_relaxed(&suspension->suspender) != tid && cs_is_cooperative(world, clr_thread);
}

CS_ISLAND uint64_t cs_suspension_account(struct cs_suspension *suspension, uint64_t tsc,
                                         uint64_t ns_of_tick) {
  uint64_t from = cs_load_acquire(&suspension->accounted);
  for (int i = 0; i < TRIES && from != 0 && from < tsc; i++)
    if (cs_cas(&suspension->accounted, &from, tsc)) {
      uint64_t ns = cs_scale(tsc - from, ns_of_tick);
      uint64_t weight = cs_scale(ns, cs_load_relaxed(&suspension->weight));
      cs_add_relaxed(&suspension->weights, weight);
      return weight;
    }
  return 0;
}
