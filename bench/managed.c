// SPDX-License-Identifier: MIT
// What a managed frame costs, with clrsnap and other walkers, in one .NET process and one run. The
// program (tests/apps/Proofs/BenchStacks.cs) builds stacks of managed methods, says which cell of
// the table comes next (bench_cell), and calls bench_leaf at the top of them. The library is linked
// into this profiler statically, so that its walk can be measured bare, too. Modes as in
// native/native.c. Threads: the one managed thread that calls. Signal-safe: no.
#include "managed.h"

#include <stdlib.h>
#include <string.h>
#ifdef HAVE_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

#include "base/clock.h"
#include "life/start.h"
#include "prof.h"
#include "signal/request.h"
#include "snapshot/self.h"
#include "threads/registry.h"
#include "threads/stackmap.h"
#include "walk/record.h"

enum {
  MAX_FRAMES = 1024,
  WARM = 501,       // walks in a row of one stack
  EVICTIONS = 101,  // walks with the caches swept before each
  MAX_WALKS = 8192,
  SWEEP_BYTES = 96 << 20,
};
enum { ONE, MANY, EVICTED, NEW, MODES };
static const char *const mode_names[MODES] = {"one stack", "64 stacks", "evicted", "new"};
static const uint32_t depths[] = {30, 100};
enum { DEPTHS = 2 };

typedef uint32_t walker(uint64_t *out, uint32_t room);

static struct cs_stack own_stack;
static uint64_t own_clr_thread;

static uint32_t walk_words(uint64_t *out, uint32_t room) {
  struct cs_walk walk;
  struct cs_frame frame;
  struct cs_regs regs;
  uint32_t count = 0;
  cs_regs_of_caller(&regs);
  cs_walk_begin(&walk, &cs_library.world, &regs, &own_stack, 0, room);
  walk.fast = true;
  while (cs_walk_next(&walk, &frame)) {
    out[count++] = CS_FRAME_WORD(frame.regs.r[CS_RIP], frame.code.kind, false);
    count += cs_walk_run_words(&walk, out + count, room - count);
  }
  if (!cs_walk_complete(&walk)) oracle_fail("a bare walk ended early: %d", (int)walk.stop);
  return count;
}

static uint32_t walk_records(uint64_t *out, uint32_t room) {
  static struct cs_record records[MAX_FRAMES];
  struct cs_capture capture = {.records = records, .capacity = MAX_FRAMES};
  struct cs_regs regs;
  (void)out;
  cs_regs_of_caller(&regs);
  cs_capture_walk(&capture, &cs_library.world, &regs, &own_stack, own_clr_thread, room);
  return capture.count;
}

static HRESULT count_frames(FunctionID id, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 size,
                            BYTE context[], void *client) {
  (void)id, (void)ip, (void)info, (void)size, (void)context;
  ++*(uint32_t *)client;
  return S_OK;
}
static uint32_t walk_snapshot(uint64_t *out, uint32_t room) {
  uint32_t frames = 0;
  (void)out, (void)room;
  HRESULT hr = clrsnap_snapshot(0, count_frames, 0, &frames, NULL, 0);
  if (hr != S_OK) oracle_fail("clrsnap_snapshot: %#x %s", (unsigned)hr, clrsnap_last_error());
  return frames;
}
static uint32_t walk_clr(uint64_t *out, uint32_t room) {
  uint32_t frames = 0;
  (void)out, (void)room;
  HRESULT hr =
      oracle_info->lpVtbl->DoStackSnapshot(oracle_info, 0, count_frames, 0, &frames, NULL, 0);
  if (hr != S_OK) oracle_fail("DoStackSnapshot: %#x", (unsigned)hr);
  return frames;
}

#ifdef HAVE_LIBUNWIND
static uint32_t walk_libunwind(uint64_t *out, uint32_t room) {
  return (uint32_t)unw_backtrace((void **)out, (int)room);
}
#endif

// Jitted code keeps the chain; a walker that trusts it must check each link.
static uint32_t walk_frame_pointers(uint64_t *out, uint32_t room) {
  uint64_t frame = (uint64_t)(uintptr_t)__builtin_frame_address(0);
  uint32_t count = 0;
  while (count < room && (frame & 7) == 0 && frame < own_stack.hi - 16) {
    const uint64_t *words = (const uint64_t *)(uintptr_t)frame;
    out[count++] = words[1];
    if (words[0] <= frame) break;
    frame = words[0];
  }
  return count;
}

static const struct peer {
  const char *name;
  walker *walk;
} peers[] = {
    {"clrsnap: ips", walk_words},
    {"clrsnap: ips and registers", walk_records},
    {"clrsnap_snapshot", walk_snapshot},
    {"CoreCLR DoStackSnapshot", walk_clr},
#ifdef HAVE_LIBUNWIND
    {"libunwind unw_backtrace", walk_libunwind},
#endif
    {"frame-pointer chain", walk_frame_pointers},
};
enum { PEERS = (int)(sizeof peers / sizeof peers[0]) };

static struct cell {
  double ns[MAX_WALKS];
  double median;
  uint32_t count, frames;
} cells[PEERS][MODES][DEPTHS];
static struct cell *cell;
static walker *now_walk;
static int now_mode;

ORACLE_EXPORT int bench_peers(void);
int bench_peers(void) {
  return PEERS;
}

// Which cell the walks from here on belong to; `depth` is an index.
ORACLE_EXPORT void bench_cell(int peer, int mode, int depth);
void bench_cell(int peer, int mode, int depth) {
  if (own_stack.hi == 0 && cs_stack_of_self(&own_stack))
    own_clr_thread = cs_registry_find_tid(oracle_gettid())->clr_thread;
  cell = &cells[peer][mode][depth];
  now_walk = peers[peer].walk;
  now_mode = mode;
}

static void sweep(void) {
  static uint8_t *memory;
  if (memory == NULL) memory = calloc(1, SWEEP_BYTES);
  if (memory == NULL) return;
  for (size_t i = 0; i < SWEEP_BYTES; i += 64) memory[i]++;
}

// The top of a stack. P/Invoke, without arguments.
ORACLE_EXPORT void bench_leaf(void);
void bench_leaf(void) {
  static uint64_t out[MAX_FRAMES];
  int walks = now_mode == ONE ? WARM : now_mode == EVICTED ? EVICTIONS : 1;
  for (int i = 0; i < walks && cell->count < MAX_WALKS; i++) {
    if (now_mode == EVICTED) sweep();
    uint64_t before = cs_tsc();
    cell->frames = now_walk(out, MAX_FRAMES);
    cell->ns[cell->count++] = (double)cs_clock_ticks_to_ns(cs_tsc() - before);
  }
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

bool managed_print(void) {
  printf("A managed frame (nanoseconds per frame; %u and %u managed methods on the stack)\n",
         depths[0], depths[1]);
  printf("  %-27s", "");
  for (int m = 0; m < MODES; m++) printf(" %17s", mode_names[m]);
  printf("  frames found\n");
  for (int p = 0; p < PEERS; p++) {
    printf("  %-27s", peers[p].name);
    for (int m = 0; m < MODES; m++)
      for (int d = 0; d < DEPTHS; d++) {
        struct cell *c = &cells[p][m][d];
        if (c->count == 0 || c->frames == 0) return false;
        qsort(c->ns, c->count, sizeof c->ns[0], compare);
        c->median = c->ns[c->count / 2];
        printf(" %8.1f", c->median / c->frames);
      }
    printf("  %u %u\n", cells[p][ONE][0].frames, cells[p][ONE][1].frames);
  }
  return true;
}

void managed_json(FILE *out) {
  fprintf(out, "[");
  for (int p = 0; p < PEERS; p++)
    for (int m = 0; m < MODES; m++)
      for (int d = 0; d < DEPTHS; d++) {
        const struct cell *c = &cells[p][m][d];
        fprintf(out,
                "%s{\"walker\":\"%s\",\"mode\":\"%s\",\"methods\":%u,\"frames\":%u,"
                "\"ns_per_walk\":%.1f}",
                p + m + d == 0 ? "" : ",\n ", peers[p].name, mode_names[m], depths[d], c->frames,
                c->median);
      }
  fprintf(out, "]");
}
