// SPDX-License-Identifier: MIT
// When a thread may be sampled again. Signal-safe: yes; on the thread itself.
//
// The time-stamp counter costs nothing, but runs on while the thread is switched out: a thread that
// runs for a tenth of the time would spend all of it in walks, and one that is switched out during
// a walk would not be sampled for a long time. So the cost of a long walk, and the cooldown after
// it, are measured by the thread's CPU clock as well, which is a system call. A short walk needs
// neither: a time slice is a hundred times as long. The CPU clock of a virtual machine may run on
// while the host has the processor, so no sample counts for more than twice the limit of its walk.
#include "signal/cooldown.h"

enum { SHORT_NS = 5000 };

// *now_cpu: the CPU clock if the sample took long, else 0.
CS_ISLAND static uint64_t cost_ns(uint64_t begin, uint64_t now, uint64_t begin_cpu,
                                  uint64_t limit_ns, uint64_t *now_cpu) {
  uint64_t cost = cs_scale(now - begin, cs_signal.ns_of_tick);
  *now_cpu = cost > SHORT_NS ? cs_thread_cpu_ns() : 0;
  uint64_t used = *now_cpu - begin_cpu;
  if (*now_cpu != 0 && begin_cpu != 0 && used < cost) cost = used;
  return limit_ns == 0 || cost < 2 * limit_ns ? cost : 2 * limit_ns;
}

CS_ISLAND bool cs_in_cooldown(const struct cs_cooldown *cooldown, uint64_t tsc) {
  return tsc < cooldown->until ||
         (cooldown->until_cpu != 0 && cs_thread_cpu_ns() < cooldown->until_cpu);
}

CS_ISLAND uint64_t cs_cooldown_begin(struct cs_cooldown *cooldown, uint64_t begin,
                                     uint64_t begin_cpu, uint64_t limit_ns) {
  uint64_t now = cs_tsc(), now_cpu, cost = cost_ns(begin, now, begin_cpu, limit_ns, &now_cpu);
  cs_store_relaxed(&cooldown->cost_ns, cost);
  cooldown->until_cpu = now_cpu != 0 ? now_cpu + cost * (CS_COOLDOWN_SHARE - 1) : 0;
  cooldown->until = now + cs_scale(cost * (CS_COOLDOWN_SHARE - 1), cs_signal.ticks_of_ns);
  return cost;
}

CS_ISLAND bool cs_in_event_cooldown(const struct cs_cooldown *cooldown, uint64_t tsc) {
  return tsc +
             cs_scale((uint64_t)CS_COOLDOWN_EVENTS_NS * CS_COOLDOWN_SHARE, cs_signal.ticks_of_ns) <
         cooldown->events_until;
}

CS_ISLAND void cs_cooldown_begin_event(struct cs_cooldown *cooldown, uint64_t begin,
                                       uint64_t begin_cpu, uint64_t limit_ns) {
  uint64_t now_cpu, cost = cost_ns(begin, cs_tsc(), begin_cpu, limit_ns, &now_cpu);
  if (cooldown->events_until < begin) cooldown->events_until = begin;
  cooldown->events_until += cs_scale(cost * CS_COOLDOWN_SHARE, cs_signal.ticks_of_ns);
}
