// SPDX-License-Identifier: MIT
// A recursion of 100,000 frames: with the default depth limit the walk is reported as cut there,
// and every frame up to there is right; with a limit that is deep enough it is complete. Threads:
// checks run on the native scene thread, the target spins at the recursion's end. Signal-safe: no.
#include <string.h>
#include <unistd.h>

#include "ours.h"
#include "scene.h"

enum {
  RECURSION = 100000,
  DEFAULT_DEPTH = 65536,
  TRIES = 100,
  TOP = 8,  // frames at the leaf that may vary: the spinning method, a poll for the collector
};

const char *const oracle_name = "deep recursion";

struct seen {
  uint32_t frames, recursive;
  uint32_t native;  // of these frames
  UINT_PTR call_ip, last_sp, step;
  FunctionID function;
  bool sp_falls, uneven;
};

// The frames below those at the leaf are all of one method, at one return address, one frame size
// apart.
static HRESULT look(const struct clrsnap_frame *frame, void *data) {
  struct seen *seen = data;
  if (frame->sp <= seen->last_sp && seen->frames > 0) seen->sp_falls = true;
  if (seen->frames < TOP && frame->kind == CLRSNAP_FRAME_NATIVE) seen->native++;
  if (seen->frames++ == TOP) {
    seen->call_ip = frame->ip;
    seen->function = frame->function;
  }
  if (seen->frames > TOP && frame->ip == seen->call_ip && frame->function == seen->function) {
    if (seen->recursive >= 1) {
      UINT_PTR step = frame->sp - seen->last_sp;
      if (seen->step != 0 && step != seen->step) seen->uneven = true;
      seen->step = step;
    }
    seen->recursive++;
  }
  seen->last_sp = frame->sp;
  return S_OK;
}

// Repeats the walk until it finds the target in its own code: now and then the target is in the
// runtime, which compiles or collects.
static void walk(ThreadID target, struct seen *seen, struct clrsnap_walk_result *result) {
  HRESULT hr;
  for (int i = 0; i < TRIES; i++) {
    *seen = (struct seen){0};
    *result = (struct clrsnap_walk_result){.size = sizeof *result};
    hr = clrsnap_walk(target, look, seen, NULL, result);
    if (hr != S_OK || seen->native == 0) break;
    usleep(1000);
  }
  ORACLE_CHECK(hr == S_OK, "clrsnap_walk answers %s", stack_hresult(hr));
  ORACLE_CHECK(!seen->sp_falls && !seen->uneven, "the frames do not follow each other evenly");
  printf("%u frames, %u of them of the recursion, ended by '%s', held for %llu us\n",
         result->frames, seen->recursive, clrsnap_stop_token(result->stop),
         (unsigned long long)(result->held_ns / 1000));
}

static uint32_t callbacks;
static HRESULT count_callbacks(FunctionID id, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 size,
                               BYTE context[], void *data) {
  (void)id, (void)ip, (void)info, (void)size, (void)context, (void)data;
  callbacks++;
  return S_OK;
}

void scene_run(const struct scene *scene) {
  struct seen seen;
  struct clrsnap_walk_result result;
  if (!ours_ready()) return;
  walk(scene->target, &seen, &result);
  ORACLE_CHECK(strcmp(clrsnap_stop_token(result.stop), "depth") == 0, "the walk was not cut");
  ORACLE_CHECK(result.frames == DEFAULT_DEPTH, "cut after %u frames", result.frames);
  ORACLE_CHECK(seen.recursive == DEFAULT_DEPTH - TOP, "%u frames are the recursion's",
               seen.recursive);
  HRESULT hr = E_FAIL;
  for (int i = 0; i < TRIES && callbacks != result.frames; i++) {
    callbacks = 0;
    hr = clrsnap_snapshot(scene->target, count_callbacks, 0, NULL, NULL, 0);
    if (hr != E_FAIL) break;
  }
  ORACLE_CHECK(hr == E_FAIL && strstr(clrsnap_last_error(), "depth") != NULL,
               "a snapshot that is cut: %s, '%s'", stack_hresult(hr), clrsnap_last_error());
  ORACLE_CHECK(callbacks == result.frames, "%u callbacks", callbacks);

  struct clrsnap_opts opts = {.size = sizeof opts, .max_depth = 4 * RECURSION};
  clrsnap_stop();
  hr = clrsnap_start((IUnknown *)oracle_info, &opts);
  ORACLE_CHECK(hr == S_OK, "starting with a larger depth: %s", stack_hresult(hr));
  if (!ours_ready()) return;
  walk(scene->target, &seen, &result);
  ORACLE_CHECK(strcmp(clrsnap_stop_token(result.stop), "base") == 0, "the walk is not complete");
  ORACLE_CHECK(seen.recursive > RECURSION - TOP && seen.recursive <= RECURSION,
               "%u frames are the recursion's", seen.recursive);
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  ours_start(vtbl, 0);
  scene_start();
  return COR_PRF_ENABLE_STACK_SNAPSHOT | ours_mask(high);
}

int oracle_report(void) {
  ORACLE_CHECK(scene_count() == 1, "the scene did not run");
  return 0;
}
