// SPDX-License-Identifier: MIT
// The shadow stack: enter, leave and tailcall hooks keep, for each thread, the list of functions
// that it is in. A native thread takes cross-thread snapshots at random instants with the target
// held, and reads the target's shadow while it stands still: the two must agree. Invariant that the
// hooks keep: the shadow's live entries, read at any instant, are the hooked functions on the stack
// whose enter hook has pushed and whose leave hook has not popped. So a snapshot may have one more
// frame at its leaf (before the push, or after the pop), and no other difference. Threads: a shadow
// is written by its own thread only, without locks; it is read while that thread stands in its
// signal handler. Hooks: general registers only, no calls out except mmap, once per thread.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shadow.h"

const char *const oracle_name = "shadow stack";

static struct shadow *shadows[SHADOWS];
static uint32_t shadow_count;
static __thread struct shadow *mine __attribute__((tls_model("initial-exec")));

struct shadow *shadow_of_self(void) {
  return mine;
}

#define HOOK __attribute__((target("general-regs-only")))
#define BARRIER() __asm__ volatile("" ::: "memory")

void shadow_make(void);
void shadow_make(void) {
  struct shadow *s =
      mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (s == MAP_FAILED) abort();
  s->tid = oracle_gettid();
  uint32_t index = __atomic_fetch_add(&shadow_count, 1, __ATOMIC_RELAXED);
  if (index < SHADOWS) __atomic_store_n(&shadows[index], s, __ATOMIC_RELEASE);
  mine = s;
}

// ---- Hooks ----
extern FunctionEnter3 shadow_enter_stub;
extern FunctionLeave3 shadow_leave_stub;
extern FunctionTailcall3 shadow_tailcall_stub;
HOOK void shadow_enter(FunctionID id, UINT_PTR cfa);
HOOK void shadow_leave(FunctionID id, UINT_PTR cfa);
HOOK void shadow_tailcall(FunctionID id, UINT_PTR cfa);
void shadow_make_saved(void);  // shadow_make, with all vector registers preserved

// Everything below `cfa` on the stack has gone.
HOOK static inline uint32_t live_depth(const struct shadow *s, UINT_PTR cfa) {
  uint32_t depth = s->depth;
  while (depth > 0 && s->entries[depth - 1].cfa <= cfa) depth--;
  return depth;
}

// An exception that native code caught has no catcher's entry; it is over once its thrower is gone.
HOOK static inline void end_dispatch(struct shadow *s, UINT_PTR cfa) {
  if (cfa > s->catching) s->catching = 0;
  if (s->dispatch != 0 && cfa > s->dispatch_cfa) s->dispatch = 0;
}

HOOK void shadow_enter(FunctionID id, UINT_PTR cfa) {
  struct shadow *s = mine;
  if (__builtin_expect(s == NULL, 0)) {
    shadow_make_saved();
    s = mine;
  }
  end_dispatch(s, cfa);
  uint32_t depth = live_depth(s, cfa);
  if (depth == SHADOW_MAX) {
    s->overflow = 1;
    return;
  }
  s->unwound_top = 0;
  BARRIER();
  // Writes the entry before the depth that makes it count, because a snapshot may come in between.
  s->entries[depth] = (struct shadow_entry){id, cfa, false};
  BARRIER();
  s->depth = depth + 1;
}

HOOK void shadow_leave(FunctionID id, UINT_PTR cfa) {
  struct shadow *s = mine;
  (void)id;
  if (s == NULL) return;
  end_dispatch(s, cfa);
  s->unwound_top = 0;
  BARRIER();
  s->depth = live_depth(s, cfa);
}

HOOK void shadow_tailcall(FunctionID id, UINT_PTR cfa) {
  shadow_leave(id, cfa);
}

// ---- The sampler ----
HRESULT shadow_collect(FunctionID id, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 context_size,
                       BYTE context[], void *client) {
  struct copy *copy = client;
  if (!copy->taken) {
    copy->taken = true;
    copy->depth = copy->source->depth;
    // A filter that throws is left through a catch handler in the dispatch itself.
    copy->resuming = copy->source->catching == 1 ||
                     (copy->depth > 0 && copy->source->entries[copy->depth - 1].filter);
    copy->dispatch = copy->source->dispatch + (copy->source->catching != 0);
    copy->unwound_top = copy->source->unwound_top;
    copy->catcher_found = copy->source->catcher_found;
    uint32_t top = copy->unwound_top > copy->depth ? copy->unwound_top : copy->depth;
    memcpy(copy->entries, copy->source->entries, top * sizeof(copy->entries[0]));
  }
  return stack_collect(id, ip, info, context_size, context, &copy->stack);
}

enum verdict { EQUAL, ONE_MORE, GAP, RESUMING, GOING_NATIVE, WRONG, VERDICTS };
enum fault {
  MISSING,
  TWICE,
  ANOTHER,
  FAULTS
};                     // put into a snapshot's list to test that the comparison finds it
enum { CHECKS = 10 };  // of the shadow stack itself, at least
static struct {
  uint64_t of[VERDICTS], taken, dispatching, empty, failed_walk, frames, still;
  uint64_t checked, check_failed;
  uint64_t put[FAULTS], found[FAULTS];
} counts;
static uint32_t done;
static uint64_t wanted;

// The exception machinery is managed code, but not part of the logical stack. P/Invoke stubs have
// hooks, but no metadata of their own, so DoStackSnapshot leaves them out.
static UINT_PTR map_function(FunctionID id, void *data, BOOL *hook) {
  (void)data;
  const char *name = oracle_function_name(id);
  *hook = strncmp(name, "System.Runtime.EH", 17) != 0 &&
          strncmp(name, "System.Runtime.StackFrameIterator", 33) != 0 &&
          strncmp(name, "System.Runtime.EHEnum", 21) != 0 &&
          strncmp(name, "System.Runtime.ExceptionServices.InternalCalls", 46) != 0 &&
          !oracle_function_is_pinvoke(id);
  return id;
}

// Functions without hooks do not count: those left out above, and native runs.
static bool hooked(FunctionID id) {
  static struct {
    FunctionID id;
    bool hooked;
  } cache[4096];
  size_t slot = (id >> 3) % 4096;
  if (cache[slot].id != id) {
    BOOL hook = 1;
    map_function(id, NULL, &hook);
    cache[slot].id = id;
    cache[slot].hooked = hook != 0;
  }
  return cache[slot].hooked;
}

static uint32_t managed_ids(const struct stack *stack, FunctionID out[STACK_MAX]) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < stack->count; i++)
    if (stack->frames[i].id != 0 && hooked(stack->frames[i].id)) out[n++] = stack->frames[i].id;
  return n;
}

static bool agrees_up_to(const FunctionID *ids, uint32_t n, const struct copy *copy,
                         uint32_t depth) {
  if (n != depth) return false;
  for (uint32_t i = 0; i < n; i++)
    if (ids[i] != copy->entries[depth - 1 - i].id) return false;
  return true;
}
static bool agrees(const FunctionID *ids, uint32_t n, const struct copy *copy) {
  return agrees_up_to(ids, n, copy, copy->depth);
}

// While an exception is on its way, its progress reaches the shadow at other instants than those at
// which the stack changes. The shadow has a filter's entry from before the filter runs until after
// it has run, and keeps the entry of an unwound frame until after the unwinding; no callback
// reports the frames of a function whose own handler throws until a catch handler is entered. So
// the shadow may have more entries in one place: filters on top, or the frames between the live
// ones and the handler that runs. No other difference is allowed.
static bool agrees_but_for_one_gap(const FunctionID *ids, uint32_t n, const struct copy *copy) {
  if (n >= copy->depth) return false;
  uint32_t below = 0, above = 0;  // of the gap
  while (below < n && ids[n - 1 - below] == copy->entries[below].id) below++;
  while (above < n && ids[above] == copy->entries[copy->depth - 1 - above].id) above++;
  return below + above >= n && below >= 4;
}

// The catch handler has returned, and the thread is about to resume after it. The runtime no longer
// knows the exception at this point, so nothing shows that the frames on top are unwound.
static bool agrees_about_to_resume(const FunctionID *ids, uint32_t n, const struct copy *copy) {
  if (n <= copy->depth || !copy->resuming) return false;
  return agrees(ids + (n - copy->depth), copy->depth, copy);
}

// An exception that no managed frame up to the next native one catches leaves through that native
// frame: out of its filter, or to a caller by reflection. The runtime reports each frame on that
// way as unwound, but its ExInfo remains in the first pass to the end, and both CoreCLR's own walk
// in these very callbacks and the library's report all of the frames (the synchronous oracle:
// ThrowInFilter).
static bool agrees_going_native(const FunctionID *ids, uint32_t n, const struct copy *copy) {
  return !copy->catcher_found && copy->unwound_top > copy->depth &&
         agrees_up_to(ids, n, copy, copy->unwound_top);
}

static void print_both(const struct copy *copy) {
  printf("    shadow, depth %u, %u exceptions under way:\n", copy->depth, copy->dispatch);
  for (uint32_t i = 0; i < copy->depth && i < 24; i++) {
    const struct shadow_entry *e = &copy->entries[copy->depth - 1 - i];
    printf("      %3u cfa %#lx %s\n", i, (unsigned long)e->cfa, oracle_function_name(e->id));
  }
  printf("    snapshot:\n");
  stack_print(stdout, &copy->stack, 0, 24);
}

static enum verdict verdict_of(const FunctionID *ids, uint32_t n, const struct copy *copy) {
  if (agrees(ids, n, copy)) return EQUAL;
  if (n > 0 && agrees(ids + 1, n - 1, copy)) return ONE_MORE;
  if (copy->dispatch == 0) return WRONG;
  if (agrees_but_for_one_gap(ids, n, copy) ||
      (n > 0 && agrees_but_for_one_gap(ids + 1, n - 1, copy)))
    return GAP;
  if (agrees_about_to_resume(ids, n, copy)) return RESUMING;
  return agrees_going_native(ids, n, copy) ? GOING_NATIVE : WRONG;
}

// Repeats the comparison with a fault in the list: a frame that is missing, doubled, or another
// thread's. While an exception is under way, the gap excuses a missing frame; but only then.
static void try_fault(const FunctionID *ids, uint32_t n, const struct copy *copy) {
  static FunctionID changed[STACK_MAX + 1];
  enum fault fault = (enum fault)(counts.taken / 4 % FAULTS);
  uint32_t at = 1 + (uint32_t)(counts.taken / 16) % (n - 2);  // neither the leaf nor the last
  if (fault == MISSING && copy->dispatch != 0) return;
  memcpy(changed, ids, n * sizeof ids[0]);
  if (fault == ANOTHER) {
    changed[at] ^= 8;
  } else {
    uint32_t from = fault == MISSING ? at + 1 : at, to = fault == MISSING ? at : at + 1;
    memmove(&changed[to], &ids[from], (n - from) * sizeof ids[0]);
    n += fault == MISSING ? -1u : 1u;
  }
  // In recursion a doubled frame looks like one more leaf.
  if (fault == TWICE && memcmp(changed + 1, ids, (n - 1) * sizeof ids[0]) == 0) return;
  counts.put[fault]++;
  counts.found[fault] += verdict_of(changed, n, copy) == WRONG;
}

// Whether the thread is where its last snapshot was: on a busy machine many are of one moment,
// which is excused once.
static bool stands_still(const struct copy *copy) {
  struct shadow *s = copy->source;
  UINT_PTR ip = copy->stack.count > 0 ? copy->stack.frames[0].ip : 0;
  bool still =
      s->last_ip == ip && s->last_depth == copy->depth && s->last_count == copy->stack.count;
  s->last_ip = ip;
  s->last_depth = copy->depth;
  s->last_count = copy->stack.count;
  return still;
}

bool shadow_judge(const struct copy *copy) {
  static FunctionID ids[STACK_MAX];
  uint32_t n = managed_ids(&copy->stack, ids);
  counts.taken++;
  counts.frames += n;
  if (copy->stack.hr != S_OK) {
    counts.failed_walk++;
    if (counts.failed_walk <= 5)
      oracle_fail("the walk ended early: %s %s", stack_hresult(copy->stack.hr),
                  clrsnap_last_error());
    return false;
  }
  enum verdict verdict = verdict_of(ids, n, copy);
  counts.dispatching += copy->dispatch > 0;
  if (verdict == EQUAL && n > 4 && n < STACK_MAX && counts.taken % 4 == 0) try_fault(ids, n, copy);
  if (stands_still(copy) && verdict != EQUAL && verdict != WRONG) {
    counts.still++;
    return true;
  }
  if (counts.of[verdict]++ >= 6 || verdict != WRONG) return verdict != WRONG;
  oracle_fail("snapshot %lu differs from the shadow stack", (unsigned long)counts.taken);
  print_both(copy);
  return false;
}

// ---- Exceptions: frames that end without a leave hook ----

// Returns whether the shadow itself is right, according to CoreCLR's own walk of this thread.
static void check_shadow(const struct shadow *s) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static struct copy copy;
  static FunctionID ids[STACK_MAX];
  pthread_mutex_lock(&lock);
  if (counts.checked < 3000) {
    stack_by_clr(&copy.stack, 0, COR_PRF_SNAPSHOT_DEFAULT);
    copy.depth = s->depth;
    memcpy(copy.entries, s->entries, s->depth * sizeof(copy.entries[0]));
    counts.checked++;
    uint32_t n = managed_ids(&copy.stack, ids);
    if (!agrees(ids, n, &copy) && counts.check_failed++ < 3) {
      oracle_fail("CoreCLR's own walk at ExceptionThrown differs from the shadow stack");
      print_both(&copy);
    }
  }
  pthread_mutex_unlock(&lock);
}

static HRESULT exception_thrown(ICorProfilerCallback11 *self, ObjectID object) {
  (void)self, (void)object;
  struct shadow *s = mine;
  if (s == NULL || s->depth == 0) return S_OK;
  s->catcher_found = false;
  if (s->dispatch == 0) check_shadow(s);
  if (s->dispatch++ == 0) s->dispatch_cfa = s->entries[s->depth - 1].cfa;
  return S_OK;
}
static HRESULT catcher_found(ICorProfilerCallback11 *self, FunctionID id) {
  (void)self, (void)id;
  if (mine != NULL) mine->catcher_found = true;
  return S_OK;
}
// A filter has a frame of its own, just below its thrower's, with the FunctionID of the method that
// contains it.
static HRESULT filter_enter(ICorProfilerCallback11 *self, FunctionID id) {
  (void)self;
  struct shadow *s = mine;
  if (s == NULL || s->depth == 0 || s->depth == SHADOW_MAX) return S_OK;
  s->unwound_top = 0;
  BARRIER();
  s->entries[s->depth] = (struct shadow_entry){id, s->entries[s->depth - 1].cfa - 1, true};
  BARRIER();
  s->depth++;
  return S_OK;
}
static void drop_filters(struct shadow *s) {
  while (s->depth > 0 && s->entries[s->depth - 1].filter) s->depth--;
}
static HRESULT filter_leave(ICorProfilerCallback11 *self) {
  (void)self;
  if (mine != NULL) drop_filters(mine);
  return S_OK;
}
static HRESULT unwind_enter(ICorProfilerCallback11 *self, FunctionID id) {
  (void)self;
  if (mine != NULL) mine->unwinding = id;
  return S_OK;
}
static HRESULT unwind_leave(ICorProfilerCallback11 *self) {
  (void)self;
  struct shadow *s = mine;
  if (s == NULL) return S_OK;
  if (s->unwound_top < s->depth) s->unwound_top = s->depth;
  BARRIER();
  drop_filters(s);  // of one that has thrown nobody tells the end
  if (s->depth > 0 && s->entries[s->depth - 1].id == s->unwinding) s->depth--;
  return S_OK;
}
static HRESULT catcher_enter(ICorProfilerCallback11 *self, FunctionID id, ObjectID object) {
  (void)self, (void)id, (void)object;
  struct shadow *s = mine;
  if (s == NULL) return S_OK;
  if (s->dispatch > 0) s->dispatch--;
  s->catcher_found = true;  // of an outer one, whose second pass was under way
  s->unwound_top = 0;
  BARRIER();
  drop_filters(s);
  // A function whose catch handler throws ends without an unwind callback of its own; everything
  // below the catcher's frame is gone.
  COR_PRF_EX_CLAUSE_INFO clause = {0};
  HRESULT hr = oracle_info->lpVtbl->GetNotifiedExceptionClauseInfo(oracle_info, &clause);
  if (hr == S_OK && clause.framePointer != 0)
    s->depth = live_depth(s, clause.framePointer - MACHINE_CLAUSE_HAS_CALLERS_SP);
  s->catching = s->depth > 0 ? s->entries[s->depth - 1].cfa - 1 : 0;
  return S_OK;
}
static HRESULT catcher_leave(ICorProfilerCallback11 *self) {
  (void)self;
  // The thread has not resumed yet; it has once the next hook is called, for whatever frame.
  if (mine != NULL) mine->catching = 1;
  return S_OK;
}

// ---- One snapshot ----
static struct shadow *shadow_of(uint32_t tid) {
  uint32_t n = __atomic_load_n(&shadow_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = n < SHADOWS ? n : SHADOWS; i-- > 0;) {
    struct shadow *s = __atomic_load_n(&shadows[i], __ATOMIC_ACQUIRE);
    if (s != NULL && s->tid == tid && !s->overflow) return s;
  }
  return NULL;
}

static void one_snapshot(struct copy *copy, unsigned *seed) {
  struct oracle_thread threads[64];
  uint32_t n = oracle_threads(threads, 64);
  if (n == 0) return;
  const struct oracle_thread *t = &threads[(uint32_t)rand_r(seed) % n];
  copy->source = shadow_of(t->tid);
  if (copy->source == NULL) return;
  stack_clear(&copy->stack);
  copy->taken = false;
  copy->stack.hr = clrsnap_snapshot(t->id, shadow_collect, COR_PRF_SNAPSHOT_DEFAULT, copy, NULL, 0);
  if (copy->taken)
    (void)shadow_judge(copy);
  else
    counts.empty++;
}

uint64_t shadow_taken(void) {
  return counts.taken;
}
uint64_t shadow_wanted(void) {
  return wanted;
}
void shadow_done(void) {
  __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}

// Few snapshots may be over before the program throws its first exceptions, at which the shadow
// stack itself is checked.
static bool is_over(void) {
  uint64_t checked = __atomic_load_n(&counts.checked, __ATOMIC_RELAXED);
  return counts.taken >= wanted && (checked > 2 * CHECKS || counts.taken >= 100 * wanted);
}

static void *sampler(void *arg) {
  struct copy *copy = arg;
  unsigned seed = 4242;
  if (!ours_ready()) return NULL;
  while (!is_over()) {
    one_snapshot(copy, &seed);
    // Waits for an arbitrary instant of the target: mostly none at all, sometimes a little longer.
    for (volatile uint32_t spin = (uint32_t)rand_r(&seed) % 3000; spin > 0; spin--) {
    }
    if (rand_r(&seed) % 16 == 0) usleep(50);
  }
  shadow_done();
  return NULL;
}

ORACLE_EXPORT int oracle_scene_done(void);
int oracle_scene_done(void) {
  return (int)__atomic_load_n(&done, __ATOMIC_ACQUIRE);
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  wanted = (uint64_t)oracle_env("ORACLE_SNAPSHOTS", 100000);
  bool in_handlers = oracle_env("ORACLE_HANDLER", 0) != 0;
  if (in_handlers) foreign_prepare();
  ours_start(vtbl, in_handlers ? 0 : CLRSNAP_HOLD_TARGET);
  vtbl->ExceptionThrown = exception_thrown;
  vtbl->ExceptionSearchCatcherFound = catcher_found;
  vtbl->ExceptionSearchFilterEnter = filter_enter;
  vtbl->ExceptionSearchFilterLeave = filter_leave;
  vtbl->ExceptionUnwindFunctionEnter = unwind_enter;
  vtbl->ExceptionUnwindFunctionLeave = unwind_leave;
  vtbl->ExceptionCatcherEnter = catcher_enter;
  vtbl->ExceptionCatcherLeave = catcher_leave;
  HRESULT hr = oracle_info->lpVtbl->SetFunctionIDMapper2(oracle_info, map_function, NULL);
  if (SUCCEEDED(hr))
    hr = oracle_info->lpVtbl->SetEnterLeaveFunctionHooks3(oracle_info, shadow_enter_stub,
                                                          shadow_leave_stub, shadow_tailcall_stub);
  ORACLE_CHECK(SUCCEEDED(hr), "the hooks were not taken: %#x", (unsigned)hr);
  pthread_t thread;
  static struct copy copy;
  int error = pthread_create(&thread, NULL, in_handlers ? foreign_main : sampler, &copy);
  ORACLE_CHECK(error == 0, "pthread_create: %s", strerror(error));
  return COR_PRF_MONITOR_ENTERLEAVE | COR_PRF_MONITOR_EXCEPTIONS | ours_mask(high);
}

int oracle_report(void) {
  printf("%lu snapshots of %u threads, %.1f hooked frames each, %lu with an exception on its way\n",
         (unsigned long)counts.taken, shadow_count,
         counts.taken == 0 ? 0.0 : (double)counts.frames / (double)counts.taken,
         (unsigned long)counts.dispatching);
  printf("  %10lu equal to the shadow stack\n", (unsigned long)counts.of[EQUAL]);
  // Each bound is two to three times what was seen.
  oracle_excuse("with one more leaf: its enter hook has not pushed, or its leave hook has popped",
                counts.of[ONE_MORE], counts.taken, 40000, 0);
  oracle_excuse("with a gap where an exception unwinds", counts.of[GAP], counts.taken, 20000, 0);
  oracle_excuse("with unwound frames because the thread was about to resume", counts.of[RESUMING],
                counts.taken, 5000, 20);
  oracle_excuse("with unwound frames because the exception was leaving for native code",
                counts.of[GOING_NATIVE], counts.taken, 500, 20);
  oracle_excuse("excused before, of a thread that has not moved since", counts.still, counts.taken,
                500000, 0);
  oracle_excuse("of threads without managed frames", counts.empty, counts.taken, 300000, 0);
  oracle_faults("a frame missing", counts.put[MISSING], counts.found[MISSING]);
  oracle_faults("a frame twice", counts.put[TWICE], counts.found[TWICE]);
  oracle_faults("another function", counts.put[ANOTHER], counts.found[ANOTHER]);
  printf("  %10lu ended early\n  %10lu WRONG\n", (unsigned long)counts.failed_walk,
         (unsigned long)counts.of[WRONG]);
  printf("  %10lu of %lu walks by CoreCLR at ExceptionThrown equal the shadow stack\n",
         (unsigned long)(counts.checked - counts.check_failed), (unsigned long)counts.checked);
  foreign_report();
  ORACLE_CHECK(counts.check_failed == 0 && counts.checked > CHECKS,
               "the shadow stack itself is not right");
  ORACLE_CHECK(counts.taken >= wanted, "%lu snapshots were wanted", (unsigned long)wanted);
  ORACLE_CHECK(counts.of[WRONG] == 0, "%lu snapshots differ from the shadow stack",
               (unsigned long)counts.of[WRONG]);
  ORACLE_CHECK(counts.failed_walk == 0, "%lu walks ended early", (unsigned long)counts.failed_walk);
  return 0;
}
