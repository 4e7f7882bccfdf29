// SPDX-License-Identifier: MIT
// A scheduler of coroutines with stacks of their own (tests/apps/Coroutines): small ones, which
// compute and use little of their stack, and a large one, which calls managed code. Each stack lies
// above a gap that nobody may write to, and what was never used of a small one is painted: so it
// is seen how much of it a signal takes.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

typedef int callback_fn(int value);

enum {
  SMALL = 8 << 10,
  LARGE = 256 << 10,
  GAP = 64 << 10,
  COUNT = 4,
  ROUNDS = 20000,
  PAINT = 0xA5
};

struct coroutine {
  ucontext_t context;
  unsigned char *gap, *stack;
  size_t size;
};

struct scheduler {
  ucontext_t main;
  struct coroutine coroutines[COUNT];
  callback_fn *callback;
  unsigned value;
};

__attribute__((noinline)) unsigned coroutine_work(unsigned value);
__attribute__((noinline)) unsigned coroutine_work(unsigned value) {
  for (int i = 0; i < ROUNDS; i++) value = value * 1664525u + 1013904223u;
  return value;
}

static void run(unsigned low, unsigned high, unsigned number) {
  struct scheduler *s = (struct scheduler *)(uintptr_t)((uint64_t)high << 32 | low);
  for (;;) {
    s->value = number == 0 ? (unsigned)s->callback((int)s->value) : coroutine_work(s->value);
    (void)swapcontext(&s->coroutines[number].context, &s->main);
  }
}

static int begin(struct scheduler *s, unsigned number) {
  struct coroutine *c = &s->coroutines[number];
  c->size = number == 0 ? LARGE : SMALL;
  c->gap = mmap(NULL, GAP + c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (c->gap == MAP_FAILED || getcontext(&c->context) != 0) return 0;
  c->stack = c->gap + GAP;
  memset(c->stack, PAINT, c->size);
  c->context.uc_stack.ss_sp = c->stack;
  c->context.uc_stack.ss_size = c->size;
  c->context.uc_link = &s->main;
  makecontext(&c->context, (void (*)(void))run, 3, (unsigned)(uintptr_t)s,
              (unsigned)((uintptr_t)s >> 32), number);
  return 1;
}

// Bytes that were ever written of a small stack at most; -1: below one.
static int most_used(const struct scheduler *s) {
  size_t most = 0;
  for (unsigned i = 0; i < COUNT; i++) {
    const struct coroutine *c = &s->coroutines[i];
    for (size_t at = 0; at < GAP; at++)
      if (c->gap[at] != 0) return -1;
    size_t free = 0;
    while (free < c->size && c->stack[free] == PAINT) free++;
    if (i != 0 && c->size - free > most) most = c->size - free;
  }
  return (int)most;
}

__attribute__((visibility("default"))) int coroutines_run(int rounds, callback_fn *callback,
                                                          unsigned *value);

// Returns what was used of a small stack; the value is the same in every run.
int coroutines_run(int rounds, callback_fn *callback, unsigned *value) {
  struct scheduler *s = calloc(1, sizeof *s);
  if (s == NULL) return -2;
  s->callback = callback;
  for (unsigned i = 0; i < COUNT; i++)
    if (!begin(s, i)) return -2;
  for (int round = 0; round < rounds; round++)
    for (unsigned i = 0; i < COUNT; i++) (void)swapcontext(&s->main, &s->coroutines[i].context);
  *value = s->value;
  int used = most_used(s);
  for (unsigned i = 0; i < COUNT; i++)
    (void)munmap(s->coroutines[i].gap, GAP + s->coroutines[i].size);
  free(s);
  return used;
}
