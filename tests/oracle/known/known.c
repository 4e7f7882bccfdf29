// SPDX-License-Identifier: MIT
// Known stacks: a native thread of the profiler takes cross-thread snapshots of a thread that
// stands or runs at a known place, and each snapshot must be the known stack. One scene at a time:
// the target itself announces its place by calling oracle_scene_begin (scene.c). Threads:
// everything here runs on the native thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ours.h"
#include "pattern.h"
#include "scene.h"

const char *const oracle_name = "known stacks";

static uint32_t snapshots;
static uint64_t walls;

// Every managed frame's ip must lie in the function of that frame.
static bool ips_agree(const struct stack *stack) {
  for (uint32_t i = 0; i < stack->count; i++) {
    const struct stack_frame *f = &stack->frames[i];
    FunctionID id = 0;
    ReJITID rejit;
    if (f->id == 0) continue;
    HRESULT hr = oracle_info->lpVtbl->GetFunctionFromIP3(
        oracle_info, (LPCBYTE)(uintptr_t)(i == 0 ? f->ip : f->ip - 1), &id, &rejit);
    if (SUCCEEDED(hr) && id != f->id) return false;
  }
  return true;
}

// The frame with which the runtime calls a thread; a walk that ends above it was cut short.
static bool reaches_base(const struct stack *stack) {
  static const char *const bases[] = {"System.Threading.Thread.StartCallback",
                                      "Proofs.Program.Main", "System.GC.RunFinalizers"};
  uint32_t i = stack->count;
  while (i > 0 && stack->frames[i - 1].id == 0) i--;
  if (i == 0) return false;
  const char *name = oracle_function_name(stack->frames[i - 1].id);
  for (size_t b = 0; b < sizeof(bases) / sizeof(bases[0]); b++)
    if (strcmp(bases[b], name) == 0) return true;
  return false;
}

struct result {
  uint32_t taken, equal, exact_leaf, failed;
  uint64_t frames;
};

static void judge(const struct scene *scene, const struct stack *stack, struct result *result) {
  bool exact = false;
  const char *wrong = NULL;
  result->taken++;
  result->frames += stack->count;
  if (stack->hr != S_OK)
    wrong = "HRESULT";
  else if (!pattern_match(scene->argument, stack, &exact))
    wrong = "frames";
  else if (!reaches_base(stack))
    wrong = "base";
  else if (!ips_agree(stack))
    wrong = "ip";
  if (exact) result->exact_leaf++;
  if (wrong == NULL) {
    result->equal++;
    return;
  }
  if (result->failed++ < 2) {
    oracle_fail("%s: snapshot %u is not the known stack (%s), pattern %s %s", scene->name,
                result->taken, wrong, scene->argument,
                stack->hr != S_OK ? clrsnap_last_error() : "");
    stack_print(stdout, stack, 0, 40);
  }
}

// Tests the expectation itself: CoreCLR's walk must match it, too.
static void check_pattern(const struct scene *scene) {
  bool exact;
  if (scene->at_begin.hr == S_OK && pattern_match(scene->argument, &scene->at_begin, &exact) &&
      reaches_base(&scene->at_begin))
    return;
  oracle_fail("%s: CoreCLR's own walk does not match the pattern %s", scene->name, scene->argument);
  stack_print(stdout, &scene->at_begin, 0, 40);
}

void scene_run(const struct scene *scene) {
  static struct stack stack;
  struct result result = {0};
  unsigned seed = 12345;
  check_pattern(scene);
  if (!ours_ready()) return;
  for (uint32_t i = 0; i < snapshots; i++) {
    uint64_t before = oracle_now_ns();
    stack_by_ours(&stack, scene->target, COR_PRF_SNAPSHOT_DEFAULT);
    walls += oracle_now_ns() - before;
    judge(scene, &stack, &result);
    usleep((useconds_t)(rand_r(&seed) % 300));
  }
  printf(
      "%-24s %6u snapshots, %6u as known, %6u with the leaf in the function itself, %6.1f frames\n",
      scene->name, result.taken, result.equal, result.exact_leaf,
      (double)result.frames / (double)result.taken);
  fflush(stdout);
  if (result.failed > 2) oracle_fail("%s: %u more such snapshots", scene->name, result.failed - 2);
  // A thread that spins in a known function is nearly always there, and not in the runtime.
  if (scene->argument[0] != '~' && strpbrk(scene->argument, "*?;")[0] == ';')
    ORACLE_CHECK(result.exact_leaf * 2 > result.taken, "%s: the leaf was elsewhere in %u of %u",
                 scene->name, result.taken - result.exact_leaf, result.taken);
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  snapshots = (uint32_t)oracle_env("ORACLE_SNAPSHOTS", 300);
  ours_start(vtbl, 0);
  scene_start();
  return COR_PRF_ENABLE_STACK_SNAPSHOT | ours_mask(high);
}

int oracle_report(void) {
  uint32_t scenes = scene_count();
  printf("%u scenes; a snapshot took %.1f us on average, naming excluded\n", scenes,
         scenes == 0 ? 0.0 : (double)walls / 1000.0 / scenes / snapshots);
  int64_t expected = oracle_env("ORACLE_SCENES", 1);
  ORACLE_CHECK(scenes >= (uint32_t)expected, "%u scenes ran, %ld were expected", scenes,
               (long)expected);
  return 0;
}
