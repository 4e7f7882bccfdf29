// SPDX-License-Identifier: MIT
// The cost of a snapshot, with clrsnap and with CoreCLR, in one process: walks of the calling
// thread at several depths, and what a running thread loses to a walk from outside: by clrsnap's
// capture, and by SuspendRuntime + DoStackSnapshot + ResumeRuntime, as profilers do it without it.
// Threads: synchronous walks on the managed thread that calls bench_synchronous, the others on the
// native scene thread. Signal-safe: no. BENCH_JSON names a file for the numbers.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "held.h"
#include "managed.h"
#include "ours.h"
#include "scene.h"

const char *const oracle_name = "bench";

enum { ROUNDS = 7, MAX_DEPTHS = 8 };

struct synchronous {
  uint32_t depth, frames;
  double clr_ns, ours_ns;  // per walk: the best of ROUNDS, so that other load does not count
};
static struct synchronous synchronous[MAX_DEPTHS];
static uint32_t synchronous_count;

static HRESULT count_frames(FunctionID id, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 size,
                            BYTE context[], void *client) {
  (void)id, (void)ip, (void)info, (void)size, (void)context;
  ++*(uint32_t *)client;
  return S_OK;
}

typedef HRESULT walk_once(ThreadID thread, uint32_t *frames);
static HRESULT walk_clr(ThreadID thread, uint32_t *frames) {
  return oracle_info->lpVtbl->DoStackSnapshot(oracle_info, thread, count_frames, 0, frames, NULL,
                                              0);
}
static HRESULT walk_ours(ThreadID thread, uint32_t *frames) {
  return clrsnap_snapshot(thread, count_frames, 0, frames, NULL, 0);
}

static double best_of(walk_once *walk, uint32_t walks, uint32_t *frames) {
  double best = 1e18;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t before = oracle_now_ns();
    for (uint32_t i = 0; i < walks; i++) {
      *frames = 0;
      HRESULT hr = walk(0, frames);
      if (hr != S_OK) oracle_fail("a synchronous walk: %#x %s", (unsigned)hr, clrsnap_last_error());
    }
    double each = (double)(oracle_now_ns() - before) / walks;
    if (each < best) best = each;
  }
  return best;
}

ORACLE_EXPORT void bench_synchronous(int depth);
void bench_synchronous(int depth) {
  if (synchronous_count == MAX_DEPTHS) return;
  struct synchronous *s = &synchronous[synchronous_count++];
  uint32_t walks = 200000 / (uint32_t)(depth + 10) / ROUNDS + 1, ours = 0;
  s->depth = (uint32_t)depth;
  s->clr_ns = best_of(walk_clr, walks, &s->frames);
  s->ours_ns = best_of(walk_ours, walks, &ours);
  ORACLE_CHECK(ours == s->frames, "depth %d: %u frames, by CoreCLR %u", depth, ours, s->frames);
}

void scene_run(const struct scene *scene) {
  if (strcmp(scene->name, "ready") == 0) {
    ours_ready();
    return;
  }
  struct held_scene held = {scene->name, scene->target, scene->tid};
  ORACLE_CHECK(held_run(&held), "there is no scene '%s'", scene->name);
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  ours_start(vtbl, 0);
  scene_start();
  return ours_mask(high);
}

static void write_json(const char *path) {
  FILE *out = fopen(path, "we");
  if (out == NULL) {
    oracle_fail("%s cannot be written", path);
    return;
  }
  fprintf(out, "{\"synchronous\":[");
  for (uint32_t i = 0; i < synchronous_count; i++) {
    const struct synchronous *s = &synchronous[i];
    fprintf(out, "%s{\"depth\":%u,\"frames\":%u,\"coreclr_ns\":%.1f,\"clrsnap_ns\":%.1f}",
            i == 0 ? "" : ",", s->depth, s->frames, s->clr_ns, s->ours_ns);
  }
  fprintf(out, "],\n\"managed\":");
  managed_json(out);
  fprintf(out, ",\n\"held\":");
  held_json(out);
  fprintf(out, "}\n");
  fclose(out);
}

int oracle_report(void) {
  printf("A walk of the calling thread (best of %d rounds)\n", ROUNDS);
  printf("  %6s %12s %12s %12s %12s %8s\n", "frames", "CoreCLR ns", "clrsnap ns", "ns/frame",
         "ns/frame", "ratio");
  for (uint32_t i = 0; i < synchronous_count; i++) {
    const struct synchronous *s = &synchronous[i];
    printf("  %6u %12.0f %12.0f %12.1f %12.1f %8.2f\n", s->frames, s->clr_ns, s->ours_ns,
           s->clr_ns / s->frames, s->ours_ns / s->frames, s->clr_ns / s->ours_ns);
  }
  ORACLE_CHECK(managed_print(), "walks through managed frames were not measured");
  held_print();
  const char *json = getenv("BENCH_JSON");
  if (json != NULL) write_json(json);
  ORACLE_CHECK(synchronous_count > 0 && held_complete(), "not everything was measured");
  return 0;
}
