// SPDX-License-Identifier: MIT
// Sleepers: a native thread walks each thread that waits in the kernel
// (tests/apps/Proofs/Asleep.cs) every 5 ms, and the walks must not affect these threads: no call
// returns early or with EINTR, and no thread runs more often than it would by itself. Each walk
// must be complete, with the managed frames that CoreCLR itself has reported for the thread.
// ORACLE_SIGNAL=1 is the control: the same walks by signal have the effects that the others must
// not have. Threads: `lock` guards the list of sleepers.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ours.h"

const char *const oracle_name = "sleepers";

enum {
  MOST = 32,
  FRAMES = 256,
  PERIOD_US = 5000,
  WALKS = 1 << 14,
  // For each thread in the control. Socket.Receive restarts its time-out after each signal, so
  // without a limit it would never end.
  CONTROL_WALKS = 100,
};
struct sleeper {
  char name[64];
  ThreadID id;
  uint32_t tid;
  bool done;
  FunctionID below[FRAMES];  // managed frames from the caller of the wait on, as CoreCLR has them
  uint32_t below_count;
  uint64_t switches;  // voluntary context switches: the count at the start, later the difference
  uint32_t walks, asleep, elsewhere, natives, bridged, calls;
  uint32_t woken;  // walks by signal of a thread that was blocked just before
};
static struct sleeper sleepers[MOST];
static uint32_t sleeper_count;
static uint64_t took[2][WALKS];  // ns, by signal and asleep
static uint32_t took_count[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool by_signal;
static uint64_t interrupted_in_all;

static uint64_t own_switches(void) {
  char line[256];
  unsigned long long found = 0;
  FILE *file = fopen("/proc/thread-self/status", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "voluntary_ctxt_switches: %llu", &found) == 1) break;
  if (file != NULL) fclose(file);
  return found;
}

// A thread that spins before it blocks, or waits for a processor, does not sleep.
static bool is_blocked(uint32_t tid) {
  char path[64], stat[256] = "";
  (void)snprintf(path, sizeof path, "/proc/self/task/%u/stat", tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  (void)fgets(stat, sizeof stat, file);
  (void)fclose(file);
  const char *after_name = strrchr(stat, ')');
  return after_name != NULL && strncmp(after_name, ") S", 3) == 0;
}

// ---- Run by the sleepers ----

// Leaves out the P/Invoke through which this was called; the first frame is that of its caller.
static void remember_stack(struct sleeper *s) {
  static struct stack stack;
  stack_by_clr(&stack, 0, COR_PRF_SNAPSHOT_DEFAULT);
  for (uint32_t i = 0; i < stack.count; i++) {
    FunctionID id = stack.frames[i].id;
    if (id == 0 || (s->below_count == 0 && oracle_function_is_pinvoke(id))) continue;
    if (s->below_count < FRAMES) s->below[s->below_count++] = id;
  }
}

// The sleepers begin when they can be walked.
static uint32_t walker_ready;

ORACLE_EXPORT void oracle_sleeper_begin(const char *name);
void oracle_sleeper_begin(const char *name) {
  while (!__atomic_load_n(&walker_ready, __ATOMIC_ACQUIRE)) usleep(1000);
  pthread_mutex_lock(&lock);
  struct sleeper *s = &sleepers[sleeper_count];
  snprintf(s->name, sizeof s->name, "Proofs.Asleep.%s", name);
  oracle_info->lpVtbl->GetCurrentThreadID(oracle_info, &s->id);
  s->tid = oracle_gettid();
  remember_stack(s);
  s->switches = own_switches();
  sleeper_count++;
  pthread_mutex_unlock(&lock);
}

static void check_effects(const struct sleeper *s, int calls, int interrupted, int early) {
  uint32_t signals = s->walks - s->asleep;
  printf(
      "%-28s %4u walks, %4u asleep, %4.1f native frames, %4u bridged; %d calls, %2d interrupted, "
      "%2d early, %lu waits\n",
      s->name, s->walks, s->asleep, s->walks == 0 ? 0.0 : (double)s->natives / s->walks, s->bridged,
      calls, interrupted, early, (unsigned long)s->switches);
  fflush(stdout);
  interrupted_in_all += (uint64_t)interrupted + (uint64_t)early;
  if (by_signal) return;
  // A thread that loses its processor on its way to sleep is running, by the kernel, and gets a
  // signal.
  ORACLE_CHECK(interrupted <= 2 && early <= interrupted && interrupted_in_all <= 6,
               "%s: %d of %d waits interrupted, %d early, %u in all", s->name, interrupted, calls,
               early, (unsigned)interrupted_in_all);
  ORACLE_CHECK(s->walks >= 100, "%s: only %u walks", s->name, s->walks);
  ORACLE_CHECK(s->woken * 100ull <= s->walks * 5ull,
               "%s: %u of %u walks by signal although it was blocked", s->name, s->woken, s->walks);
  ORACLE_CHECK(s->asleep >= 30, "%s: only %u walks without a signal", s->name, s->asleep);
  ORACLE_CHECK(s->elsewhere * 20ull <= s->walks, "%s: %u walks showed it elsewhere", s->name,
               s->elsewhere);
  // By itself a wait takes one switch; some of the runtime's take two or three.
  ORACLE_CHECK(s->switches <= 4ull * (unsigned)calls + 2ull * signals, "%s: it waited %lu times",
               s->name, (unsigned long)s->switches);
}

ORACLE_EXPORT void oracle_sleeper_end(int calls, int interrupted, int early);
void oracle_sleeper_end(int calls, int interrupted, int early) {
  uint64_t switches = own_switches();
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < sleeper_count; i++) {
    struct sleeper *s = &sleepers[i];
    if (s->tid != oracle_gettid() || s->done) continue;
    s->done = true;
    s->switches = switches - s->switches;
    check_effects(s, calls, interrupted, early);
  }
  pthread_mutex_unlock(&lock);
}

// ---- The walker ----
struct walk {
  struct clrsnap_frame frames[FRAMES];
  uint32_t count;
};

static HRESULT collect(const struct clrsnap_frame *frame, void *data) {
  struct walk *walk = data;
  if (walk->count < FRAMES) walk->frames[walk->count++] = *frame;
  return S_OK;
}

static bool is_managed(const struct clrsnap_frame *f) {
  return f->kind == CLRSNAP_FRAME_MANAGED_JIT || f->kind == CLRSNAP_FRAME_MANAGED_R2R;
}

// The managed frames at the stack's base must be those that CoreCLR has reported. `*above` is the
// managed frame above them.
static bool base_agrees(const struct walk *walk, const struct sleeper *s,
                        const struct clrsnap_frame **above) {
  uint32_t left = s->below_count, i = walk->count;
  *above = NULL;
  while (i > 0) {
    const struct clrsnap_frame *f = &walk->frames[--i];
    if (!is_managed(f)) continue;
    if (left == 0) {
      *above = f;
      return true;
    }
    if (f->function != s->below[--left]) return false;
  }
  return left == 0;
}

static void print_walk(const struct walk *walk) {
  for (uint32_t i = 0; i < walk->count; i++) {
    const struct clrsnap_frame *f = &walk->frames[i];
    printf("    %2u ip %#14lx sp %#14lx %s%s\n", i, (unsigned long)f->ip, (unsigned long)f->sp,
           is_managed(f) ? oracle_function_name(f->function) : "native",
           f->flags & CLRSNAP_FRAME_BRIDGED ? " (bridged)" : "");
  }
}

static void judge(struct sleeper *s, const struct walk *walk,
                  const struct clrsnap_walk_result *result) {
  const struct clrsnap_frame *above;
  bool asleep = (result->flags & CLRSNAP_WALK_ASLEEP) != 0;
  bool agrees = base_agrees(walk, s, &above);
  bool waits = above != NULL && strcmp(oracle_function_name(above->function), s->name) == 0;
  s->walks++;
  s->asleep += asleep;
  for (uint32_t i = 0; i < walk->count && !is_managed(&walk->frames[i]); i++) s->natives++;
  for (uint32_t i = 0; i < walk->count; i++)
    s->bridged += (walk->frames[i].flags & CLRSNAP_FRAME_BRIDGED) != 0;
  if (s->walks == 1 && oracle_env("ORACLE_PRINT", 0) != 0) print_walk(walk);
  if (!waits) s->elsewhere++;
  // If there is no frame above, the thread waits for our own lock, to report that it is done.
  if (result->stop == 1 && agrees && (waits || above == NULL || !asleep)) return;
  oracle_fail("%s, walk %u%s: %s, at %#lx; the frames below the wait are %s, above them is %s",
              s->name, s->walks, asleep ? " asleep" : "", clrsnap_stop_text(result->stop),
              (unsigned long)result->stop_ip, agrees ? "right" : "WRONG",
              above != NULL ? oracle_function_name(above->function) : "nothing");
  print_walk(walk);
}

static void walk_once(struct sleeper *s) {
  static struct walk walk;
  struct clrsnap_walk_result result = {.size = sizeof result};
  walk.count = 0;
  bool blocked = is_blocked(s->tid);
  uint64_t before = oracle_now_ns();
  HRESULT hr = clrsnap_walk(s->id, collect, &walk, NULL, &result);
  uint64_t ns = oracle_now_ns() - before;
  ORACLE_CHECK(hr == S_OK, "%s: %#x %s", s->name, (unsigned)hr, clrsnap_last_error());
  if (hr != S_OK) return;
  bool asleep = (result.flags & CLRSNAP_WALK_ASLEEP) != 0;
  s->woken += blocked && !asleep;
  if (took_count[asleep] < WALKS) took[asleep][took_count[asleep]++] = ns;
  ORACLE_CHECK(!asleep || result.held_ns == 0, "a sleeper was held for %lu ns",
               (unsigned long)result.held_ns);
  judge(s, &walk, &result);
}

static void *walker(void *unused) {
  (void)unused;
  bool ready = ours_ready();
  __atomic_store_n(&walker_ready, 1, __ATOMIC_RELEASE);
  if (!ready) return NULL;
  for (;;) {
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < sleeper_count; i++)
      if (!sleepers[i].done && !(by_signal && sleepers[i].walks >= CONTROL_WALKS))
        walk_once(&sleepers[i]);
    pthread_mutex_unlock(&lock);
    usleep(PERIOD_US);
  }
  return NULL;
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  by_signal = oracle_env("ORACLE_SIGNAL", 0) != 0;
  ours_start(vtbl, by_signal ? CLRSNAP_ALWAYS_SIGNAL : 0);
  pthread_t thread;
  int error = pthread_create(&thread, NULL, walker, NULL);
  ORACLE_CHECK(error == 0, "pthread_create: %s", strerror(error));
  return COR_PRF_ENABLE_STACK_SNAPSHOT | ours_mask(high);
}

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void print_times(const char *how, uint64_t *ns, uint32_t n) {
  if (n == 0) return;
  qsort(ns, n, sizeof *ns, compare);
  printf("  %5u walks %s, for the one who asks: p50 %.1f us, p99 %.1f us\n", n, how,
         (double)ns[n / 2] / 1000.0, (double)ns[n * 99ull / 100] / 1000.0);
}

int oracle_report(void) {
  print_times("by signal", took[0], took_count[0]);
  print_times("asleep", took[1], took_count[1]);
  ORACLE_CHECK(sleeper_count == 11, "%u sleepers of 11", sleeper_count);
  for (uint32_t i = 0; i < sleeper_count; i++)
    ORACLE_CHECK(sleepers[i].done, "%s has not ended", sleepers[i].name);
  // The control: if signals were harmless, the other run would prove nothing.
  if (by_signal)
    ORACLE_CHECK(interrupted_in_all > 100 && took_count[1] == 0,
                 "signals interrupted only %lu waits; %u walks were asleep",
                 (unsigned long)interrupted_in_all, took_count[1]);
  return 0;
}
