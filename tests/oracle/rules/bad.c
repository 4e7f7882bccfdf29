// SPDX-License-Identifier: MIT
// Bad input on the live runtime: every mistake that a caller can make returns the contract's
// HRESULT, crashes nothing, and leaves the target running. The target of most checks spins in
// managed code and counts; its count must still advance after each group of checks. Threads: checks
// run on the native scene thread, those of managed callers in oracle_bad_managed. Signal-safe: no.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ours.h"
#include "scene.h"

const char *const oracle_name = "bad input";

static volatile int64_t counter;  // the target increments it
static ThreadID dead;             // a thread that has been destroyed
static struct stack result;
static uint32_t checks;

ORACLE_EXPORT volatile int64_t *oracle_counter(void);
ORACLE_EXPORT void oracle_bad_managed(void);
volatile int64_t *oracle_counter(void) {
  return &counter;
}

static void expect(const char *what, HRESULT got, HRESULT wanted) {
  checks++;
  if (got == wanted) return;
  char text[32];
  snprintf(text, sizeof(text), "%s", stack_hresult(got));
  oracle_fail("%s: %s instead of %s (%s)", what, text, stack_hresult(wanted), clrsnap_last_error());
}

static void expect_running(const char *after) {
  int64_t before = counter;
  uint64_t start = oracle_now_ns();
  checks++;
  while (counter == before) {
    usleep(100);
    if (oracle_now_ns() - start > 20000000000u) {
      oracle_fail("after %s the target does not run any more", after);
      return;
    }
  }
}

static HRESULT take(ThreadID thread, ULONG32 flags, void *context, ULONG32 size) {
  stack_clear(&result);
  return result.hr = clrsnap_snapshot(thread, stack_collect, flags, &result, context, size);
}

static void check_arguments(ThreadID target) {
  static const ULONG32 flags[] = {2, 4, 0x80000000u, 0xFFFFFFFFu, 3};
  for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
    expect("unknown flags", take(target, flags[i], NULL, 0), E_INVALIDARG);
  expect("NULL callback", clrsnap_snapshot(target, NULL, 0, NULL, NULL, 0), E_INVALIDARG);
  expect("NULL callback of a walk", clrsnap_walk(target, NULL, NULL, NULL, NULL), E_INVALIDARG);
  expect_running("bad arguments");
}

static void check_threads(void) {
  char *heap = calloc(1, 4096);
  const ThreadID foreign[] = {
      1, 0xdeadbeef, 0xFFFFFFFFFFFFFFF8u, 0x7FFFFFFFF000u, (ThreadID)heap, (ThreadID)&counter};
  for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
    expect("a ThreadID that is none", take(foreign[i], 0, NULL, 0), S_OK);
    ORACLE_CHECK(result.count == 0, "a ThreadID that is none: %u callbacks", result.count);
    struct clrsnap_hold *hold = NULL;
    HRESULT hr = clrsnap_hold(foreign[i], &hold);
    ORACLE_CHECK(hr != S_OK || hold == NULL, "a ThreadID that is none can be held");
  }
  expect("the calling native thread", take(0, 0, NULL, 0), S_OK);
  ORACLE_CHECK(result.count == 0, "the calling native thread: %u callbacks", result.count);
  ORACLE_CHECK(dead != 0, "no thread was destroyed before this check");
  expect("a destroyed thread", take(dead, 0, NULL, 0), CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD);
  ORACLE_CHECK(result.count == 0, "a destroyed thread: %u callbacks", result.count);
  struct clrsnap_hold *hold = NULL;
  expect("holding a destroyed thread", clrsnap_hold(dead, &hold),
         CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD);
  expect("releasing nothing", clrsnap_release(NULL), S_OK);
  free(heap);
}

// Walks while the event mask lacks COR_PRF_ENABLE_STACK_SNAPSHOT.
static void check_mask(ThreadID target) {
  DWORD low = 0, high = 0;
  oracle_info->lpVtbl->GetEventMask2(oracle_info, &low, &high);
  oracle_info->lpVtbl->SetEventMask2(oracle_info, low & ~COR_PRF_ENABLE_STACK_SNAPSHOT, high);
  expect("mask without the flag", take(target, 0, NULL, 0), CORPROF_E_INCONSISTENT_WITH_FLAGS);
  oracle_info->lpVtbl->SetEventMask2(oracle_info, low, high);
  expect("mask with the flag again", take(target, 0, NULL, 0), S_OK);
}

static void check_aborts(ThreadID target) {
  expect("a whole walk", take(target, 0, NULL, 0), S_OK);
  uint32_t whole = result.count;
  ORACLE_CHECK(whole >= 3, "a whole walk has %u frames", whole);
  for (uint32_t at = 1; at <= whole; at++) {
    stack_clear(&result);
    result.abort_after = at;
    HRESULT hr = clrsnap_snapshot(target, stack_collect, 0, &result, NULL, 0);
    expect("a callback that aborts", hr, CORPROF_E_STACKSNAPSHOT_ABORTED);
    ORACLE_CHECK(result.count == at, "aborted at call %u, but %u calls came", at, result.count);
  }
  expect_running("aborted walks");
}

struct nested {
  ThreadID target;
  uint32_t outer, inner_failed, level;
};
static HRESULT call_again(FunctionID id, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 size,
                          BYTE context[], void *client) {
  (void)id, (void)ip, (void)info, (void)size, (void)context;
  struct nested *n = client;
  n->outer++;
  if (n->level == 0) {
    static struct stack inner;
    stack_by_ours(&inner, n->target, COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
    if (inner.hr != S_OK || inner.count == 0) n->inner_failed++;
  } else {
    struct nested deeper = {.target = n->target, .level = n->level - 1};
    clrsnap_snapshot(n->target, call_again, 0, &deeper, NULL, 0);
    n->inner_failed += deeper.inner_failed;
  }
  return S_OK;
}
static void check_reentrance(ThreadID target) {
  struct nested n = {.target = target, .level = 1};
  expect("a callback that calls us again", clrsnap_snapshot(target, call_again, 0, &n, NULL, 0),
         S_OK);
  ORACLE_CHECK(n.outer > 0 && n.inner_failed == 0, "%u calls, %u walks inside of them failed",
               n.outer, n.inner_failed);
  expect_running("walks inside of walks");
}

// ---- Seeds ----
static bool seed_of(ThreadID target, AMD64_CONTEXT *seed, AMD64_CONTEXT *leaf) {
  struct clrsnap_hold *hold = NULL;
  memset(seed, 0, sizeof(*seed));
  HRESULT hr = clrsnap_hold(target, &hold);
  expect("hold", hr, S_OK);
  if (hr != S_OK) return false;
  HRESULT small = clrsnap_hold_context(hold, (BYTE *)leaf, 1231);
  HRESULT context = clrsnap_hold_context(hold, (BYTE *)leaf, sizeof(*leaf));
  HRESULT unwind = clrsnap_hold_unwind_to_managed(hold, (BYTE *)seed, sizeof(*seed));
  HRESULT release = clrsnap_release(hold);
  expect("a context that is too small", small, E_INVALIDARG);
  expect("clrsnap_hold_context", context, S_OK);
  expect("clrsnap_hold_unwind_to_managed", unwind, S_OK);
  expect("clrsnap_release", release, S_OK);
  return unwind == S_OK;
}

// An independent check that the seed's ip belongs to a managed method.
static void check_seed(const AMD64_CONTEXT *seed) {
  FunctionID id = 0;
  HRESULT hr =
      oracle_info->lpVtbl->GetFunctionFromIP(oracle_info, (LPCBYTE)(uintptr_t)seed->Rip, &id);
  ORACLE_CHECK(SUCCEEDED(hr) && id != 0, "the seed's ip %#lx is not managed",
               (unsigned long)seed->Rip);
}

static void check_seeds(ThreadID target) {
  AMD64_CONTEXT good, leaf;
  BYTE buffer[4096];
  if (!seed_of(target, &good, &leaf)) return;
  check_seed(&good);
  memset(buffer, 0, sizeof(buffer));
  memcpy(buffer, &good, sizeof(good));
  expect("a good seed", take(target, 0, buffer, sizeof(good)), S_OK);
  ORACLE_CHECK(result.count > 0 && result.frames[0].ip == good.Rip,
               "the walk does not start at the seed");
  static const ULONG32 sizes[] = {0, 1, 8, 100, 1231};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
    expect("a seed that is too small", take(target, 0, buffer, sizes[i]), E_INVALIDARG);
  const uint64_t stacks[] = {0,
                             8,
                             good.Rsp - (64u << 20),
                             good.Rsp + (64u << 20),
                             (uint64_t)(uintptr_t)buffer,
                             0xFFFFFFFFFFFFFFF8u,
                             0x7FFFFFFFFFFFu};
  for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
    AMD64_CONTEXT bad = good;
    bad.Rsp = stacks[i];
    expect("a seed with an sp off the stack", take(target, 0, (void *)&bad, sizeof(bad)),
           E_INVALIDARG);
  }
  const uint64_t ips[] = {0,
                          1,
                          0x1234,
                          (uint64_t)(uintptr_t)&usleep,
                          (uint64_t)(uintptr_t)buffer,
                          0xFFFFFFFF81000000u,
                          0x00FFFFFFFFFFFFFFu};
  for (size_t i = 0; i < sizeof(ips) / sizeof(ips[0]); i++) {
    AMD64_CONTEXT bad = good;
    bad.Rip = ips[i];
    expect("a seed with an ip that is not managed", take(target, 0, (void *)&bad, sizeof(bad)),
           CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX);
  }
  expect_running("bad seeds");
}

// Nonsense seeds that pass the first checks may return any result, but must not crash.
static void check_random_seeds(ThreadID target) {
  AMD64_CONTEXT good, leaf;
  if (!seed_of(target, &good, &leaf)) return;
  unsigned random = 99;
  uint32_t ok = 0, total = 20000;
  for (uint32_t i = 0; i < total; i++) {
    AMD64_CONTEXT bad = good;
    uint64_t *registers[] = {&bad.Rsp, &bad.Rbp, &bad.Rip, &bad.Rbx, &bad.R12, &bad.R15};
    for (size_t r = 0; r < sizeof(registers) / sizeof(registers[0]); r++) {
      if (rand_r(&random) % 2) *registers[r] += (uint64_t)(rand_r(&random) % 4096) - 2048;
      if (rand_r(&random) % 50 == 0)
        *registers[r] = (uint64_t)rand_r(&random) << (rand_r(&random) % 40);
    }
    if (take(target, (ULONG32)rand_r(&random) % 2, (void *)&bad, sizeof(bad)) == S_OK) ok++;
  }
  printf("random seeds: %u of %u walks ended at the base\n", ok, total);
  checks += total;
  expect_running("random seeds");
}

static void check_hold_timeout(ThreadID target) {
  struct clrsnap_hold *hold = NULL;
  expect("hold", clrsnap_hold(target, &hold), S_OK);
  usleep(900000);  // three times the time-out that oracle_setup sets
  expect("a hold whose time is up", clrsnap_release(hold), S_FALSE);
  expect_running("a hold whose time was up");
}

static void check_stop(ThreadID target) {
  clrsnap_stop();
  HRESULT hr = take(target, 0, NULL, 0);
  ORACLE_CHECK(FAILED(hr) && result.count == 0, "a snapshot after clrsnap_stop: %s",
               stack_hresult(hr));
  clrsnap_stop();
  struct clrsnap_opts opts = {.size = sizeof(opts), .signal_number = 9};
  expect("starting with SIGKILL", clrsnap_start((IUnknown *)oracle_info, &opts), E_INVALIDARG);
  expect("starting again", clrsnap_start((IUnknown *)oracle_info, NULL), S_OK);
  expect("starting twice", clrsnap_start((IUnknown *)oracle_info, NULL), S_FALSE);
}

// Called on a managed thread, by P/Invoke.
static ThreadID spinning;
void oracle_bad_managed(void) {
  static struct stack stack;
  struct clrsnap_hold *hold = NULL;
  expect("a managed thread holds another", clrsnap_hold(spinning, &hold),
         CORPROF_E_STACKSNAPSHOT_UNSAFE);
  stack_by_ours(&stack, spinning, 0);
  expect("a managed thread walks another", stack.hr, S_OK);
  ORACLE_CHECK(stack.count >= 3, "a managed thread walks another: %u frames", stack.count);
  stack_by_ours(&stack, 0, 0);
  expect("a managed thread walks itself outside of a callback", stack.hr, S_OK);
  ORACLE_CHECK(stack.count >= 2, "a managed thread walks itself: %u frames", stack.count);
}

void scene_run(const struct scene *scene) {
  if (!ours_ready()) return;
  ThreadID target = spinning = scene->target;
  check_arguments(target);
  check_threads();
  check_mask(target);
  check_aborts(target);
  check_reentrance(target);
  check_seeds(target);
  check_random_seeds(target);
  check_hold_timeout(target);
  expect("a plain snapshot after all that",
         take(target, COR_PRF_SNAPSHOT_REGISTER_CONTEXT, NULL, 0), S_OK);
}

static void destroyed(ThreadID thread) {
  dead = thread;
  clrsnap_thread_destroyed(thread);
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  ours_hold_timeout_ms = 300;
  ours_start(vtbl, 0);
  oracle_on_thread_destroyed = destroyed;
  scene_start();
  return COR_PRF_ENABLE_STACK_SNAPSHOT | ours_mask(high);
}

int oracle_report(void) {
  check_stop(spinning);
  printf("%u checks\n", checks);
  ORACLE_CHECK(scene_count() == 1, "the scene did not run");
  return 0;
}
