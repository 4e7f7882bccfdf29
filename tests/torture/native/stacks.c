// SPDX-License-Identifier: MIT
// Threads with their own handlers on their own alternate stacks, as small as the runtime's. Each
// takes a signal in each round.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "torture.h"

enum { MOST = 64, SIGNALS = 50, SMALLEST = 16 << 10 };

struct one {
  pthread_t thread;
  uint64_t seed, result;
  size_t size;
};
static _Thread_local volatile uint64_t *sum_here;

static void on_signal(int number) {
  (void)number;
  *sum_here = spin(*sum_here, 300);
}

static void *begin(void *arg) {
  struct one *one = arg;
  volatile uint64_t sum = one->seed;
  stack_t stack = {.ss_sp = malloc(one->size), .ss_size = one->size};
  if (stack.ss_sp == 0 || sigaltstack(&stack, 0) != 0) abort();
  sum_here = &sum;
  for (int i = 0; i < SIGNALS; i++) {
    sum = spin(sum, 300);
    (void)pthread_kill(pthread_self(), SIGUSR2);
  }
  stack_t none = {.ss_flags = SS_DISABLE};
  (void)sigaltstack(&none, 0);
  free(stack.ss_sp);
  one->result = sum;
  return 0;
}

uint64_t torture_stacks(uint64_t seed, int threads) {
  struct one all[MOST];
  uint64_t sum = seed;
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
  if (sigaction(SIGUSR2, &action, 0) != 0) abort();
  for (int i = 0; i < threads && i < MOST; i++) {
    all[i] = (struct one){.seed = mix(seed, (uint64_t)i), .size = SMALLEST << i % 3};
    if (pthread_create(&all[i].thread, 0, begin, &all[i]) != 0) abort();
  }
  for (int i = 0; i < threads && i < MOST; i++) {
    (void)pthread_join(all[i].thread, 0);
    sum = mix(sum, all[i].result);
  }
  return sum;
}
