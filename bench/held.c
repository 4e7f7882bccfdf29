// SPDX-License-Identifier: MIT
// What a running thread loses when another one walks it: by clrsnap's capture, and by
// SuspendRuntime + DoStackSnapshot + ResumeRuntime, as profilers do it without clrsnap. How
// long a thread stands still is read by the thread itself: it looks at the time-stamp counter all
// the time and notes the gaps; a signal with an empty handler shows how much of that is the
// kernel's. Threads: scenes on the native one, bench_spin and bench_cold on the target.
// Signal-safe: no.
#include "held.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "clrsnap/clrsnap.h"
#include "life/start.h"
#include "prof.h"
#include "unwind/sites.h"

enum {
  SNAPSHOTS = 3000,
  SUSPENSIONS = 400,
  COLD = 250,  // each sweeps the caches first: 25 ms
  MAX_ROWS = 32,
  SWEEP_BYTES = 96 << 20,
  EMPTY_SIGNAL = 44,  // any that nobody uses
  WAIT_NS = 50000000,
};

struct row {
  char what[96];
  const char *key;
  char scene[16];
  double p50, p99, p999, max;
  uint32_t count;
};
static struct row rows[MAX_ROWS];
static uint32_t row_count;
static double values[SNAPSHOTS];

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void add_row(const struct held_scene *scene, const char *key, const char *what,
                    uint32_t count) {
  if (row_count == MAX_ROWS || count == 0) {
    oracle_fail("%s: nothing measured", what);
    return;
  }
  struct row *row = &rows[row_count++];
  qsort(values, count, sizeof *values, compare);
  (void)snprintf(row->what, sizeof row->what, "%s", what);
  (void)snprintf(row->scene, sizeof row->scene, "%.15s", scene->name);
  row->key = key;
  row->p50 = values[count / 2];
  row->p99 = values[(uint64_t)count * 99 / 100];
  row->p999 = values[(uint64_t)count * 999 / 1000];
  row->max = values[count - 1];
  row->count = count;
}

static HRESULT ignore_frame(const struct clrsnap_frame *frame, void *data) {
  (void)frame, (void)data;
  return S_OK;
}

static double walk_once(ThreadID target) {
  struct clrsnap_walk_opts opts = {.size = sizeof opts, .no_functions = 1};
  struct clrsnap_walk_result result = {.size = sizeof(result)};
  HRESULT hr = clrsnap_walk(target, ignore_frame, NULL, &opts, &result);
  if (hr != S_OK) oracle_fail("a walk: %#x %s", (unsigned)hr, clrsnap_last_error());
  return (double)result.held_ns;
}

// ---- A running thread among others ----

static void measure_walks(const struct held_scene *scene) {
  static double answer[SNAPSHOTS];
  for (uint32_t i = 0; i < SNAPSHOTS; i++) {
    uint64_t before = oracle_now_ns();
    values[i] = walk_once(scene->target);
    answer[i] = (double)(oracle_now_ns() - before);
    usleep(200);
  }
  add_row(scene, "in_handler", "clrsnap: the target in its handler", SNAPSHOTS);
  memcpy(values, answer, sizeof values);
  add_row(scene, "answered", "clrsnap: from the question to the answer", SNAPSHOTS);
}

static HRESULT count_frames(FunctionID id, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 size,
                            BYTE context[], void *client) {
  (void)id, (void)ip, (void)info, (void)size, (void)context;
  ++*(uint32_t *)client;
  return S_OK;
}

// Every managed thread stands still from before SuspendRuntime returns until ResumeRuntime does.
static void measure_suspensions(const struct held_scene *scene) {
  uint32_t taken = 0;
  for (uint32_t i = 0; i < SUSPENSIONS; i++) {
    uint32_t frames = 0;
    uint64_t before = oracle_now_ns();
    if (FAILED(oracle_info->lpVtbl->SuspendRuntime(oracle_info))) continue;
    HRESULT hr = oracle_info->lpVtbl->DoStackSnapshot(oracle_info, scene->target, count_frames, 0,
                                                      &frames, NULL, 0);
    oracle_info->lpVtbl->ResumeRuntime(oracle_info);
    if (hr == S_OK && frames != 0) values[taken++] = (double)(oracle_now_ns() - before);
    usleep(500);
  }
  add_row(scene, "suspended", "SuspendRuntime + DoStackSnapshot + ResumeRuntime: all stop", taken);
}

// ---- A thread that watches itself ----

static uint64_t armed, seen_gap;  // armed: a gap is asked for; seen_gap: its length in ticks
static bool spinning, spin_ends;

ORACLE_EXPORT void bench_spin(void);
void bench_spin(void) {
  enum { NOTICEABLE = 500 };  // ticks
  uint64_t last = cs_tsc();
  __atomic_store_n(&spinning, true, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&spin_ends, __ATOMIC_RELAXED)) {
    uint64_t now = cs_tsc();
    if (now - last > NOTICEABLE && __atomic_load_n(&armed, __ATOMIC_ACQUIRE) != 0) {
      __atomic_store_n(&armed, 0, __ATOMIC_RELAXED);
      __atomic_store_n(&seen_gap, now - last, __ATOMIC_RELEASE);
      now = cs_tsc();
    }
    last = now;
  }
  spinning = spin_ends = false;
}

static bool await(const void *word, size_t size) {
  uint64_t end = oracle_now_ns() + WAIT_NS;
  while (oracle_now_ns() < end) {
    if (size == 8 ? __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE) != 0
                  : __atomic_load_n((const bool *)word, __ATOMIC_ACQUIRE))
      return true;
  }
  return false;
}

static void do_nothing(int signo) {
  (void)signo;
}

// The next gap that the target sees, when it is walked or when it only gets a signal.
static bool pause_once(const struct held_scene *scene, bool walk, double *ns) {
  seen_gap = 0;
  __atomic_store_n(&armed, 1, __ATOMIC_RELEASE);
  if (walk)
    (void)walk_once(scene->target);
  else if (syscall(SYS_tgkill, getpid(), scene->tid, EMPTY_SIGNAL) != 0)
    return false;
  if (!await(&seen_gap, 8)) return false;
  *ns = (double)cs_clock_ticks_to_ns(seen_gap);
  return true;
}

static void measure_pauses(const struct held_scene *scene, bool walk) {
  uint32_t taken = 0;
  for (uint32_t i = 0; i < SNAPSHOTS; i++) {
    if (pause_once(scene, walk, &values[taken])) taken++;
    usleep(100);
  }
  add_row(scene, walk ? "pause" : "pause_of_a_signal",
          walk ? "clrsnap: the target stands still" : "a signal whose handler does nothing", taken);
}

static void measure_spinning(const struct held_scene *scene) {
  struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
  if (!await(&spinning, 1) || sigaction(EMPTY_SIGNAL, &action, NULL) != 0) {
    oracle_fail("%s: the thread does not spin", scene->name);
    return;
  }
  for (uint32_t i = 0; i < SNAPSHOTS; i++) {
    values[i] = walk_once(scene->target);
    usleep(100);
  }
  add_row(scene, "in_handler", "clrsnap: the target in its handler", SNAPSHOTS);
  measure_pauses(scene, true);
  measure_pauses(scene, false);
  __atomic_store_n(&spin_ends, true, __ATOMIC_RELEASE);
}

// ---- New stacks with cold caches ----

static bool cold_ready, cold_done;

static void sweep(void) {
  static uint8_t *memory;
  if (memory == NULL) memory = calloc(1, SWEEP_BYTES);
  if (memory == NULL) return;
  for (size_t i = 0; i < SWEEP_BYTES; i += 64) memory[i]++;
}

// The top of a stack that has not been walked before, nor any of its call sites since the cache was
// emptied.
ORACLE_EXPORT void bench_cold(void);
void bench_cold(void) {
  sweep();
  __atomic_store_n(&cold_ready, true, __ATOMIC_RELEASE);
  uint64_t end = oracle_now_ns() + 10u * WAIT_NS;
  while (!__atomic_load_n(&cold_done, __ATOMIC_ACQUIRE) && oracle_now_ns() < end) {
  }
  cold_done = false;
}

static void measure_cold(const struct held_scene *scene) {
  uint32_t taken = 0;
  for (uint32_t i = 0; i < COLD; i++) {
    uint64_t end = oracle_now_ns() + 20u * WAIT_NS;
    while (!__atomic_load_n(&cold_ready, __ATOMIC_ACQUIRE) && oracle_now_ns() < end) {
    }
    cold_ready = false;
    cs_sites_forget(cs_library.world.sites);
    values[taken++] = walk_once(scene->target);
    __atomic_store_n(&cold_done, true, __ATOMIC_RELEASE);
  }
  add_row(scene, "in_handler_cold", "clrsnap: in its handler, nothing cached at all", taken);
}

bool held_run(const struct held_scene *scene) {
  if (strncmp(scene->name, "spin", 4) == 0) {
    measure_spinning(scene);
  } else if (strncmp(scene->name, "cold", 4) == 0) {
    measure_cold(scene);
  } else if (strcmp(scene->name, "idle") == 0 || strcmp(scene->name, "busy") == 0) {
    measure_walks(scene);
    measure_suspensions(scene);
  } else {
    return false;
  }
  return true;
}

// ---- The table ----

static const struct row *find(const char *scene, const char *key) {
  for (uint32_t i = 0; i < row_count; i++)
    if (strcmp(rows[i].scene, scene) == 0 && strcmp(rows[i].key, key) == 0) return &rows[i];
  return NULL;
}

static void print_scene(const char *scene, const char *title) {
  printf("%s (microseconds)\n  %-58s %9s %9s %9s %9s\n", title, "", "p50", "p99", "p99.9", "max");
  for (uint32_t i = 0; i < row_count; i++) {
    const struct row *r = &rows[i];
    if (strcmp(r->scene, scene) != 0) continue;
    printf("  %-58s %9.2f %9.2f %9.2f %9.2f\n", r->what, r->p50 / 1000, r->p99 / 1000,
           r->p999 / 1000, r->max / 1000);
  }
  const struct row *ours = find(scene, "in_handler"), *theirs = find(scene, "suspended");
  if (ours != NULL && theirs != NULL)
    printf("  shorter by: %.0f times at p50, %.0f at p99\n", theirs->p50 / ours->p50,
           theirs->p99 / ours->p99);
}

void held_print(void) {
  print_scene("idle", "A thread that runs, 6 others sleep");
  print_scene("busy", "A thread that runs, 8 others run, too");
  print_scene("spin30", "30 managed methods on the stack");
  print_scene("spin100", "100 managed methods on the stack");
  print_scene("cold30", "30 managed methods, a stack never walked before, caches swept");
  print_scene("cold100", "100 managed methods, a stack never walked before, caches swept");
}

void held_json(FILE *out) {
  fprintf(out, "[");
  for (uint32_t i = 0; i < row_count; i++) {
    const struct row *r = &rows[i];
    fprintf(out,
            "%s{\"scene\":\"%s\",\"what\":\"%s\",\"count\":%u,\"p50_ns\":%.0f,\"p99_ns\":%.0f,"
            "\"p999_ns\":%.0f,\"max_ns\":%.0f}",
            i == 0 ? "" : ",\n ", r->scene, r->key, r->count, r->p50, r->p99, r->p999, r->max);
  }
  fprintf(out, "]");
}

bool held_complete(void) {
  return find("idle", "suspended") != NULL && find("busy", "suspended") != NULL &&
         find("spin100", "pause_of_a_signal") != NULL && find("cold100", "in_handler_cold") != NULL;
}
