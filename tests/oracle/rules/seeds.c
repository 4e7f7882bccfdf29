// SPDX-License-Identifier: MIT
// Seeds from end to end (contract: C12 to C16), through the public header alone: hold a thread at
// an arbitrary instant (in the JIT, an allocation, the collector, a lock's slow path, a P/Invoke,
// an exception), read its registers, unwind to its topmost managed frame, take a snapshot with that
// seed, and let it run on. While it is held, the same thread is also walked without a seed,
// logically and physically: the three must agree. Threads: everything here is on one native thread,
// except what badseeds.c does. Signal-safe: no.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "badseeds.h"
#include "contexts.h"

const char *const oracle_name = "seeds";

enum { PHYSICAL = 4096 };
static struct take {
  ThreadID thread;
  bool exception;  // one is under way, by the runtime's Thread
  bool collected;  // the collector ran while it was held, or may have
  HRESULT held, context, unwound, refused, again, other, released;
  AMD64_CONTEXT leaf, seed;
  struct stack plain, seeded;
  uint32_t count;
  struct clrsnap_frame frames[PHYSICAL];
  struct clrsnap_walk_result result;
} take;
static uint32_t done;
static struct {
  uint64_t put, found;
  bool quiet;
} faults;

// The activities of a thread, by the method that it is in, and where its leaf is.
enum { JOBS = 7, PLACES = 5 };
static const char *const job_name[JOBS] = {"Compile", "Allocate", "Contend", "CallNative",
                                           "Throw",   "Cast",     "(others)"};
static const char *const place_name[PLACES] = {"managed code", "the JIT", "the runtime",
                                               "a library", "a stub"};
static struct {
  uint64_t taken, gone, no_managed, cooperative, around_calls, whole, exceptions, wrong, frames;
  uint64_t collected;  // takes during which the collector ran
  uint64_t table[JOBS][PLACES];
} seen;

// A thread that is held in preemptive mode does not delay the collector, which moves objects that
// the held thread's saved registers point at. The registers of two walks differ then, and both are
// right. The counter goes up at the start and at the end of each collection.
static uint32_t collections;

static HRESULT collector_begins(ICorProfilerCallback11 *self, int generations, BOOL collected[],
                                COR_PRF_GC_REASON reason) {
  (void)self, (void)generations, (void)collected, (void)reason;
  __atomic_add_fetch(&collections, 1, __ATOMIC_SEQ_CST);
  return S_OK;
}

static HRESULT collector_ends(ICorProfilerCallback11 *self) {
  (void)self;
  __atomic_add_fetch(&collections, 1, __ATOMIC_SEQ_CST);
  return S_OK;
}

ORACLE_EXPORT int oracle_scene_done(void);
int oracle_scene_done(void) {
  return (int)__atomic_load_n(&done, __ATOMIC_ACQUIRE);
}

// ---- While the thread is held: only the library is called ----
static HRESULT collect(const struct clrsnap_frame *frame, void *data) {
  struct take *t = data;
  if (t->count == PHYSICAL) return S_FALSE;
  t->frames[t->count++] = *frame;
  return S_OK;
}

static HRESULT seeded(ThreadID thread, struct stack *stack, const AMD64_CONTEXT *seed) {
  AMD64_CONTEXT copy = *seed;
  stack_clear(stack);
  return stack->hr = clrsnap_snapshot(thread, stack_collect, COR_PRF_SNAPSHOT_REGISTER_CONTEXT,
                                      stack, (BYTE *)&copy, sizeof(copy));
}

static void use_hold(struct take *t, struct clrsnap_hold *hold, ThreadID thread, ThreadID other) {
  t->thread = thread;
  t->context = clrsnap_hold_context(hold, (BYTE *)&t->leaf, sizeof(t->leaf));
  t->unwound = clrsnap_hold_unwind_to_managed(hold, (BYTE *)&t->seed, sizeof(t->seed));
  t->count = 0;
  t->result = (struct clrsnap_walk_result){.size = sizeof(t->result)};
  clrsnap_walk(thread, collect, t, NULL, &t->result);
  // No walk may start from this seed: the call is refused if a seed is needed, which is in
  // cooperative mode.
  AMD64_CONTEXT native = t->unwound == S_OK ? t->seed : t->leaf;
  native.Rip = (uint64_t)(uintptr_t)&usleep;
  t->refused = seeded(thread, &t->seeded, &native);
  stack_by_ours(&t->plain, thread, COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
  if (t->unwound == S_OK) (void)seeded(thread, &t->seeded, &t->seed);
  t->exception = contexts_has_exception(thread);
  struct clrsnap_hold *second = NULL;
  t->again = clrsnap_hold(thread, &second);
  t->other = other != thread ? clrsnap_walk(other, collect, t, NULL, NULL)
                             : CORPROF_E_STACKSNAPSHOT_UNSAFE;
}

// ---- Afterwards ----
static bool wrong(const char *what) {
  if (seen.wrong++ >= 3) return false;
  oracle_fail("take %lu: %s (%s seeded %u frames, plain %u, physical %u, ended at %#lx: %s)",
              (unsigned long)seen.taken, what, stack_hresult(take.seeded.hr), take.seeded.count,
              take.plain.count, take.count, (unsigned long)take.result.stop_ip,
              clrsnap_stop_text(take.result.stop));
  for (uint32_t i = 0; i < take.count && i < 24; i++) {
    const struct clrsnap_frame *f = &take.frames[i];
    printf("    sp %#lx kind %u flags %#x ip %#lx %s\n", (unsigned long)f->sp, f->kind, f->flags,
           (unsigned long)f->ip, oracle_function_name(f->function));
  }
  stack_print(stdout, &take.plain, 0, 16);
  stack_print(stdout, &take.seeded, 0, 16);
  return false;
}

static bool is_managed(const struct clrsnap_frame *f) {
  return f->kind == CLRSNAP_FRAME_MANAGED_JIT || f->kind == CLRSNAP_FRAME_MANAGED_R2R;
}

static uint32_t first_managed(void) {
  uint32_t i = 0;
  while (i < take.count && !is_managed(&take.frames[i])) i++;
  return i;
}

// Leaves out the registers that the collector may have changed in between: all that are saved in a
// frame, except the stack pointer and the ip.
static bool equal_registers(const struct stack_frame *a, const struct stack_frame *b) {
  if (!take.collected) return memcmp(a->reg, b->reg, sizeof(a->reg)) == 0;
  return a->reg[STACK_RSP] == b->reg[STACK_RSP] && a->reg[STACK_RIP] == b->reg[STACK_RIP];
}

// Prints which word of which frame differs, while wrong takes are still printed in full.
static bool equal_stacks(const struct stack *a, const struct stack *b) {
  if (a->hr != b->hr || a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    const struct stack_frame *x = &a->frames[i], *y = &b->frames[i];
    if (x->id == y->id && x->ip == y->ip && x->context_size == y->context_size &&
        x->context_flags == y->context_flags && equal_registers(x, y))
      continue;
    if (faults.quiet) return false;
    printf("    frame %u: flags %#x and %#x, ids %#lx and %#lx, registers", i, x->context_flags,
           y->context_flags, (unsigned long)x->id, (unsigned long)y->id);
    for (int r = 0; r < STACK_REGS; r++)
      printf(" %#lx%s%#lx", (unsigned long)x->reg[r],
             x->reg[r] == y->reg[r] ? "=" : "!=", (unsigned long)y->reg[r]);
    printf("\n");
    return false;
  }
  return true;
}

// The dispatch is managed code that is not told, and is on the stack a little longer than its
// exception is on the runtime's list.
static bool is_dispatch(const struct clrsnap_frame *f) {
  return strncmp(oracle_function_name(f->function), "System.Runtime.EH.", 18) == 0;
}

// A method calls its own finally block; in ReadyToRun code nothing else distinguishes it.
static bool has_handler(void) {
  for (uint32_t i = 0; i < take.count; i++) {
    const struct clrsnap_frame *f = &take.frames[i], *next = f + 1;
    if (!is_managed(f)) continue;
    if ((f->flags & CLRSNAP_FRAME_FUNCLET) != 0 || is_dispatch(f)) return true;
    if (i + 1 < take.count && is_managed(next) && next->function == f->function &&
        next->method_start != f->method_start)
      return true;
  }
  return false;
}

// Every managed frame with metadata is reported, in order, with its own sp (contract: C1, C15).
static bool tells_all(const struct stack *stack) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < take.count; i++) {
    const struct clrsnap_frame *f = &take.frames[i];
    if (!is_managed(f) || f->function == 0 ||
        strncmp(oracle_function_name(f->function), "(dynamic)", 9) == 0)
      continue;
    while (k < stack->count && stack->frames[k].id == 0) k++;
    if (k == stack->count || stack->frames[k].id != f->function ||
        stack->frames[k].reg[STACK_RSP] != f->sp)
      return false;
    k++;
  }
  while (k < stack->count && stack->frames[k].id == 0) k++;
  return k == stack->count;
}

static uint32_t job_of(const struct stack *stack) {
  for (uint32_t i = 0; i < stack->count; i++) {
    const char *name = stack->frames[i].id != 0 ? oracle_function_name(stack->frames[i].id) : "";
    if (strncmp(name, "Proofs.Seeds.", 13) != 0) continue;
    for (uint32_t j = 0; j < JOBS; j++)
      if (strcmp(name + 13, job_name[j]) == 0) return j;
  }
  return JOBS - 1;
}

// The innermost library of the runtime above the first managed frame, if there is one.
static uint32_t place_of_leaf(void) {
  uint32_t first = first_managed();
  if (first == 0) return 0;
  uint32_t place = take.frames[0].kind == CLRSNAP_FRAME_STUB ? 4 : 3;
  for (uint32_t i = 0; i < first; i++) {
    Dl_info in;
    if (dladdr((void *)take.frames[i].ip, &in) == 0 || in.dli_fname == NULL) continue;
    if (strstr(in.dli_fname, "libclrjit") != NULL) return 1;
    if (strstr(in.dli_fname, "libcoreclr") != NULL) place = 2;
  }
  return place;
}

static bool judge_answers(void) {
  if (take.context != S_OK || take.released != S_OK) return wrong("context or release");
  if (take.again != CORPROF_E_STACKSNAPSHOT_UNSAFE || take.other != CORPROF_E_STACKSNAPSHOT_UNSAFE)
    return wrong("another thread was asked while one is held");
  if (take.result.stop != 1) return wrong("the physical walk is not complete");
  return take.plain.hr == S_OK || wrong("the walk without a seed");
}

// Since the last hold of this thread. On a busy machine a thread stands still for many holds.
static bool has_moved(void) {
  static struct {
    ThreadID thread;
    AMD64_CONTEXT leaf;
  } last[64];
  size_t at = (take.thread >> 6) % 64;
  bool moved =
      last[at].thread != take.thread || memcmp(&last[at].leaf, &take.leaf, sizeof(take.leaf)) != 0;
  last[at].thread = take.thread;
  last[at].leaf = take.leaf;
  return moved;
}

static bool judge_seed(uint32_t first) {
  const struct clrsnap_frame *top = &take.frames[first];
  if (take.unwound != S_OK || take.seed.Rip != top->ip || take.seed.Rsp != top->sp)
    return wrong("the seed is not the topmost managed frame");
  if (first == 0 && memcmp(&take.seed, &take.leaf, sizeof(take.leaf)) != 0)
    return wrong("interrupted in managed code, but not all registers are known");
  if (take.refused == CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX)
    seen.cooperative++;
  else if (take.refused != S_OK)
    return wrong("a seed in native code");
  else if (first == 0)  // between two modes: around a call to native code that is compiled in
    seen.around_calls += has_moved();
  return equal_stacks(&take.plain, &take.seeded) || wrong("seeded and unseeded differ");
}

// Repeats the comparison with a fault put in: a changed register, or a missing frame.
static void try_fault(void) {
  struct stack *stack = &take.seeded;
  if (stack->count < 3) return;
  uint32_t at = 1 + (uint32_t)(seen.taken % (stack->count - 2));
  struct stack_frame kept = stack->frames[at];
  if (stack->frames[at].id == 0) return;
  faults.put++;
  faults.quiet = true;
  stack->frames[at].reg[STACK_RSP] += 8;
  faults.found += !equal_stacks(&take.plain, stack) && !tells_all(stack);
  stack->frames[at] = kept;
  memmove(&stack->frames[at], &stack->frames[at + 1], (stack->count - at - 1) * sizeof kept);
  stack->count--;
  faults.put++;
  faults.found += !equal_stacks(&take.plain, stack) && !tells_all(stack);
  faults.quiet = false;
}

static void judge(void) {
  uint32_t first = first_managed();
  seen.taken++;
  seen.collected += take.collected;
  seen.frames += take.plain.count;
  if (!judge_answers()) return;
  if (first == take.count) {
    seen.no_managed++;
    if (take.unwound != CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX || take.plain.count != 0)
      (void)wrong("there is no managed frame, and yet");
    return;
  }
  if (!judge_seed(first)) return;
  FunctionID id = 0;
  HRESULT hr = oracle_info->lpVtbl->GetFunctionFromIP(
      oracle_info,
      (LPCBYTE)(uintptr_t)(take.seed.Rip -
                           ((take.frames[first].flags & CLRSNAP_FRAME_EXACT) != 0 ? 0 : 1)),
      &id);
  if (take.frames[first].function != 0 && hr == S_OK && id != take.frames[first].function)
    (void)wrong("the CLR says that the seed is in another method");
  if (take.exception ||
      has_handler())  // frames that were not reported, or reported as another thread's
    seen.exceptions++;
  else if (tells_all(&take.plain)) {
    seen.whole++;
    if (seen.whole % 64 == 0) try_fault();
  } else
    (void)wrong("a managed frame is not told");
  seen.table[job_of(&take.plain)][place_of_leaf()]++;
}

// Threads were held in all places where they are meant to be.
static bool is_enough(void) {
  return seen.table[0][1] > 30 && seen.table[1][2] > 100 && seen.table[2][2] > 100 &&
         seen.table[3][2] + seen.table[3][3] > 100 && seen.table[4][2] > 100 &&
         seen.cooperative > 200;
}

static void *run(void *unused) {
  struct oracle_thread threads[64];
  unsigned random = 31;
  (void)unused;
  if (!ours_ready()) return NULL;
  badseeds_run();
  uint64_t wanted = (uint64_t)oracle_env("ORACLE_SNAPSHOTS", 10000);
  // Where other programs have the processors, most threads stand still for many holds in a row.
  for (uint64_t i = 0; (seen.taken < wanted || !is_enough()) && i < 20 * wanted; i++) {
    struct clrsnap_hold *hold = NULL;
    uint32_t n = oracle_threads(threads, 64);
    if (n == 0) continue;
    const struct oracle_thread *t = &threads[(uint32_t)rand_r(&random) % n];
    uint32_t before = __atomic_load_n(&collections, __ATOMIC_SEQ_CST);
    take.held = clrsnap_hold(t->id, &hold);
    if (take.held == S_OK) {
      use_hold(&take, hold, t->id, threads[0].id != t->id ? threads[0].id : threads[n - 1].id);
      take.collected = before % 2 != 0 || before != __atomic_load_n(&collections, __ATOMIC_SEQ_CST);
      take.released = clrsnap_release(hold);
      judge();
    } else if (take.held == CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD) {
      seen.gone++;
    } else {
      oracle_fail("hold: %s %s", stack_hresult(take.held), clrsnap_last_error());
    }
    if (rand_r(&random) % 8 == 0) usleep((useconds_t)rand_r(&random) % 100);
  }
  __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
  return NULL;
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  pthread_t thread;
  contexts_start();
  ours_start(vtbl, 0);
  badseeds_setup(vtbl);
  vtbl->GarbageCollectionStarted = collector_begins;
  vtbl->GarbageCollectionFinished = collector_ends;
  *high |= COR_PRF_HIGH_BASIC_GC;  // unlike MONITOR_GC, it leaves the background collector on
  int error = pthread_create(&thread, NULL, run, NULL);
  ORACLE_CHECK(error == 0, "pthread_create: %s", strerror(error));
  return COR_PRF_ENABLE_STACK_SNAPSHOT | COR_PRF_MONITOR_JIT_COMPILATION | ours_mask(high);
}

int oracle_report(void) {
  badseeds_report();
  printf("%lu threads held, walked with and without their seed, and released; %lu frames\n",
         (unsigned long)seen.taken, (unsigned long)seen.frames);
  printf(
      "  %10lu in cooperative mode, where the seed is used\n"
      "  %10lu while the collector ran, which may change saved registers\n"
      "  %10lu in managed code around a call to native code, where it is not\n"
      "  %10lu without managed frames\n"
      "  %10lu told every managed frame that is on the stack\n  %10lu with an exception\n"
      "  %10lu had gone\n  %10lu WRONG\n",
      (unsigned long)seen.cooperative, (unsigned long)seen.collected,
      (unsigned long)seen.around_calls, (unsigned long)seen.no_managed, (unsigned long)seen.whole,
      (unsigned long)seen.exceptions, (unsigned long)seen.gone, (unsigned long)seen.wrong);
  printf("  %-12s", "in");
  for (int p = 0; p < PLACES; p++) printf(" %14s", place_name[p]);
  printf("\n");
  for (int j = 0; j < JOBS; j++) {
    printf("  %-12s", job_name[j]);
    for (int p = 0; p < PLACES; p++) printf(" %14lu", (unsigned long)seen.table[j][p]);
    printf("\n");
  }
  oracle_excuse("with an exception, where not every frame is told", seen.exceptions, seen.taken,
                200000, 0);
  oracle_excuse("threads that had gone", seen.gone, seen.taken, 10000, 20);
  oracle_excuse("around a call, where the seed is not used", seen.around_calls, seen.taken, 5000,
                20);
  oracle_faults("another sp, a frame less", faults.put, faults.found);
  ORACLE_CHECK(seen.taken >= (uint64_t)oracle_env("ORACLE_SNAPSHOTS", 10000), "too few holds");
  ORACLE_CHECK(seen.wrong == 0, "%lu takes are wrong", (unsigned long)seen.wrong);
  ORACLE_CHECK(is_enough() && seen.collected < seen.taken / 2,
               "threads were not where they were meant to be");
  return 0;
}
