// SPDX-License-Identifier: MIT
// Threads that live for some microseconds, with stacks of all sizes; those with large stacks call
// the function.
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "torture.h"

enum { MOST = 64 };

struct one {
  pthread_t thread;
  uint64_t seed, result;
  torture_function *function;
};

static void *begin(void *arg) {
  struct one *one = arg;
  one->result = spin(one->seed, 500);
  if (one->function != 0) one->result = one->function(one->result);
  return 0;
}

uint64_t torture_spin(uint64_t seed, int rounds) {
  return spin(seed, rounds);
}

uint64_t torture_threads(uint64_t seed, int count, torture_function *function) {
  static const size_t stacks[] = {16 << 10, 48 << 10, 128 << 10, 2 << 20};
  struct one all[MOST];
  uint64_t sum = seed;
  for (int i = 0; i < count && i < MOST; i++) {
    size_t stack = stacks[i % 4];
    pthread_attr_t attr;
    all[i] = (struct one){.seed = mix(seed, (uint64_t)i), .function = i % 4 == 3 ? function : 0};
    if (pthread_attr_init(&attr) != 0 || pthread_attr_setstacksize(&attr, stack) != 0) abort();
    if (pthread_create(&all[i].thread, &attr, begin, &all[i]) != 0) abort();
    (void)pthread_attr_destroy(&attr);
  }
  for (int i = 0; i < count && i < MOST; i++) {
    (void)pthread_join(all[i].thread, 0);
    sum = mix(sum, all[i].result);
  }
  return sum;
}
