// SPDX-License-Identifier: MIT
// libstepmark.so, loaded by the stepped program (tests/apps/Step). Its marks show the tracer which
// thread to step, and where each scene begins and ends. A mark is a trap with a number in a
// register, so it is recognised without symbols. Any thread. Without a tracer (no STEP_FD) a mark
// does nothing.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mark_insn.h"
#include "step.h"

#define EXPORT __attribute__((visibility("default")))

static bool traced;

EXPORT int step_attach(void);
EXPORT void step_begin(const char *name);
EXPORT void step_end(void);
EXPORT int step_callback(int (*callback)(int), int depth);
EXPORT void step_sort(int *numbers, size_t count, int (*compare)(const void *, const void *));
EXPORT size_t step_libc(unsigned rounds);

// Waits until the tracer has attached to this thread. Returns 1 if it has.
int step_attach(void) {
  const char *text = getenv(STEP_FD_ENV);
  if (text == NULL) return 0;
  int fd = atoi(text), tid = gettid();
  char answer;
  traced = write(fd, &tid, sizeof tid) == (ssize_t)sizeof tid && read(fd, &answer, 1) == 1;
  (void)close(fd);
  return traced;
}

static __attribute__((noinline)) void mark(uint64_t what, const char *name) {
  if (traced) STEP_MARK(what, name);
}

void step_begin(const char *name) {
  mark(STEP_MARK_BEGIN, name);
}

void step_end(void) {
  mark(STEP_MARK_END, NULL);
}

// Native code between two managed frames.
int step_callback(int (*callback)(int), int depth) {
  volatile int before = depth;
  return callback(depth) + before - depth;
}

void step_sort(int *numbers, size_t count, int (*compare)(const void *, const void *)) {
  qsort(numbers, count, sizeof *numbers, compare);
}

// The C library by itself: copies of sizes that take different code paths, the allocator's small
// and large paths, and system calls.
size_t step_libc(unsigned rounds) {
  static const size_t sizes[] = {1, 7, 16, 33, 100, 257, 1000, 5000};
  size_t sum = 0;
  for (unsigned round = 0; round < rounds; round++) {
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      size_t size = sizes[i] + round % 5;
      char *a = malloc(size), *b = calloc(1, size);
      if (a == NULL || b == NULL) abort();
      memset(a, (int)round, size);
      memcpy(b, a, size);
      memmove(b, b + size / 3, size - size / 3);
      sum += (size_t)memcmp(a, b, size) + strnlen(b, size);
      a = realloc(a, size * 3);
      if (a == NULL) abort();
      free(a);
      free(b);
    }
    sum += (size_t)getppid();
  }
  return sum;
}
