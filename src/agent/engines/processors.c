// SPDX-License-Identifier: MIT
// `found` is a sum over all scans, in which earlier ones count less and less.
// The runtime sets the processors of each of its threads, so a filter that kills for the call would
// have ended the program before.
//
// Invariant: a choice depends only on what was found before it, so its probability is known.
// Signal-safe: no.
#include "engines/processors.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefix.h"

enum { MEMORY = 64 };

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif
#define FEW 0.001     // threads found lately on a processor that is no longer chosen
#define SPREAD 0.125  // the part of all choices in which the processors are equally likely

static struct {
  double found[CPU_SETSIZE];
  cpu_set_t before;  // where the thread may run, but for the moves; empty: there was no begin
  int at;            // where the last move went; negative: there was none
} here = {.at = -1};

// proc(5): of the fields after the name, the first is the state, the 37th the processor, and the
// next are the priority of real-time scheduling and the policy.
int cs_processor_in(const char *stat) {
  const char *at = strrchr(stat, ')');
  char *end;
  if (at == NULL || !cs_has_prefix(at, ") R ")) return -1;
  at++;
  for (int field = 1; field < 37 && at != NULL; field++) at = strchr(at + 1, ' ');
  if (at == NULL) return -1;
  long processor = strtol(at, &end, 10), priority = strtol(end, &end, 10);
  return priority == 0 && strtol(end, NULL, 10) != SCHED_DEADLINE ? (int)processor : -1;
}

unsigned cs_processors_begin(void) {
  memset(&here, 0, sizeof here);
  here.at = -1;
  return sched_getaffinity(0, sizeof here.before, &here.before) == 0
             ? (unsigned)CPU_COUNT(&here.before)
             : 0;
}

void cs_processors_add(int processor, double threads) {
  if (processor >= 0 && processor < CPU_SETSIZE) here.found[processor] += threads;
}

static cpu_set_t only(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((unsigned)processor, &set);
  return set;
}

// If the processors of all threads have been set from outside meanwhile, that holds for the caller
// as well.
static void heed_changes(void) {
  cpu_set_t now, expected = here.at >= 0 ? only(here.at) : here.before;
  if (sched_getaffinity(0, sizeof now, &now) != 0 || CPU_EQUAL(&now, &expected)) return;
  here.before = now;
  here.at = -1;
}

static bool move_to(int processor) {
  cpu_set_t set = only(processor);
  if (processor == here.at) return true;
  if (sched_setaffinity(0, sizeof set, &set) != 0) return false;
  here.at = processor;
  return true;
}

static bool is_used(int processor) {
  return here.found[processor] >= FEW && CPU_ISSET((unsigned)processor, &here.before);
}

// Returns one of the used processors, of which there are `count`, and its probability.
static int choose(double point, unsigned count, double sum, double *probability) {
  int last = -1;
  for (int i = 0; i < CPU_SETSIZE && point >= 0; i++) {
    if (!is_used(i)) continue;
    *probability = SPREAD / count + (1 - SPREAD) * here.found[i] / sum;
    point -= *probability;
    last = i;
  }
  return last;
}

double cs_processors_move(uint64_t random) {
  unsigned count = 0;
  double sum = 0, probability = 1;
  heed_changes();
  for (int i = 0; i < CPU_SETSIZE; i++) {
    here.found[i] -= here.found[i] / MEMORY;
    if (!is_used(i)) continue;
    count++;
    sum += here.found[i];
  }
  if (count == 0) return 1;
  int next = choose((double)(random >> 11) * 0x1p-53, count, sum, &probability);
  return move_to(next) ? probability : 0;
}

void cs_processors_end(void) {
  heed_changes();
  if (here.at >= 0) (void)sched_setaffinity(0, sizeof here.before, &here.before);
  here.at = -1;
}
