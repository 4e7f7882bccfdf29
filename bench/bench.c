// SPDX-License-Identifier: MIT
// The cost of a snapshot, ours beside CoreCLR's, in one process: walks of the calling thread at
// several depths, and what it costs a running thread to be looked at: by our capture, and by
// SuspendRuntime + DoStackSnapshot + ResumeRuntime, which is how profilers do it without us.
// Threads: synchronous walks on the managed thread that calls bench_synchronous, the others on the
// native scene thread. Signal-safe: no. BENCH_JSON names a file for the numbers.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "managed.h"
#include "ours.h"
#include "scene.h"

const char *const oracle_name = "bench";

enum { ROUNDS = 7, MAX_DEPTHS = 8, SNAPSHOTS = 2000 };

struct synchronous {
  uint32_t depth, frames;
  double clr_ns, ours_ns;  // per walk: the best of ROUNDS, so that other load does not count
};
static struct synchronous synchronous[MAX_DEPTHS];
static uint32_t synchronous_count;

struct distribution {
  double p50, p99, max;
};
static struct distribution held, answered, suspended;
static uint32_t threads_at_suspend, refused;

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

static int compare_double(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static struct distribution distribute(double *values, uint32_t count) {
  struct distribution d = {0};
  if (count == 0) return d;
  qsort(values, count, sizeof(*values), compare_double);
  d.p50 = values[count / 2];
  d.p99 = values[(uint64_t)count * 99 / 100];
  d.max = values[count - 1];
  return d;
}

static HRESULT ignore_frame(const struct clrsnap_frame *frame, void *data) {
  (void)frame, (void)data;
  return S_OK;
}

static void measure_ours(ThreadID target) {
  static double in_handler[SNAPSHOTS], answer[SNAPSHOTS];
  for (uint32_t i = 0; i < SNAPSHOTS; i++) {
    struct clrsnap_walk_result result = {.size = sizeof(result)};
    uint64_t before = oracle_now_ns();
    HRESULT hr = clrsnap_walk(target, ignore_frame, NULL, NULL, &result);
    answer[i] = (double)(oracle_now_ns() - before);
    in_handler[i] = (double)result.held_ns;
    if (hr != S_OK) oracle_fail("a walk: %#x %s", (unsigned)hr, clrsnap_last_error());
    usleep(500);
  }
  held = distribute(in_handler, SNAPSHOTS);
  answered = distribute(answer, SNAPSHOTS);
}

// Every managed thread stands still from before SuspendRuntime returns until ResumeRuntime does.
static void measure_suspension(ThreadID target) {
  static double stopped[SNAPSHOTS];
  struct oracle_thread threads[64];
  threads_at_suspend = oracle_threads(threads, 64);
  uint32_t taken = 0;
  for (uint32_t i = 0; i < SNAPSHOTS / 4; i++) {
    uint32_t frames = 0;
    uint64_t before = oracle_now_ns();
    if (FAILED(oracle_info->lpVtbl->SuspendRuntime(oracle_info))) continue;
    if (walk_clr(target, &frames) != S_OK || frames == 0) refused++;
    oracle_info->lpVtbl->ResumeRuntime(oracle_info);
    stopped[taken++] = (double)(oracle_now_ns() - before);
    usleep(500);
  }
  suspended = distribute(stopped, taken);
}

void scene_run(const struct scene *scene) {
  if (strcmp(scene->name, "ready") == 0) {
    ours_ready();
    return;
  }
  measure_ours(scene->target);
  measure_suspension(scene->target);
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  ours_start(vtbl, 0);
  scene_start();
  return ours_mask(high);
}

static void print_row(const char *what, struct distribution d) {
  printf("  %-58s %10.1f %10.1f %10.1f\n", what, d.p50 / 1000, d.p99 / 1000, d.max / 1000);
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
  const struct distribution *all[] = {&held, &answered, &suspended};
  static const char *const names[] = {"held_ns", "answered_ns", "suspended_ns"};
  fprintf(out, "]");
  for (int i = 0; i < 3; i++)
    fprintf(out, ",\"%s\":{\"p50\":%.0f,\"p99\":%.0f,\"max\":%.0f}", names[i], all[i]->p50,
            all[i]->p99, all[i]->max);
  fprintf(out, ",\"managed\":");
  managed_json(out);
  fprintf(out, ",\"threads\":%u,\"refused_after_suspend\":%u}\n", threads_at_suspend, refused);
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
  printf("A walk of another thread that runs; %u managed threads in the process (microseconds)\n",
         threads_at_suspend);
  printf("  %-58s %10s %10s %10s\n", "", "p50", "p99", "max");
  print_row("clrsnap: the target in its handler", held);
  print_row("clrsnap: from the question to the answer", answered);
  print_row("SuspendRuntime + DoStackSnapshot + ResumeRuntime: all stop", suspended);
  printf("  held: 1 to %.0f at p50, 1 to %.0f at p99; DoStackSnapshot refused %u of %u\n",
         suspended.p50 / held.p50, suspended.p99 / held.p99, refused, SNAPSHOTS / 4);
  const char *json = getenv("BENCH_JSON");
  if (json != NULL) write_json(json);
  ORACLE_CHECK(synchronous_count > 0 && held.p50 > 0, "nothing was measured");
  return 0;
}
