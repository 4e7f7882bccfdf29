// SPDX-License-Identifier: MIT
// What a request's walk of a sleeping thread has found, kept until the thread has run. Most threads
// of most programs sleep from one look to the next: then the look is one read of their run count.
//
// Invariants: what is handed out belongs to a run count that the thread has now, so the thread has
// been blocked ever since, and its stack is what it was; every method of it is resolved, and alive,
// being on that stack. A place belongs to the thread whose sleeper has the place in the table. Any
// thread; not for handlers.
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "snapshot/asleep.h"
#include "snapshot/snapshot.h"

enum { KEPT_BYTES = 16 * 1024 };  // of address space for each place; what is not used costs nothing

struct kept {
  uint64_t runs, clr_thread;  // runs 0: nothing is kept
  uint32_t generation, tid;   // of the entry
  struct cs_capture capture;  // but for its `records`, which are here:
  struct cs_record records[];
};
enum { KEPT_RECORDS = (KEPT_BYTES - sizeof(struct kept)) / sizeof(struct cs_record) };

static uint8_t *arena;

static void make_arena(void) {
  size_t size = (size_t)cs_sleeper_places() * KEPT_BYTES;
  void *at = size > 0 ? mmap(NULL, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                      : MAP_FAILED;
  if (at != MAP_FAILED) cs_store_release(&arena, (uint8_t *)at);
}

// NULL: the thread has no place. `make`: there may be no arena yet.
static struct kept *kept_of(const struct cs_sleeper *sleeper, bool make) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  int place = sleeper != NULL ? cs_sleeper_place(sleeper) : -1;
  if (place < 0 || cs_sleeper_counts_by() != CS_RUNS_SCHEDSTAT) return NULL;
  if (make) (void)pthread_once(&once, make_arena);
  uint8_t *at = cs_load_acquire(&arena);
  return at != NULL ? (struct kept *)(void *)(at + (size_t)place * KEPT_BYTES) : NULL;
}

// Everything but where the records are; of the two lists as much as there is, since a look at a
// thousand threads is made of cache lines that were used last a thousand threads ago.
static void copy(struct cs_capture *to, struct cs_record *to_records, const struct cs_capture *from,
                 const struct cs_record *from_records) {
  to->count = from->count;
  to->stop = from->stop;
  to->stop_ip = from->stop_ip;
  to->generation = from->generation;
  to->module_deaths = from->module_deaths;
  to->plain = from->plain;
  to->own = to->held = to->seeded = false;
  to->asleep = true;
  to->asleep_runs = from->asleep_runs;
  to->unwound_lo = from->unwound_lo;
  to->unwound_hi = from->unwound_hi;
  to->in_unwind = from->in_unwind;
  to->no_explicit_frames = from->no_explicit_frames;
  to->leaf = from->leaf;
  to->exception_count = from->exception_count;
  memcpy(to->exceptions, from->exceptions, from->exception_count * sizeof *from->exceptions);
  to->fault_count = from->fault_count;
  memcpy(to->faults, from->faults, from->fault_count * sizeof *from->faults);
  memcpy(to_records, from_records, from->count * sizeof *from_records);
}

static bool is_of(const struct kept *kept, const struct cs_thread *thread, uint64_t runs) {
  return runs != 0 && kept->runs == runs && kept->clr_thread == thread->clr_thread &&
         kept->generation == thread->generation && kept->tid == cs_load_acquire(&thread->tid);
}

bool cs_asleep_recall(struct cs_request *request, const struct cs_thread *thread) {
  struct cs_sleeper *sleeper = cs_load_acquire(&thread->sleeper);
  struct cs_capture *capture = &request->capture;
  const struct kept *kept = kept_of(sleeper, false);
  uint64_t runs;
  if (kept == NULL || (cs_core.opts.flags & CLRSNAP_ALWAYS_SIGNAL)) return false;
  if (cs_load_relaxed(&kept->runs) == 0 || !cs_sleeper_runs(sleeper, &runs)) return false;
  if (!cs_sleeper_try_lock(sleeper)) return false;
  bool same = is_of(kept, thread, runs) && (!kept->capture.plain || capture->plain) &&
              kept->capture.module_deaths == capture->module_deaths &&
              kept->capture.count <= capture->capacity;
  if (same) copy(capture, capture->records, &kept->capture, kept->records);
  if (same) capture->kept = true;
  cs_sleeper_unlock(sleeper);
  return same;
}

static bool is_whole(const struct cs_capture *capture) {
  if (!capture->asleep || capture->kept || capture->stop != CS_STOP_BASE ||
      capture->count > KEPT_RECORDS)
    return false;
  for (uint32_t i = 0; i < capture->count; i++)
    if (cs_record_is_managed(&capture->records[i]) && !capture->records[i].resolved) return false;
  return true;
}

void cs_asleep_keep(const struct cs_request *request, const struct cs_thread *thread) {
  struct cs_sleeper *sleeper = cs_load_acquire(&thread->sleeper);
  const struct cs_capture *capture = &request->capture;
  struct kept *kept = kept_of(sleeper, true);
  if (kept == NULL || !is_whole(capture) || !cs_sleeper_try_lock(sleeper)) return;
  kept->runs = capture->asleep_runs;
  kept->clr_thread = thread->clr_thread;
  kept->generation = thread->generation;
  kept->tid = cs_load_acquire(&thread->tid);
  copy(&kept->capture, kept->records, capture, capture->records);
  cs_sleeper_unlock(sleeper);
}
