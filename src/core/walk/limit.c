// SPDX-License-Identifier: MIT
// The limit of a walk's CPU time. Signal-safe: yes; on the thread that walks.
#include "walk/walk.h"

CS_ISLAND static void check_again_in(struct cs_walk *walk, uint64_t now, uint64_t ns) {
  walk->near.check_at = now + cs_scale(ns, walk->tick_rate);
}

CS_ISLAND void cs_walk_limit(struct cs_walk *walk, uint64_t limit_ns, uint64_t tick_rate) {
  if (limit_ns == 0 || tick_rate == 0) return;
  walk->limit_ns = limit_ns;
  walk->tick_rate = tick_rate;
  check_again_in(walk, cs_tsc(), limit_ns / 8);
}

// The host of a virtual machine that takes a processor away need not say so; the kernel then counts
// that time as the thread's CPU time. No step takes an eighth of the limit, so such a gap between
// two checks is not the walk's own work. Two are forgiven, because a step may take long after all.
CS_ISLAND static bool is_forgiven(struct cs_walk *walk, uint64_t now, uint64_t cpu) {
  enum { FORGIVEN = 2 };
  uint64_t eighth = walk->limit_ns / 8;
  if (now - walk->near.check_at < cs_scale(eighth, walk->tick_rate)) return false;
  if (walk->gaps == FORGIVEN) return false;
  walk->gaps++;
  walk->cpu_until = cpu + eighth;
  return true;
}

// Reads the time-stamp counter, which also counts while the thread has no processor, for each
// frame. The thread's CPU clock, which takes a system call, is read only once enough time has
// passed for it to have reached the limit. So a walk is not cut because it was preempted, and a
// short one never makes the system call.
CS_ISLAND bool cs_walk_is_late(struct cs_walk *walk) {
  if (walk->limit_ns == 0 || walk->late) return walk->late;
  uint64_t now = cs_tsc();
  if (now < walk->near.check_at) return false;
  uint64_t cpu = cs_thread_cpu_ns();
  if (walk->cpu_until == 0) walk->cpu_until = cpu + walk->limit_ns - walk->limit_ns / 8;
  walk->late = cpu >= walk->cpu_until && !is_forgiven(walk, now, cpu);
  if (!walk->late) check_again_in(walk, now, walk->cpu_until - cpu);
  return walk->late;
}
