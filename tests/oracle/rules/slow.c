// SPDX-License-Identifier: MIT
// A library whose constructor waits, inside dlopen, until the test lets it go. The environment
// holds the address of two words in rules.c: "I am inside", and "you may leave". Signal-safe: no.
#include <stdint.h>
#include <stdlib.h>

__attribute__((constructor)) static void wait_inside(void) {
  const char *address = getenv("ORACLE_CONSTRUCTOR");
  if (address == NULL) return;
  uint32_t *words = (uint32_t *)(uintptr_t)strtoull(address, NULL, 16);
  __atomic_store_n(&words[0], 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&words[1], __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
}
