// SPDX-License-Identifier: MIT
// What a native frame costs, with clrsnap and other walkers, in one process and one run: leaf-first
// walks of the calling thread's own stack through generated functions (generate.awk) in eight
// libraries. Per cell the median of many walks; the walkers take turns within each round, so that
// other load on the machine affects all of them. Threads: one. Signal-safe: no.
//
//   one stack    the same stack again and again
//   64 stacks    64 different stacks in turn, each walked once
//   evicted      as one stack, with 96 MiB swept through the caches before each walk
//   new          call sites that this walker has never seen in this process
// Usage: native MODULE.so... -- FRAME_POINTER_MODULE.so... [--json FILE]
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "base/clock.h"
#include "base/error.h"
#include "chain.h"
#include "life/start.h"
#include "snapshot/self.h"
#include "threads/registry.h"
#include "threads/stackmap.h"
#include "walk/record.h"

enum {
  MAX_MODULES = 16,
  MAX_FRAMES = 512,
  ROUNDS = 2001,
  STACKS = 64,
  EVICTIONS = 101,
  NEW_STACKS = 25,
  SWEEP_BYTES = 96 << 20,
};

typedef uint32_t walker(void **out, uint32_t room);

// ---- The walkers ----

static uint32_t walk_ours(void **out, uint32_t room) {
  struct cs_walk walk;
  struct cs_frame frame;
  static struct cs_stack stack;
  if (stack.hi == 0) (void)cs_stack_of_self(&stack);
  struct cs_regs regs;
  cs_regs_of_caller(&regs);
  uint64_t *words = (uint64_t *)out;
  uint32_t count = 0;
  cs_walk_begin(&walk, &cs_library.world, &regs, &stack, 0, room);
  walk.fast = true;
  while (cs_walk_next(&walk, &frame)) {
    words[count++] = CS_FRAME_WORD(frame.regs.r[CS_RIP], frame.code.kind, false);
    count += cs_walk_run_words(&walk, words + count, room - count);
  }
  return count;
}

static uint32_t walk_unw_backtrace(void **out, uint32_t room) {
  return (uint32_t)unw_backtrace(out, (int)room);
}

static uint32_t walk_unw_step(void **out, uint32_t room) {
  unw_context_t context;
  unw_cursor_t cursor;
  uint32_t count = 0;
  unw_word_t ip;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return 0;
  do {
    if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0) break;
    out[count++] = (void *)(uintptr_t)ip;
  } while (count < room && unw_step(&cursor) > 0);
  return count;
}

// The C library's own: libunwind has a function of the same name, which would be taken otherwise.
static int (*glibc_backtrace)(void **, int);
static uint32_t walk_glibc(void **out, uint32_t room) {
  return (uint32_t)glibc_backtrace(out, (int)room);
}

// Right only where every function keeps rbp as its frame pointer; without checks, to be the lower
// bound for all walkers.
static uint64_t chain_end;
static uint32_t walk_frame_pointers(void **out, uint32_t room) {
  const uint64_t *frame = __builtin_frame_address(0);
  uint32_t count = 0;
  while (count < room && (uint64_t)(uintptr_t)frame < chain_end) {
    out[count++] = (void *)(uintptr_t)frame[1];
    frame = (const uint64_t *)(uintptr_t)frame[0];
  }
  return count;
}

struct peer {
  const char *name;
  walker *walk;
  bool frame_pointers;  // walks the modules that are built for it
};
static const struct peer peers[] = {
    {"clrsnap", walk_ours, false},
    {"libunwind unw_backtrace", walk_unw_backtrace, false},
    {"libunwind unw_step", walk_unw_step, false},
    {"glibc backtrace", walk_glibc, false},
    {"frame-pointer chain", walk_frame_pointers, true},
};
enum { PEERS = (int)CS_COUNT(peers) };

// ---- Stacks ----

static const struct chain_module *modules[2][MAX_MODULES];
static uint32_t module_count[2];
static uint64_t random_state = 88172645463325252ull;
static uint32_t random_below(uint32_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state >> 11) % n;
}

struct stack {
  struct chain_step step[MAX_FRAMES + 2];
  uint32_t depth;
};

// At the leaf: what is to be measured there.
static struct {
  walker *walk;
  uint32_t walks;
  double *ns;
  uint32_t frames;
  bool sweep;
} leaf;
static uint8_t *sweep_memory;

static void sweep(void) {
  for (size_t i = 0; i < SWEEP_BYTES; i += 64) sweep_memory[i]++;
}

static __attribute__((noinline)) long at_leaf(struct chain *chain, long value) {
  static void *out[MAX_FRAMES * 2];
  (void)chain;
  for (uint32_t i = 0; i < leaf.walks; i++) {
    if (leaf.sweep) sweep();
    uint64_t before = cs_tsc();
    leaf.frames = leaf.walk(out, MAX_FRAMES * 2);
    leaf.ns[i] = (double)cs_clock_ticks_to_ns(cs_tsc() - before);
  }
  return value;
}

static void make_stack(struct stack *stack, uint32_t depth, bool frame_pointers) {
  stack->depth = depth;
  for (uint32_t i = 0; i < depth; i++) {
    const struct chain_module *m =
        modules[frame_pointers][random_below(module_count[frame_pointers])];
    stack->step[i].function = m->functions[random_below(m->count)];
    stack->step[i].site = random_below(CHAIN_SITES);
  }
  stack->step[depth].function = at_leaf;
}

// Call sites that no stack has had before.
static void make_new_stack(struct stack *stack, uint32_t depth, bool frame_pointers) {
  static uint32_t next[2];
  stack->depth = depth;
  for (uint32_t i = 0; i < depth; i++) {
    uint32_t at = next[frame_pointers]++;
    const struct chain_module *m = modules[frame_pointers][at % module_count[frame_pointers]];
    at /= module_count[frame_pointers];
    // The highest functions first: those of the other stacks are drawn from all.
    stack->step[i].function = m->functions[(at * 7 + at / m->count) % m->count];
    stack->step[i].site = at / m->count % CHAIN_SITES;
  }
  stack->step[depth].function = at_leaf;
}

static void run_stack(const struct stack *stack, const struct peer *peer, uint32_t walks,
                      double *ns, bool with_sweep) {
  struct chain chain = {.step = stack->step + 1};
  leaf.walk = peer->walk;
  leaf.walks = walks;
  leaf.ns = ns;
  leaf.sweep = with_sweep;
  (void)stack->step[0].function(&chain, 5);
  if (leaf.frames < stack->depth) {
    fprintf(stderr, "%s found %u frames of %u\n", peer->name, leaf.frames, stack->depth);
    exit(1);
  }
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static double median(double *values, uint32_t count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

// ---- The table ----

enum mode { ONE, MANY, EVICTED, NEW, MODES };
static const char *const mode_names[] = {"one stack", "64 stacks", "evicted", "new"};
static const uint32_t depths[] = {30, 100};
enum { DEPTHS = (int)CS_COUNT(depths) };
static double result[PEERS][MODES][DEPTHS];  // ns per walk

static void measure_new(int d) {
  double ns[PEERS][NEW_STACKS];
  for (uint32_t i = 0; i < NEW_STACKS; i++)
    for (int p = 0; p < PEERS; p++) {
      struct stack stack;
      make_new_stack(&stack, depths[d], peers[p].frame_pointers);
      run_stack(&stack, &peers[p], 1, &ns[p][i], false);
    }
  for (int p = 0; p < PEERS; p++) result[p][NEW][d] = median(ns[p], NEW_STACKS);
}

static void measure_one(int d) {
  static double ns[ROUNDS], rounds[PEERS][ROUNDS];
  struct stack stack[2];
  make_stack(&stack[0], depths[d], false);
  make_stack(&stack[1], depths[d], true);
  enum { TURNS = 9 };
  for (int turn = 0; turn < TURNS; turn++)
    for (int p = 0; p < PEERS; p++) {
      run_stack(&stack[peers[p].frame_pointers], &peers[p], ROUNDS, ns, false);
      rounds[p][turn] = median(ns, ROUNDS);
    }
  for (int p = 0; p < PEERS; p++) result[p][ONE][d] = median(rounds[p], TURNS);
  for (int p = 0; p < PEERS; p++) {
    run_stack(&stack[peers[p].frame_pointers], &peers[p], EVICTIONS, ns, true);
    result[p][EVICTED][d] = median(ns, EVICTIONS);
  }
}

static void measure_many(int d) {
  enum { TURNS = 40 };
  static struct stack stacks[2][STACKS];
  static double ns[TURNS * STACKS];
  for (int s = 0; s < STACKS; s++) {
    make_stack(&stacks[0][s], depths[d], false);
    make_stack(&stacks[1][s], depths[d], true);
  }
  for (int p = 0; p < PEERS; p++) {
    for (int turn = -2; turn < TURNS; turn++)  // two turns to warm up
      for (int s = 0; s < STACKS; s++)
        run_stack(&stacks[peers[p].frame_pointers][s], &peers[p], 1,
                  &ns[(turn < 0 ? 0 : turn) * STACKS + s], false);
    result[p][MANY][d] = median(ns, TURNS * STACKS);
  }
}

static void print_table(void) {
  printf("A native frame (nanoseconds per frame; stacks of %u and %u frames)\n", depths[0],
         depths[1]);
  printf("  %-26s", "");
  for (int m = 0; m < MODES; m++) printf(" %17s", mode_names[m]);
  printf("\n");
  for (int p = 0; p < PEERS; p++) {
    printf("  %-26s", peers[p].name);
    for (int m = 0; m < MODES; m++)
      printf(" %8.1f %8.1f", result[p][m][0] / depths[0], result[p][m][1] / depths[1]);
    printf("\n");
  }
}

static bool write_json(const char *path) {
  FILE *out = fopen(path, "we");
  if (out == NULL) return false;
  fprintf(out, "[");
  for (int p = 0; p < PEERS; p++)
    for (int m = 0; m < MODES; m++)
      for (int d = 0; d < DEPTHS; d++)
        fprintf(out, "%s{\"walker\":\"%s\",\"mode\":\"%s\",\"frames\":%u,\"ns_per_walk\":%.1f}",
                p + m + d == 0 ? "" : ",\n ", peers[p].name, mode_names[m], depths[d],
                result[p][m][d]);
  fprintf(out, "]\n");
  return fclose(out) == 0;
}

static void load(const char *path, int kind) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const struct chain_module *module = library != NULL ? dlsym(library, "chain_module") : NULL;
  if (module == NULL || module_count[kind] == MAX_MODULES) {
    fprintf(stderr, "%s cannot be used: %s\n", path, dlerror());
    exit(1);
  }
  modules[kind][module_count[kind]++] = module;
}

int main(int argc, char **argv) {
  const char *json = NULL;
  int kind = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--") == 0)
      kind = 1;
    else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
      json = argv[++i];
    else
      load(argv[i], kind);
  }
  struct cs_error err = {0};
  if (module_count[0] == 0 || module_count[1] == 0 || cs_library_start_native(NULL, &err) != S_OK) {
    fprintf(stderr, "native MODULE.so... -- FRAME_POINTER_MODULE.so... %s\n", err.text);
    return 1;
  }
  chain_end = (uint64_t)(uintptr_t)__builtin_frame_address(0);
  sweep_memory = calloc(1, SWEEP_BYTES);
  if (sweep_memory == NULL) return 1;
  void *warm[16];
  void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  glibc_backtrace = libc != NULL ? (int (*)(void **, int))dlsym(libc, "backtrace") : NULL;
  if (glibc_backtrace == NULL) return 1;
  (void)glibc_backtrace(warm, 16);  // loads libgcc
  for (int d = 0; d < DEPTHS; d++) measure_new(d);
  for (int d = 0; d < DEPTHS; d++) {
    measure_one(d);
    measure_many(d);
  }
  print_table();
  if (json != NULL && !write_json(json)) {
    fprintf(stderr, "%s cannot be written\n", json);
    return 1;
  }
  return 0;
}
