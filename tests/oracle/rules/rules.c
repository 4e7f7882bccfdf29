// SPDX-License-Identifier: MIT
// The deadlock rules of the contract (C17 to C20) on the live runtime: targets are interrupted
// inside malloc, the JIT, a collection and dlopen; snapshots come from threads that have never
// called the CLR before; threads end while they are walked; modules are unloaded between two
// callbacks. A test passes by coming to its end: the time-out ends a test that hangs, and the last
// line printed says where it hung. ORACLE_HOLD=1: snapshots hold their target until the last
// callback has returned. Threads: scenes run on the native thread and on fresh threads that it
// creates. Signal-safe: no.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heldmalloc.h"
#include "ours.h"
#include "scene.h"

const char *const oracle_name = "deadlock rules";

static bool hold_mode;

// ---- Called by the program ----
ORACLE_EXPORT void oracle_allocate(void);
ORACLE_EXPORT void oracle_stop(void);
ORACLE_EXPORT void oracle_load_slowly(void);
ORACLE_EXPORT int oracle_walk_other(uint64_t thread);
ORACLE_EXPORT uint64_t oracle_current_thread(void);

void oracle_allocate(void) {
  held_malloc_target();
}
void oracle_stop(void) {
  held_malloc_stop();
}

static uint32_t constructor[2];  // slow.c: inside, may leave
void oracle_load_slowly(void) {
  char address[32];
  snprintf(address, sizeof(address), "%lx", (unsigned long)(uintptr_t)constructor);
  setenv("ORACLE_CONSTRUCTOR", address, 1);
  void *library = dlopen(getenv("ORACLE_SLOW_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    oracle_fail("dlopen: %s", dlerror());
  else
    dlclose(library);
}

uint64_t oracle_current_thread(void) {
  ThreadID thread = 0;
  oracle_info->lpVtbl->GetCurrentThreadID(oracle_info, &thread);
  return thread;
}

// A managed thread walks another one, which walks the first one at the same time (contract: C17).
int oracle_walk_other(uint64_t thread) {
  static __thread struct stack *stack;
  if (stack == NULL) stack = calloc(1, sizeof(*stack));
  if (stack == NULL) return 0;
  stack_by_ours(stack, thread, COR_PRF_SNAPSHOT_DEFAULT);
  HRESULT wanted = hold_mode ? CORPROF_E_STACKSNAPSHOT_UNSAFE : S_OK;
  ORACLE_CHECK(stack->hr == wanted, "managed threads walk each other: %s %s",
               stack_hresult(stack->hr), clrsnap_last_error());
  return hold_mode || stack->count > 0;
}

// ---- A fresh thread: its first call ever into the library and the CLR is a snapshot ----
struct fresh {
  ThreadID target;
  uint32_t go, called;
  void (*in_first_callback)(void);
  struct stack stack;
};

static HRESULT fresh_callback(FunctionID id, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 size,
                              BYTE context[], void *client) {
  struct fresh *fresh = client;
  if (fresh->called++ == 0 && fresh->in_first_callback != NULL) fresh->in_first_callback();
  return stack_collect(id, ip, info, size, context, &fresh->stack);
}

static void *fresh_main(void *arg) {
  struct fresh *fresh = arg;
  while (!__atomic_load_n(&fresh->go, __ATOMIC_ACQUIRE)) sched_yield();
  fresh->stack.hr = clrsnap_snapshot(fresh->target, fresh_callback,
                                     COR_PRF_SNAPSHOT_REGISTER_CONTEXT, fresh, NULL, 0);
  return NULL;
}

// Creates the thread before it calls `prepare`, because creating a thread allocates; the thread
// makes its call after `prepare`.
static void fresh_snapshot(const struct scene *scene, void (*prepare)(void),
                           void (*in_callback)(void)) {
  static struct fresh fresh;
  pthread_t thread;
  fresh = (struct fresh){.target = scene->target, .in_first_callback = in_callback};
  int error = pthread_create(&thread, NULL, fresh_main, &fresh);
  if (error != 0) {
    oracle_fail("%s: pthread_create: %s", scene->name, strerror(error));
    return;
  }
  usleep(1000);
  if (prepare != NULL) prepare();
  __atomic_store_n(&fresh.go, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  ORACLE_CHECK(fresh.stack.hr == S_OK && fresh.stack.count >= 2,
               "%s: a fresh thread's snapshot: %s, %u frames", scene->name,
               stack_hresult(fresh.stack.hr), fresh.stack.count);
}

// ---- malloc: the target owns the allocator's lock ----
static void hold_in_malloc(const struct scene *scene) {
  AMD64_CONTEXT leaf = {0}, managed = {0};
  struct clrsnap_hold *hold = NULL;
  held_malloc_enter(0);
  HRESULT hr = clrsnap_hold(scene->target, &hold);
  HRESULT context = clrsnap_hold_context(hold, (BYTE *)&leaf, sizeof(leaf));
  HRESULT unwind = clrsnap_hold_unwind_to_managed(hold, (BYTE *)&managed, sizeof(managed));
  HRESULT release = clrsnap_release(hold);
  held_malloc_finish();
  ORACLE_CHECK(hr == S_OK && context == S_OK && unwind == S_OK && release == S_OK,
               "malloc: hold %#x, context %#x, unwind %#x, release %#x", (unsigned)hr,
               (unsigned)context, (unsigned)unwind, (unsigned)release);
}

static void enter_for_a_while(void) {
  held_malloc_enter(30);
}

// A snapshot that holds: between the request and the first callback nothing may allocate or call
// the CLR, because the target could then never release its lock. The thread has made a call before
// (contract: C20).
static void snapshot_in_malloc(const struct scene *scene, struct fresh *caller) {
  *caller = (struct fresh){.target = scene->target, .go = 1};
  fresh_main(caller);
  *caller =
      (struct fresh){.target = scene->target, .go = 1, .in_first_callback = held_malloc_leave};
  held_malloc_enter(0);
  fresh_main(caller);
  held_malloc_finish();
  ORACLE_CHECK(caller->stack.hr == S_OK && caller->stack.count >= 2, "malloc: %s, %u frames",
               stack_hresult(caller->stack.hr), caller->stack.count);
}

static void run_malloc(const struct scene *scene) {
  static struct fresh caller;
  for (int i = 0; i < 40; i++) {
    hold_in_malloc(scene);
    if (hold_mode) snapshot_in_malloc(scene, &caller);
    // A first call may wait for the lock before its request and, if it captures, after the capture.
    // The target leaves malloc by itself, unless it is held there.
    fresh_snapshot(scene, enter_for_a_while, NULL);
    held_malloc_finish();
  }
  printf("malloc: 40 holds and 40 first calls with the allocator's lock owned by the target\n");
}

// ---- dlopen: the target owns the dynamic loader's lock ----
static void leave_constructor(void) {
  __atomic_store_n(&constructor[1], 1, __ATOMIC_RELEASE);
}
static void enter_constructor(void) {
  while (!__atomic_load_n(&constructor[0], __ATOMIC_ACQUIRE)) sched_yield();
}

static void run_dlopen(const struct scene *scene) {
  enter_constructor();
  // The constructor continues only after all of these walks: none of them may need the loader's
  // lock.
  for (int i = 0; i < 40; i++) fresh_snapshot(scene, enter_constructor, NULL);
  leave_constructor();
  printf("dlopen: 40 first calls while the target stands in a constructor\n");
}

// ---- The JIT and the GC: the leaf is inside them at random ----
struct range {
  uint64_t begin, end;
};

// Where a library is mapped, without asking the dynamic loader.
static struct range find_library(const char *name) {
  struct range range = {0, 0};
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
    unsigned long begin, end;
    if (strstr(line, name) == NULL || sscanf(line, "%lx-%lx", &begin, &end) != 2) continue;
    if (range.begin == 0) range.begin = begin;
    range.end = end;
  }
  if (maps != NULL) fclose(maps);
  return range;
}

// Holds the target until its leaf has been in `library` `wanted` times. Each hold lasts a while, so
// that other threads contend for what the target owns there.
static void hold_inside(const struct scene *scene, const char *library, uint32_t wanted) {
  struct range range = find_library(library);
  uint32_t hits = 0, tries = 0;
  for (; hits < wanted && tries < 100 * wanted; tries++) {
    struct clrsnap_hold *hold = NULL;
    AMD64_CONTEXT leaf = {0}, managed = {0};
    HRESULT hr = clrsnap_hold(scene->target, &hold);
    if (hr != S_OK) {
      oracle_fail("%s: hold: %s %s", scene->name, stack_hresult(hr), clrsnap_last_error());
      return;
    }
    clrsnap_hold_context(hold, (BYTE *)&leaf, sizeof(leaf));
    clrsnap_hold_unwind_to_managed(hold, (BYTE *)&managed, sizeof(managed));
    if (leaf.Rip >= range.begin && leaf.Rip < range.end) {
      hits++;
      usleep(300);
    }
    clrsnap_release(hold);
    usleep(30);
  }
  printf("%s: held %u times with the leaf in %s, of %u holds\n", scene->name, hits, library, tries);
  ORACLE_CHECK(hits >= wanted, "%s: the leaf was in %s only %u times", scene->name, library, hits);
}

static void run_jit(const struct scene *scene) {
  hold_inside(scene, "libclrjit.so", 100);
  for (int i = 0; i < 200; i++) fresh_snapshot(scene, NULL, NULL);
  printf("%s: 200 first calls while the target compiles\n", scene->name);
}

static void run_gc(const struct scene *scene) {
  hold_inside(scene, "libcoreclr.so", 100);
  for (int i = 0; i < 200; i++) fresh_snapshot(scene, NULL, NULL);
  printf("%s: 200 first calls while the target collects\n", scene->name);
}

// A thread that has not entered managed code yet, or has left it for good.
static bool is_empty(const struct stack *stack) {
  return stack->hr == E_FAIL && strstr(clrsnap_last_error(), "no managed frames") != NULL;
}

// ---- Threads that come and go ----
static void run_churn(const struct scene *scene) {
  static struct stack stack;
  uint64_t taken = 0, complete = 0, gone = 0, early = 0, other = 0;
  struct oracle_thread threads[64];
  uint64_t end = oracle_now_ns() + (uint64_t)oracle_env("ORACLE_SECONDS", 10) * 1000000000u;
  while (oracle_now_ns() < end) {
    uint32_t n = oracle_threads(threads, 64);
    for (uint32_t i = 0; i < n; i++) {
      // Some of these threads have ended by now, and some have not run any managed code yet.
      stack_by_ours(&stack, threads[i].id, COR_PRF_SNAPSHOT_DEFAULT);
      taken++;
      if (stack.hr == S_OK || is_empty(&stack))
        complete++;
      else if (stack.hr == CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD)
        gone++;
      else if (stack.hr == E_FAIL)
        early++;
      else if (other++ < 3)
        oracle_fail("churn: %s %s", stack_hresult(stack.hr), clrsnap_last_error());
      if (stack.hr == E_FAIL && !is_empty(&stack) && early < 4)
        printf("churn: ended early: %s\n", clrsnap_last_error());
    }
    usleep(1000);
  }
  printf("%s: %lu snapshots, %lu complete, %lu of threads that had gone, %lu ended early\n",
         scene->name, (unsigned long)taken, (unsigned long)complete, (unsigned long)gone,
         (unsigned long)early);
  ORACLE_CHECK(other == 0, "churn: %lu other answers", (unsigned long)other);
  ORACLE_CHECK(early * 1000 <= taken + 5000, "churn: %lu of %lu walks ended early",
               (unsigned long)early, (unsigned long)taken);
}

// A thread that is held as it ends: ThreadDestroyed comes after the release, and is not missed.
static void run_dying(const struct scene *scene) {
  struct clrsnap_hold *hold = NULL;
  HRESULT hr = clrsnap_hold(scene->target, &hold);
  ORACLE_CHECK(hr == S_OK, "dying: hold: %s %s", stack_hresult(hr), clrsnap_last_error());
  usleep(20000);
  if (hr == S_OK) clrsnap_release(hold);
  // From here on the thread is ending: it is walked until it is gone.
  static struct stack stack;
  uint32_t asked = 0;
  do {
    stack_by_ours(&stack, scene->target, COR_PRF_SNAPSHOT_DEFAULT);
    asked++;
  } while ((stack.hr == S_OK || is_empty(&stack)) && asked < 100000);
  printf("dying: the thread was gone after %u snapshots: %s\n", asked, stack_hresult(stack.hr));
  ORACLE_CHECK(stack.hr == CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD, "dying: %s",
               stack_hresult(stack.hr));
}

// ---- Modules are unloaded while a stack is reported ----
static uint32_t forget_stop, forgotten;
static void *forget_main(void *unused) {
  (void)unused;
  while (!__atomic_load_n(&forget_stop, __ATOMIC_ACQUIRE)) {
    clrsnap_module_unload_started(0);  // so that all that is known of methods is discarded
    __atomic_fetch_add(&forgotten, 1, __ATOMIC_RELEASE);
    usleep(50);
  }
  return NULL;
}

// In the first callback: a collection that has begun by now has also ended once two more are over.
static void wait_until_forgotten(void) {
  uint32_t before = __atomic_load_n(&forgotten, __ATOMIC_ACQUIRE);
  while (__atomic_load_n(&forgotten, __ATOMIC_ACQUIRE) - before < 2) sched_yield();
}

static bool same_functions(const struct stack *a, const struct stack *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (a->frames[i].id != b->frames[i].id) return false;
  return true;
}

// The stack after the target has entered its loop.
static void take_reference(const struct scene *scene, struct stack *stack) {
  do stack_by_ours(stack, scene->target, COR_PRF_SNAPSHOT_DEFAULT);
  while (stack->hr != S_OK || stack->count == 0 ||
         strcmp(oracle_function_name(stack->frames[0].id), "Proofs.Rules.Spin") != 0);
}

static void run_forget(const struct scene *scene) {
  enum { SNAPSHOTS = 500 };
  static struct stack reference;
  static struct fresh caller;
  pthread_t thread;
  uint32_t complete = 0;
  take_reference(scene, &reference);
  ORACLE_CHECK(reference.count > 40, "forget: %u frames at rest", reference.count);
  int error = pthread_create(&thread, NULL, forget_main, NULL);
  if (error != 0) {
    oracle_fail("forget: pthread_create: %s", strerror(error));
    return;
  }
  for (int i = 0; i < SNAPSHOTS; i++) {
    caller =
        (struct fresh){.target = scene->target, .go = 1, .in_first_callback = wait_until_forgotten};
    fresh_main(&caller);
    if (caller.stack.hr == S_OK && same_functions(&caller.stack, &reference))
      complete++;
    else if (i - (int)complete < 3)
      oracle_fail("forget: %s, %u frames of %u: %s", stack_hresult(caller.stack.hr),
                  caller.stack.count, reference.count, clrsnap_last_error());
  }
  __atomic_store_n(&forget_stop, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  printf("forget: %u of %d snapshots complete; all was forgotten %u times meanwhile\n", complete,
         SNAPSHOTS, forgotten);
  ORACLE_CHECK(complete == SNAPSHOTS, "forget: %u of %d snapshots complete", complete, SNAPSHOTS);
}

static void run_mutual(const struct scene *scene) {
  (void)scene;
  usleep(3000000);  // the managed threads walk each other in the meantime
}

void scene_run(const struct scene *scene) {
  static const struct {
    const char *name;
    void (*run)(const struct scene *scene);
  } scenes[] = {{"malloc", run_malloc}, {"jit", run_jit},      {"gc", run_gc},
                {"dlopen", run_dlopen}, {"churn", run_churn},  {"dying", run_dying},
                {"mutual", run_mutual}, {"forget", run_forget}};
  if (!ours_ready()) return;
  for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
    if (strcmp(scenes[i].name, scene->name) != 0) continue;
    printf("-- %s\n", scene->name);
    fflush(stdout);
    scenes[i].run(scene);
    fflush(stdout);
    return;
  }
  oracle_fail("no scene is called %s", scene->name);
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  hold_mode = oracle_env("ORACLE_HOLD", 0) != 0;
  ours_start(vtbl, hold_mode ? CLRSNAP_HOLD_TARGET : 0);
  scene_start();
  return COR_PRF_ENABLE_STACK_SNAPSHOT | ours_mask(high);
}

int oracle_report(void) {
  int64_t expected = oracle_env("ORACLE_SCENES", 1);
  ORACLE_CHECK(scene_count() >= (uint32_t)expected, "%u scenes ran, %ld were expected",
               scene_count(), (long)expected);
  return 0;
}
