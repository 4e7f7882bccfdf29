// SPDX-License-Identifier: MIT
// The native parts of tests/apps/Torture. Each function's result depends on its arguments only.
#pragma once

#include <stdint.h>

static inline uint64_t mix(uint64_t sum, uint64_t value) {
  sum = (sum ^ value) * 0x9E3779B97F4A7C15u;
  return sum ^ sum >> 29;
}

static inline uint64_t spin(uint64_t sum, int rounds) {
  for (int i = 0; i < rounds; i++) sum = mix(sum, (uint64_t)i);
  return sum;
}

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t torture_function(uint64_t value);

int torture_fork(int code);
int torture_vfork(const char *code);
int torture_spawn(const char *code);
int torture_exec(const char *code);
void torture_fault(void);
uint64_t torture_malloc(uint64_t seed, int count, torture_function *function);
uint64_t torture_spin(uint64_t seed, int rounds);
uint64_t torture_threads(uint64_t seed, int count, torture_function *function);
uint64_t torture_stacks(uint64_t seed, int threads);
uint64_t torture_throw(uint64_t seed, int count);
uint64_t torture_realtime(uint64_t seed, int count);
uint64_t torture_masked(uint64_t seed, int count);
uint64_t torture_replaced(uint64_t seed, int count);
long torture_calls(uint64_t seed, int count);
uint64_t tls_sum(uint64_t seed);

#ifdef __cplusplus
}
#endif
