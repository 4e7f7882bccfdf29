// SPDX-License-Identifier: MIT
// The synchronous oracle: in every callback in which a profiler may walk its own thread, CoreCLR's
// DoStackSnapshot and the library's are called one after the other, and their results are compared:
// HRESULT, FunctionIDs, ips and runs of native frames, in order. CoreCLR is the oracle (contract:
// C11). Threads: callbacks run on any managed thread. Signal-safe: no.
//
// ORACLE_ELT=1 compares in enter/leave/tailcall hooks instead of in callbacks: hooks change the
// code that the JIT makes, so the two are never mixed.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "contexts.h"
#include "ours.h"

const char *const oracle_name = "synchronous oracle";

static struct tally *tally;
static struct {
  const char *name;
  uint64_t seen, walked, frames, refused;  // refused: CoreCLR answered a failure
} sites[64];
static int64_t budget;
static uint32_t ready;      // the library has checked the runtime's layout: walks are allowed
static uint64_t too_early;  // calls before that

// Known differences, each with its reason. A kind that is not listed fails the test.
static const struct tally_allowed allowed[] = {
    {"(none)", "(none)", "the list is empty"},
};

// One for each slot of the callback table. The arguments are passed on unread to the slot's former
// function.
// clang-format off
#define SITES(X)                                                                                  \
  X(ExceptionThrown) X(ExceptionSearchFunctionEnter) X(ExceptionSearchFunctionLeave)              \
  X(ExceptionSearchFilterEnter) X(ExceptionSearchFilterLeave) X(ExceptionSearchCatcherFound)      \
  X(ExceptionUnwindFunctionEnter) X(ExceptionUnwindFunctionLeave) X(ExceptionUnwindFinallyEnter)  \
  X(ExceptionUnwindFinallyLeave) X(ExceptionCatcherEnter) X(ExceptionCatcherLeave)                \
  X(ExceptionOSHandlerEnter) X(ExceptionOSHandlerLeave)                                           \
  X(ObjectAllocated) X(JITCompilationStarted) X(JITCompilationFinished)                           \
  X(DynamicMethodJITCompilationStarted) X(DynamicMethodJITCompilationFinished)                    \
  X(DynamicMethodUnloaded) X(GarbageCollectionStarted) X(GarbageCollectionFinished)               \
  X(ModuleLoadFinished) X(ModuleUnloadStarted) X(ClassLoadFinished) X(ThreadCreated)              \
  X(RuntimeSuspendStarted) X(RuntimeSuspendFinished) X(RuntimeResumeFinished)
// clang-format on
enum site {
#define SITE_ENUM(name) SITE_##name,
  SITES(SITE_ENUM)
#undef SITE_ENUM
      SITE_ENTER,
  SITE_LEAVE,
  SITE_TAILCALL
};
struct buffers {
  struct stack clr, ours;
  bool busy;
};
static __thread struct buffers *mine;

static struct buffers *take_buffers(void) {
  if (mine == NULL) {
    mine = malloc(sizeof(*mine));
    if (mine == NULL) abort();
    mine->busy = false;
  }
  if (mine->busy) return NULL;
  mine->busy = true;
  return mine;
}

// Repeats a comparison that has just found the two equal, with a fault put into the library's
// stack: the comparison must find it.
static struct tally *baits;
static uint64_t faults_put, faults_found;
static void try_fault(const char *name, struct buffers *b) {
  struct stack *ours = &b->ours;
  uint64_t n = __atomic_fetch_add(&faults_put, 1, __ATOMIC_RELAXED);
  struct stack_frame *frame = &ours->frames[n / 4 % ours->count];
  if (n % 4 == 0 && frame->id != 0)
    frame->id = 0;
  else if (n % 4 <= 1)
    frame->ip++;
  else if (n % 4 == 2)
    ours->count--;
  else
    ours->hr = E_FAIL;
  bool found = !tally_compare(baits, name, &b->clr, ours);
  __atomic_fetch_add(&faults_found, found, __ATOMIC_RELAXED);
}

// Compares at all of the first `budget` calls of a site, and then at ever fewer.
static bool wanted(uint32_t site, const char *name) {
  sites[site].name = name;
  uint64_t n = __atomic_fetch_add(&sites[site].seen, 1, __ATOMIC_RELAXED);
  return n < (uint64_t)budget || n % 97 == 0;
}

// In a hook, CoreCLR's own walk has no Frame to start from (dotnet/runtime #130220, .NET 10): it
// fails, or starts at an older place. The frames that it does report must be the end of those that
// the library reports.
static uint64_t hooks_refused, hooks_equal, hooks_partial;
static void compare_in_hook(const char *name, struct buffers *b) {
  struct stack *clr = &b->clr, *ours = &b->ours;
  uint32_t i = clr->count, j = ours->count;
  if (clr->hr != S_OK) {
    __atomic_fetch_add(&hooks_refused, 1, __ATOMIC_RELAXED);
    if (ours->hr != S_OK || ours->count == 0) {
      clr->hr = S_OK;
      tally_compare(tally, name, clr, ours);
    }
    return;
  }
  while (i > 0 && j > 0 && clr->frames[i - 1].id == ours->frames[j - 1].id &&
         clr->frames[i - 1].ip == ours->frames[j - 1].ip)
    i--, j--;
  while (i > 0 && clr->frames[i - 1].id == 0) i--;  // native runs above its first managed frame
  if (ours->hr != S_OK || i > 0) tally_compare(tally, name, clr, ours);
  __atomic_fetch_add(j == 0 ? &hooks_equal : &hooks_partial, 1, __ATOMIC_RELAXED);
}

// A seed with the registers of one of the stack's managed frames. CoreCLR uses a seed only in
// cooperative mode, in which few callbacks are called; in the others the result is the same as
// without a seed.
static uint64_t seeds, seeds_used, seeds_native, seeds_refused;
static void by_seed(struct buffers *b, const MACHINE_CONTEXT *seed) {
  BYTE buffer[4096] = {0};
  ULONG32 flags = COR_PRF_SNAPSHOT_REGISTER_CONTEXT, size = sizeof(buffer);
  memcpy(buffer, seed, sizeof(*seed));
  stack_clear(&b->clr);
  b->clr.hr = oracle_info->lpVtbl->DoStackSnapshot(oracle_info, 0, stack_collect, flags, &b->clr,
                                                   buffer, size);
  stack_clear(&b->ours);
  b->ours.hr = clrsnap_snapshot(0, stack_collect, flags, &b->ours, buffer, size);
}

static void compare_seeded(const char *name, struct buffers *b, uint64_t choice) {
  uint32_t whole = b->ours.count;
  const struct stack_frame *f = &b->ours.frames[whole == 0 ? 0 : choice % whole];
  struct stack_frame native = {.reg = {0}};
  MACHINE_CONTEXT seed;
  if (whole == 0 || f->id == 0 || choice % 8 == 0) {
    // A seed at which no walk may start. The result shows the mode, and the order of the checks.
    native.reg[STACK_PC] = (uint64_t)(uintptr_t)&strlen;
    native.reg[STACK_SP] = (uint64_t)(uintptr_t)&seed;
    stack_context(&native, &seed);
    by_seed(b, &seed);
    __atomic_fetch_add(&seeds_native, 1, __ATOMIC_RELAXED);
    if (FAILED(b->clr.hr)) __atomic_fetch_add(&seeds_refused, 1, __ATOMIC_RELAXED);
  } else {
    stack_context(f, &seed);
    by_seed(b, &seed);
    __atomic_fetch_add(&seeds, 1, __ATOMIC_RELAXED);
    if (b->ours.count != whole) __atomic_fetch_add(&seeds_used, 1, __ATOMIC_RELAXED);
  }
  if (tally_compare(tally, name, &b->clr, &b->ours)) contexts_compare(name, &b->clr, &b->ours);
}

static void compare(uint32_t site, const char *name) {
  if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
    __atomic_fetch_add(&too_early, 1, __ATOMIC_RELAXED);
    return;
  }
  if (!wanted(site, name)) return;
  struct buffers *b = take_buffers();
  if (b == NULL) return;
  __atomic_fetch_add(&sites[site].walked, 1, __ATOMIC_RELAXED);
  stack_by_clr(&b->clr, 0, COR_PRF_SNAPSHOT_DEFAULT);
  stack_by_ours(&b->ours, 0, COR_PRF_SNAPSHOT_DEFAULT);
  if (site >= SITE_ENTER) {
    compare_in_hook(name, b);
    b->busy = false;
    return;
  }
  tally_compare(tally, name, &b->clr, &b->ours);
  __atomic_fetch_add(&sites[site].frames, b->clr.count, __ATOMIC_RELAXED);
  if (FAILED(b->clr.hr)) __atomic_fetch_add(&sites[site].refused, 1, __ATOMIC_RELAXED);
  stack_by_clr(&b->clr, 0, COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
  stack_by_ours(&b->ours, 0, COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
  if (tally_compare(tally, name, &b->clr, &b->ours)) contexts_compare(name, &b->clr, &b->ours);
  uint64_t walked = __atomic_load_n(&sites[site].walked, __ATOMIC_RELAXED);
  if (walked % 4 == 0)
    compare_seeded(name, b, walked / 4);
  else if (walked % 4 == 1 && b->clr.hr == S_OK && b->ours.hr == S_OK && b->ours.count > 1)
    try_fault(name, b);
  b->busy = false;
}

typedef HRESULT any_callback(void *self, UINT_PTR a, UINT_PTR b, UINT_PTR c, UINT_PTR d);
static any_callback *previous[64];
#define SITE_FUNCTION(name)                                                              \
  static HRESULT on_##name(void *self, UINT_PTR a, UINT_PTR b, UINT_PTR c, UINT_PTR d) { \
    compare(SITE_##name, #name);                                                         \
    return previous[SITE_##name](self, a, b, c, d);                                      \
  }
SITES(SITE_FUNCTION)
#undef SITE_FUNCTION

// The slow form of the hooks: the runtime's own wrapper has saved the registers, so plain C is
// enough.
static void hook_enter(FunctionIDOrClientID id, COR_PRF_ELT_INFO info) {
  (void)id, (void)info;
  compare(SITE_ENTER, "enter hook");
}
static void hook_leave(FunctionIDOrClientID id, COR_PRF_ELT_INFO info) {
  (void)id, (void)info;
  compare(SITE_LEAVE, "leave hook");
}
static void hook_tailcall(FunctionIDOrClientID id, COR_PRF_ELT_INFO info) {
  (void)id, (void)info;
  compare(SITE_TAILCALL, "tailcall hook");
}

ORACLE_EXPORT int oracle_sync_ready(void);

int oracle_sync_ready(void) {
  return (int)__atomic_load_n(&ready, __ATOMIC_ACQUIRE);
}

// Hooks may not call the CLR for what the check needs, so a native thread does that.
static void *wait_until_ready(void *unused) {
  (void)unused;
  if (ours_ready()) __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
  return NULL;
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  tally = tally_new();
  baits = tally_new();
  budget = oracle_env("ORACLE_BUDGET", 3000);
  contexts_start();
  ours_start(vtbl, 0);
  pthread_t thread;
  int error = pthread_create(&thread, NULL, wait_until_ready, NULL);
  ORACLE_CHECK(error == 0, "pthread_create: %s", strerror(error));
  DWORD low = COR_PRF_ENABLE_STACK_SNAPSHOT | ours_mask(high);
  if (oracle_env("ORACLE_ELT", 0) != 0) {
    // The runtime accepts the hooks only if the mask already asks for one of the events that they
    // report.
    low |= COR_PRF_MONITOR_ENTERLEAVE | COR_PRF_ENABLE_FRAME_INFO;
    HRESULT hr = oracle_info->lpVtbl->SetEventMask2(oracle_info, low, *high);
    if (SUCCEEDED(hr))
      hr = oracle_info->lpVtbl->SetEnterLeaveFunctionHooks3WithInfo(oracle_info, hook_enter,
                                                                    hook_leave, hook_tailcall);
    ORACLE_CHECK(SUCCEEDED(hr), "SetEnterLeaveFunctionHooks3WithInfo: %#x", (unsigned)hr);
    return low;
  }
  void **slots = (void **)vtbl;
#define SITE_SET(name)                                                                 \
  do {                                                                                 \
    void **slot = &slots[offsetof(ICorProfilerCallback11Vtbl, name) / sizeof(void *)]; \
    previous[SITE_##name] = (any_callback *)*slot;                                     \
    *slot = (void *)on_##name;                                                         \
  } while (0);
  SITES(SITE_SET)
#undef SITE_SET
  return low | COR_PRF_MONITOR_EXCEPTIONS | COR_PRF_MONITOR_OBJECT_ALLOCATED |
         COR_PRF_ENABLE_OBJECT_ALLOCATED | COR_PRF_MONITOR_JIT_COMPILATION | COR_PRF_MONITOR_GC |
         COR_PRF_MONITOR_MODULE_LOADS | COR_PRF_MONITOR_CLASS_LOADS | COR_PRF_MONITOR_THREADS |
         COR_PRF_MONITOR_SUSPENDS;
}

static void report_kinds(void) {
  unsigned kinds = 0, wanted_kinds = (unsigned)oracle_env("ORACLE_KINDS", 0);
  for (size_t i = 0; i < SITE_ENTER; i++) kinds += sites[i].walked != 0;
  printf("compared in %u kinds of callback, at least %u wanted\n", kinds, wanted_kinds);
  ORACLE_CHECK(kinds >= wanted_kinds, "only %u kinds of callback have come", kinds);
}

int oracle_report(void) {
  uint64_t calls = too_early;
  for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++) {
    calls += sites[i].seen;
    if (sites[i].name != NULL)
      printf("%-36s %8lu calls, %8lu compared, %8lu frames, %6lu refused by CoreCLR\n",
             sites[i].name, (unsigned long)sites[i].seen, (unsigned long)sites[i].walked,
             (unsigned long)sites[i].frames, (unsigned long)sites[i].refused);
  }
  printf("%lu walks with a seed, %lu begin there; %lu with one in native code, %lu refused\n",
         (unsigned long)seeds, (unsigned long)seeds_used, (unsigned long)seeds_native,
         (unsigned long)seeds_refused);
  report_kinds();
  uint64_t hooks = hooks_refused + hooks_equal + hooks_partial;
  oracle_excuse("calls before the library was ready", too_early, calls, 500000, 2000);
  if (hooks > 0)
    oracle_excuse("hooks where CoreCLR walks nothing", hooks_refused, hooks, 950000, 0);
  if (faults_put > 10 || hooks == 0)
    oracle_faults("another function or ip, a frame less, E_FAIL", faults_put, faults_found);
  if (hooks > 0)
    printf("in hooks CoreCLR refused %lu walks, told all of %lu stacks and the end of %lu\n",
           (unsigned long)hooks_refused, (unsigned long)hooks_equal, (unsigned long)hooks_partial);
  ORACLE_CHECK(tally_compared(tally) + hooks > 1000,
               "only %lu stacks were compared: the callbacks did not come",
               (unsigned long)tally_compared(tally));
  uint32_t unexplained = tally_report(tally, allowed, sizeof(allowed) / sizeof(allowed[0]));
  ORACLE_CHECK(unexplained == 0, "%u kinds of difference are not explained", unexplained);
  uint64_t contexts = contexts_report();
  ORACLE_CHECK(contexts == 0, "%lu contexts differ without an explanation",
               (unsigned long)contexts);
  return 0;
}
