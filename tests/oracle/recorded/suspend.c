// SPDX-License-Identifier: MIT
// The pattern of today's profilers, for comparison: every 10 ms a native thread stops the runtime
// (SuspendRuntime), walks every managed thread by CoreCLR's DoStackSnapshot, resumes the runtime,
// and counts the leaf-most managed function of the threads that have a frame of the busy program.
// Every tally belongs to that one thread; the report reads it after the join, in Shutdown. No name
// is read while the runtime is stopped: the metadata reader may wait for a stopped thread. Threads:
// the sampler, and the main thread in Initialize and Shutdown. Signal-safe: no.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stack.h"

const char *const oracle_name = "SuspendRuntime + DoStackSnapshot";

enum { PERIOD_NS = 10000000, THREADS = 64, LEAVES = 256, ANSWERS = 16, STOPS = 65536 };

static const char *const work_name = "Proofs.Busy.Work";

static pthread_t sampler;
static bool started;
static uint32_t done;

// The functions that were seen, by name: a generic method has several IDs.
struct leaf {
  const char *name;
  uint32_t count;
};
static struct leaf leaves[LEAVES];
static uint32_t leaf_kinds, leaf_total;

// Results other than S_OK, by the call that returned them. DoStackSnapshot returns E_FAIL for a
// thread without managed frames (the finalizer's, a worker that waits).
struct answer {
  const char *call;
  HRESULT hr;
  uint32_t count;
};
static struct answer answers[ANSWERS];
static uint32_t answer_kinds;

static uint32_t stopped_us[STOPS], stops;

// The stacks of one stop, which are read once the runtime runs again.
static struct stack stacks[THREADS];

static void count_answer(const char *call, HRESULT hr) {
  uint32_t i = 0;
  while (i < answer_kinds && (answers[i].hr != hr || strcmp(answers[i].call, call) != 0)) i++;
  if (i == ANSWERS) {
    oracle_fail("%s gave a %u-th kind of answer, %s", call, ANSWERS + 1, stack_hresult(hr));
    return;
  }
  if (i == answer_kinds) answers[answer_kinds++] = (struct answer){call, hr, 0};
  answers[i].count++;
}

static void count_leaf(const char *name) {
  uint32_t i = 0;
  while (i < leaf_kinds && strcmp(leaves[i].name, name) != 0) i++;
  if (i == LEAVES) {
    oracle_fail("more than %u functions were leaves: no room for %s", LEAVES, name);
    return;
  }
  if (i == leaf_kinds) leaves[leaf_kinds++] = (struct leaf){name, 0};
  leaves[i].count++;
  leaf_total++;
}

static bool has_busy_frame(const struct stack *stack) {
  for (uint32_t i = 0; i < stack->count; i++) {
    const char *name = oracle_function_name(stack->frames[i].id);
    if (strncmp(name, "Proofs.Busy.", strlen("Proofs.Busy.")) == 0) return true;
  }
  return false;
}

static void tally_stack(const struct stack *stack) {
  if (!has_busy_frame(stack)) return;
  uint32_t i = 0;
  while (stack->frames[i].id == 0) i++;  // ends: there is Busy's frame
  count_leaf(oracle_function_name(stack->frames[i].id));
}

// Walks the threads while the runtime is stopped. Returns how many there were.
static uint32_t walk_all(void) {
  ICorProfilerThreadEnum *threads = NULL;
  HRESULT hr = oracle_info->lpVtbl->EnumThreads(oracle_info, &threads);
  if (FAILED(hr)) {
    count_answer("EnumThreads", hr);
    return 0;
  }
  ThreadID ids[THREADS];
  ULONG count = 0;
  hr = threads->lpVtbl->Next(threads, THREADS, ids, &count);
  if (FAILED(hr)) count_answer("ICorProfilerThreadEnum::Next", hr);
  ORACLE_CHECK(count < THREADS, "the program has %u threads or more: not all are seen", THREADS);
  for (ULONG i = 0; i < count; i++) stack_by_clr(&stacks[i], ids[i], COR_PRF_SNAPSHOT_DEFAULT);
  threads->lpVtbl->Release(threads);
  return count;
}

// The pause as the program sees it: from the call that stops the runtime to the end of the one that
// resumes it.
static void sample(void) {
  uint64_t begin = oracle_now_ns();
  HRESULT hr = oracle_info->lpVtbl->SuspendRuntime(oracle_info);
  if (FAILED(hr)) {
    count_answer("SuspendRuntime", hr);
    return;
  }
  uint32_t count = walk_all();
  hr = oracle_info->lpVtbl->ResumeRuntime(oracle_info);
  uint64_t end = oracle_now_ns();
  ORACLE_CHECK(SUCCEEDED(hr), "ResumeRuntime: %s", stack_hresult(hr));
  if (stops < STOPS) stopped_us[stops++] = (uint32_t)((end - begin) / 1000);
  for (uint32_t i = 0; i < count; i++) {
    if (stacks[i].hr != S_OK) count_answer("DoStackSnapshot", stacks[i].hr);
    tally_stack(&stacks[i]);
  }
}

static void *sample_until_done(void *unused) {
  (void)unused;
  while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
    nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS}, NULL);
    sample();
  }
  return NULL;
}

// ---- Report ----
static int more_first(const void *a, const void *b) {
  const struct leaf *x = a, *y = b;
  return (x->count < y->count) - (x->count > y->count);
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static double percent(uint32_t count) {
  return leaf_total == 0 ? 0 : 100.0 * count / leaf_total;
}

// Without namespace and type, which only make the line long; of a local function
// ("<Outer>g__Name|1_0") the name that it has in the source.
static void print_name(const char *name) {
  const char *dot = strrchr(name, '.'), *local = strstr(name, ">g__");
  if (local != NULL)
    printf("%.*s", (int)strcspn(local + 4, "|"), local + 4);
  else
    printf("%s", dot != NULL && dot[1] != '\0' ? dot + 1 : name);
}

static void print_leaves(void) {
  uint32_t work = 0;
  for (uint32_t i = 0; i < leaf_kinds; i++) {
    if (strcmp(leaves[i].name, work_name) == 0) work = leaves[i].count;
  }
  printf("%s: Work %.1f %% of %u leaves", oracle_name, percent(work), leaf_total);
  const char *separator = " (";
  for (uint32_t i = 0, shown = 0; i < leaf_kinds && shown < 3; i++) {
    if (strcmp(leaves[i].name, work_name) == 0) continue;
    printf("%s", separator);
    print_name(leaves[i].name);
    printf(" %.0f %%", percent(leaves[i].count));
    separator = ", ";
    shown++;
  }
  printf("%s", separator[0] == ',' ? ")" : "");
}

static HRESULT shutdown(ICorProfilerCallback11 *self) {
  (void)self;
  if (!started) return S_OK;
  __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
  pthread_join(sampler, NULL);
  qsort(leaves, leaf_kinds, sizeof(leaves[0]), more_first);
  qsort(stopped_us, stops, sizeof(stopped_us[0]), ascending);
  print_leaves();
  if (stops > 0)
    printf("; stopped p50 %u us p99 %u us", stopped_us[stops / 2],
           stopped_us[(uint64_t)stops * 99 / 100]);
  for (uint32_t i = 0; i < answer_kinds; i++)
    printf("; %s answered %s %u times", answers[i].call, stack_hresult(answers[i].hr),
           answers[i].count);
  printf("\n");
  fflush(stdout);
  return S_OK;
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  (void)high;
  vtbl->Shutdown = shutdown;
  int error = pthread_create(&sampler, NULL, sample_until_done, NULL);
  ORACLE_CHECK(error == 0, "pthread_create: %s", strerror(error));
  started = error == 0;
  return COR_PRF_ENABLE_STACK_SNAPSHOT | COR_PRF_MONITOR_THREADS;
}

// The program does not ask for a report, so Shutdown prints it.
int oracle_report(void) {
  return 0;
}
