// SPDX-License-Identifier: MIT
// A library in two builds that look alike from outside: their exports are the same, but what is hot
// in one, RIGHT_NAME, is called WRONG_NAME in the other (mapped.sh).
#include <stdint.h>

#define PASTE(a, b) a##b
#define NAME(word) PASTE(word, _NAME)

__attribute__((noinline, used, visibility("default"))) long NAME(WHICH)(long n);
long NAME(WHICH)(long n) {
  volatile long sum = 0;
  for (long i = 0; i < n; i++) sum = sum + i;
  return sum;
}

__attribute__((visibility("default"))) long spin(long n);
long spin(long n) {
  return NAME(WHICH)(n) + 1;
}
