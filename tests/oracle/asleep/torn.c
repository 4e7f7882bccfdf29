// SPDX-License-Identifier: MIT
// Sleepers that wake at any moment: two native threads walk threads that sleep for microseconds and
// run in between (tests/apps/Proofs/Torn.cs), while others are created and end. A walk of a sleeper
// must be complete, and it must show the methods that the thread's own list had at one moment
// between the walk's begin and its end. Invariant of the list: a method is in it from its first
// instructions to its last ones; so a walk may have one method more at its leaf. Threads: a shadow
// is written by its own thread only, and lives as long as the process.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ours.h"

const char *const oracle_name = "torn sleepers";

enum { SHADOWS = 4096, FRAMES = 1024, WALKERS = 2, PATH = 64, HISTORY = 4096 };
struct shadow {  // as in Torn.cs
  int64_t sequence;
  int32_t depth;
  uint32_t random;
  uint8_t path[PATH];
  uint64_t hashes[PATH];
  uint64_t history[HISTORY];  // [sequence % HISTORY]: a hash of the list after that change
};
struct target {
  struct shadow shadow;
  ThreadID id;
  uint32_t alive;
};
static struct target targets[SHADOWS];
static uint32_t target_count, done;
static uint64_t wanted;

static struct counts {
  uint64_t walks, asleep, compared, changed, one_more, ended, frames, by_signal, overwritten;
  uint64_t put, found;  // walks with a fault put in: a method is missing
} counts;
static struct {
  FunctionID id;
  int method;  // of F0 ... F7; -1: another
} names[256];
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

// ---- On the targets ----
// A new thread waits until the walkers have done their part for those before it. Where other
// programs take their time, there would be more threads than shadows.
static void keep_pace(uint32_t i) {
  while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) == 0 &&
         i > 64 + __atomic_load_n(&counts.compared, __ATOMIC_RELAXED) * (SHADOWS / 2) / wanted)
    usleep(1000);
}

ORACLE_EXPORT struct shadow *oracle_torn_begin(void);
struct shadow *oracle_torn_begin(void) {
  uint32_t i = __atomic_fetch_add(&target_count, 1, __ATOMIC_RELAXED);
  struct target *t = &targets[i % SHADOWS];
  if (i >= SHADOWS) {
    oracle_fail("more than %d threads", SHADOWS);
    abort();
  }
  keep_pace(i);
  t->shadow.random = i * 2654435761u + 1;
  oracle_info->lpVtbl->GetCurrentThreadID(oracle_info, &t->id);
  __atomic_store_n(&t->alive, 1, __ATOMIC_RELEASE);
  return &t->shadow;
}
ORACLE_EXPORT void oracle_torn_end(struct shadow *shadow);
void oracle_torn_end(struct shadow *shadow) {
  struct target *t = (struct target *)(void *)shadow;
  __atomic_store_n(&t->alive, 0, __ATOMIC_RELEASE);
}
ORACLE_EXPORT void oracle_torn_call(void (*back)(void *), void *argument);
void oracle_torn_call(void (*back)(void *), void *argument) {
  back(argument);
  __asm__ volatile("");  // no tail call: this frame stays
}
ORACLE_EXPORT int oracle_scene_done(void);
int oracle_scene_done(void) {
  return (int)__atomic_load_n(&done, __ATOMIC_ACQUIRE);
}

// ---- The walkers ----
struct walk {
  struct clrsnap_frame frames[FRAMES];
  uint32_t count;
  struct clrsnap_walk_result result;
};

static HRESULT collect(const struct clrsnap_frame *frame, void *data) {
  struct walk *walk = data;
  if (walk->count < FRAMES) walk->frames[walk->count++] = *frame;
  return S_OK;
}

static bool is_managed(const struct clrsnap_frame *f) {
  return f->kind == CLRSNAP_FRAME_MANAGED_JIT || f->kind == CLRSNAP_FRAME_MANAGED_R2R;
}

static int method_of(FunctionID id) {
  static const char prefix[] = "Proofs.Torn.F";
  size_t slot = (id >> 3) % (sizeof names / sizeof names[0]);
  pthread_mutex_lock(&names_lock);
  if (names[slot].id != id) {
    const char *name = oracle_function_name(id);
    bool ours = strncmp(name, prefix, sizeof prefix - 1) == 0;
    names[slot].id = id;
    names[slot].method = ours ? name[sizeof prefix - 1] - '0' : -1;
  }
  int method = names[slot].method;
  pthread_mutex_unlock(&names_lock);
  return method;
}

static void print_both(const struct walk *walk, const struct shadow *shadow) {
  printf("  the thread's list, leaf first:");
  for (int32_t i = shadow->depth; i-- > 0;) printf(" F%d", shadow->path[i]);
  printf("\n");
  for (uint32_t i = 0; i < walk->count && i < 80; i++) {
    const struct clrsnap_frame *f = &walk->frames[i];
    printf("    %2u ip %#14lx sp %#14lx %s%s\n", i, (unsigned long)f->ip, (unsigned long)f->sp,
           is_managed(f) ? oracle_function_name(f->function) : "native",
           f->flags & CLRSNAP_FRAME_BRIDGED ? " (bridged)" : "");
  }
}

static uint32_t methods_of(const struct walk *walk, uint8_t *out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < walk->count; i++) {
    int method = is_managed(&walk->frames[i]) ? method_of(walk->frames[i].function) : -1;
    if (method >= 0 && n < FRAMES) out[n++] = (uint8_t)method;
  }
  return n;
}

static uint64_t hash_of(const uint8_t *methods, uint32_t n) {
  uint64_t hash = 0;
  while (n > 0) hash = hash * 1000003 + methods[--n] + 1u;
  return hash;
}

// Whether the list had this content at one moment from change `from` to change `to`.
static bool was_so(const struct shadow *shadow, uint64_t hash, int64_t from, int64_t to) {
  for (int64_t i = from; i <= to; i++)
    if (__atomic_load_n(&shadow->history[i % HISTORY], __ATOMIC_RELAXED) == hash) return true;
  return false;
}

static void compare(const struct walk *walk, const struct shadow *shadow, int64_t from,
                    int64_t to) {
  uint8_t methods[FRAMES];
  uint32_t n = methods_of(walk, methods);
  if (to - from > HISTORY / 2) {  // overwritten, or about to be
    __atomic_fetch_add(&counts.overwritten, 1, __ATOMIC_RELAXED);
    return;
  }
  bool equal = was_so(shadow, hash_of(methods, n), from, to);
  bool one_more = !equal && n > 0 && was_so(shadow, hash_of(methods + 1, n - 1), from, to);
  __atomic_fetch_add(&counts.compared, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&counts.frames, walk->count, __ATOMIC_RELAXED);
  __atomic_fetch_add(&counts.changed, from != to, __ATOMIC_RELAXED);
  __atomic_fetch_add(&counts.one_more, one_more, __ATOMIC_RELAXED);
  if (equal && from == to && n > 3) {  // a method that is missing must be found
    memmove(&methods[1], &methods[2], n - 2);
    __atomic_fetch_add(&counts.put, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts.found,
                       !was_so(shadow, hash_of(methods, n - 1), from, to) &&
                           !was_so(shadow, hash_of(methods + 1, n - 2), from, to),
                       __ATOMIC_RELAXED);
  }
  if (equal || one_more) return;
  oracle_fail("a walk asleep shows what the thread's own list was not in changes %ld to %ld",
              (long)from, (long)to);
  print_both(walk, shadow);
}

// `shadow` is NULL if no list is kept for the thread.
static void judge(const struct walk *walk, HRESULT hr, const struct shadow *shadow, int64_t from,
                  int64_t to) {
  __atomic_fetch_add(&counts.walks, 1, __ATOMIC_RELAXED);
  if (hr == CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD) {
    __atomic_fetch_add(&counts.ended, 1, __ATOMIC_RELAXED);
    return;
  }
  ORACLE_CHECK(hr == S_OK, "clrsnap_walk: %#x %s", (unsigned)hr, clrsnap_last_error());
  if (hr != S_OK || walk->count == 0) return;  // none: no managed thread any more
  if (!(walk->result.flags & CLRSNAP_WALK_ASLEEP)) {
    __atomic_fetch_add(&counts.by_signal, 1, __ATOMIC_RELAXED);
    return;
  }
  __atomic_fetch_add(&counts.asleep, 1, __ATOMIC_RELAXED);
  ORACLE_CHECK(walk->result.stop == 1, "a walk asleep ended early: %s",
               clrsnap_stop_text(walk->result.stop));
  if (shadow != NULL) compare(walk, shadow, from, to);
}

static void walk_target(struct walk *walk, const struct target *t) {
  int64_t from = __atomic_load_n(&t->shadow.sequence, __ATOMIC_SEQ_CST);
  walk->count = 0;
  walk->result = (struct clrsnap_walk_result){.size = sizeof walk->result};
  HRESULT hr = clrsnap_walk(t->id, collect, walk, NULL, &walk->result);
  int64_t to = __atomic_load_n(&t->shadow.sequence, __ATOMIC_SEQ_CST);
  bool alive = __atomic_load_n(&t->alive, __ATOMIC_SEQ_CST) != 0;  // else the id may be another's
  judge(walk, hr, alive ? &t->shadow : NULL, from, to);
}

// A thread for which no list is kept; it may be ending.
static void walk_any(struct walk *walk, unsigned *seed) {
  struct oracle_thread threads[64];
  uint32_t n = oracle_threads(threads, 64);
  if (n == 0) return;
  walk->count = 0;
  walk->result = (struct clrsnap_walk_result){.size = sizeof walk->result};
  HRESULT hr =
      clrsnap_walk(threads[(uint32_t)rand_r(seed) % n].id, collect, walk, NULL, &walk->result);
  judge(walk, hr, NULL, 0, 0);
}

static void *walker(void *seed_of) {
  struct walk *walk = calloc(1, sizeof *walk);
  unsigned seed = *(const unsigned *)seed_of;
  uint64_t give_up = oracle_now_ns() + 60000000000u;
  if (walk == NULL || !ours_ready()) abort();
  while (__atomic_load_n(&counts.compared, __ATOMIC_RELAXED) < wanted &&
         oracle_now_ns() < give_up) {
    uint32_t n = __atomic_load_n(&target_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = n; i-- > 0 && n - i < 64;)
      if (__atomic_load_n(&targets[i].alive, __ATOMIC_ACQUIRE)) walk_target(walk, &targets[i]);
    for (uint32_t i = 0; i < 2 && i < n; i++)
      if (__atomic_load_n(&targets[i].alive, __ATOMIC_ACQUIRE)) walk_target(walk, &targets[i]);
    walk_any(walk, &seed);
  }
  __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
  free(walk);
  return NULL;
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  static unsigned seeds[WALKERS];
  wanted = (uint64_t)oracle_env("ORACLE_WALKS", 20000);
  ours_start(vtbl, 0);
  for (unsigned i = 0; i < WALKERS; i++) {
    pthread_t thread;
    seeds[i] = 77 + i;
    int error = pthread_create(&thread, NULL, walker, &seeds[i]);
    ORACLE_CHECK(error == 0, "pthread_create: %s", strerror(error));
  }
  return COR_PRF_ENABLE_STACK_SNAPSHOT | ours_mask(high);
}

int oracle_report(void) {
  printf("%lu walks, %lu asleep, %lu by signal, %lu of threads that had ended; %u threads\n",
         (unsigned long)counts.walks, (unsigned long)counts.asleep, (unsigned long)counts.by_signal,
         (unsigned long)counts.ended, target_count);
  printf(
      "  %lu walks asleep compared, in %lu of them the thread ran meanwhile, %lu with one method "
      "more, %.1f frames each\n",
      (unsigned long)counts.compared, (unsigned long)counts.changed, (unsigned long)counts.one_more,
      counts.compared == 0 ? 0.0 : (double)counts.frames / (double)counts.compared);
  oracle_excuse("with one method more at the leaf", counts.one_more, counts.compared, 10000, 20);
  oracle_excuse("of which the list has changed too often meanwhile", counts.overwritten,
                counts.compared, 10000, 20);
  oracle_excuse("of threads that had ended", counts.ended, counts.walks, 10000, 50);
  oracle_faults("a method missing", counts.put, counts.found);
  // On a loaded machine most sleepers wake before they are walked, and the time is up sooner.
  ORACLE_CHECK(counts.compared >= wanted / 10, "at least %lu comparisons were wanted",
               (unsigned long)wanted / 10);
  ORACLE_CHECK(target_count > 20, "only %u threads", target_count);
  return 0;
}
