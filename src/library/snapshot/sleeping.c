// SPDX-License-Identifier: MIT
// Requests for sleeping threads. A capture is kept until its thread has run: most threads sleep
// from one snapshot to the next, which then costs one read of their run count. Any thread; not for
// handlers.
//
// Invariant: a kept capture is used only while the thread has the same run count. So the thread has
// been blocked since, its stack is unchanged, and all methods on it are alive; and all are
// resolved. The capture's place is that of the thread's sleeper.
#include "snapshot/sleeping.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "life/images.h"
#include "life/library.h"
#include "snapshot/logical.h"
#include "threads/asleep.h"
#include "threads/threads.h"

enum {
  TRIES = 3,
  CALM = 8,  // walks in a row
  PROOF_MS = 100,
  KEPT_BYTES = 16 * 1024,  // of address space per place; unused pages cost nothing
};

// ---- The walk ----

static enum cs_asleep_answer walk_once(struct cs_asleep *a, struct cs_request *request,
                                       struct cs_thread *thread, uint64_t runs) {
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  enum cs_asleep_answer answer = cs_asleep_begin(a, thread, runs);
  if (answer == CS_ASLEEP_YES) {
    request->capture.leaf = a->regs;
    cs_capture_walk(&request->capture, &a->world, &a->regs, &a->stack, a->clr_thread,
                    cs_threads.max_depth);
    request->capture.asleep_runs = a->runs;
    request->capture.kept = false;
    if (!cs_asleep_end(a)) answer = CS_ASLEEP_MOVED;
  }
  cs_epoch_leave(&cs_signal.epoch, parity);
  return answer;
}

// A thread that nearly every check finds asleep is worth waiting for; with one that often runs,
// each check would cost the caller the wait.
static bool is_calm(const struct cs_thread *thread) {
  const struct cs_sleeper *sleeper = cs_load_acquire(&thread->sleeper);
  return sleeper != NULL && cs_load_relaxed(&sleeper->calm) >= CALM;
}

static void note_calm(const struct cs_thread *thread, enum cs_asleep_answer answer) {
  struct cs_sleeper *sleeper = cs_load_acquire(&thread->sleeper);
  if (sleeper == NULL) return;
  if (answer == CS_ASLEEP_YES && cs_load_relaxed(&sleeper->calm) < CALM)
    cs_add_relaxed(&sleeper->calm, 1);
  else if (answer == CS_ASLEEP_RUNNING || answer == CS_ASLEEP_RESTLESS)
    cs_store_relaxed(&sleeper->calm, 0);
}

bool cs_asleep_walk(struct cs_request *request, struct cs_thread *thread, uint64_t runs) {
  static struct cs_asleep asleep[CS_REQUEST_SLOTS];  // one per slot, used with it
  struct cs_asleep *a = &asleep[request - cs_requests];
  int naps = 0;
  if (cs_library.opts.flags & CLRSNAP_ALWAYS_SIGNAL) return false;
  for (int i = 0; i < TRIES; i++) {
    enum cs_asleep_answer answer = walk_once(a, request, thread, i == 0 ? runs : 0);
    for (; answer == CS_ASLEEP_RUNNING && naps < CS_ASLEEP_PATIENCE && is_calm(thread); naps++) {
      (void)usleep(CS_ASLEEP_NAP_US);
      answer = walk_once(a, request, thread, 0);
    }
    if (answer == CS_ASLEEP_RUNNING) cs_asleep_give_up(thread);
    note_calm(thread, answer);
    if (answer == CS_ASLEEP_MOVED) continue;
    if (answer != CS_ASLEEP_YES) return false;
    if (request->capture.stop == CS_STOP_BASE) return true;
    // A library has been loaded since: its tables are made, outside of the epoch.
    if (request->capture.stop != CS_STOP_UNKNOWN_CODE || !cs_library_refresh_images()) return false;
  }
  return false;
}

// ---- What is kept ----

struct kept {
  uint64_t runs, clr_thread;  // runs 0: nothing is kept
  uint32_t generation, tid;   // of the entry
  uint64_t cpu_ns;            // its CPU clock since then; 0: not read
  uint64_t proven_tsc;        // when cpu_ns was read, and the run count after it
  uint32_t reported_count;    // 0: there is only the capture
  struct cs_reported reported[CS_MOST_REPORTED];
  struct cs_capture capture;  // without its `records`, which are here:
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

// Returns NULL if the thread has no place. `make`: makes the arena if there is none yet.
static struct kept *kept_of(const struct cs_sleeper *sleeper, bool make) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  int place = sleeper != NULL ? cs_sleeper_place(sleeper) : -1;
  if (place < 0 || cs_sleeper_counts_by() != CS_RUNS_SCHEDSTAT) return NULL;
  if (make) (void)pthread_once(&once, make_arena);
  uint8_t *at = cs_load_acquire(&arena);
  return at != NULL ? (struct kept *)(void *)(at + (size_t)place * KEPT_BYTES) : NULL;
}

// Copies a capture into other memory, and of the two lists only the entries in use: with a thousand
// threads, each cache line is a miss.
static void copy(struct cs_capture *to, struct cs_record *to_records, const struct cs_capture *from,
                 const struct cs_record *from_records) {
  to->count = from->count;
  to->stop = from->stop;
  to->stop_ip = from->stop_ip;
  to->generation = from->generation;
  to->module_deaths = from->module_deaths;
  to->plain = from->plain;
  to->self = to->held = to->seeded = false;
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

static bool is_of(const struct kept *kept, const struct cs_thread *thread) {
  return kept->runs != 0 && kept->clr_thread == thread->clr_thread &&
         kept->generation == thread->generation && kept->tid == cs_load_acquire(&thread->tid);
}

// Returns whether the thread has slept since the capture. Its run count shows that, and takes 0.6
// us to read. In a round, its CPU clock shows it in 0.2 us, but only for PROOF_MS: where a host
// takes processors from a virtual machine, a thread may run without using CPU time. Sets *runs to
// the count if it was read.
static bool has_slept(struct cs_sleeper *sleeper, struct kept *kept, uint32_t flags,
                      uint64_t *runs) {
  uint64_t tsc = cs_tsc();
  bool by_clock = (flags & CS_REQUEST_ROUND) != 0;
  uint64_t cpu_ns = by_clock ? cs_cpu_ns_of(kept->tid) : 0;
  if (cpu_ns != 0 && cpu_ns == kept->cpu_ns &&
      cs_clock_ticks_to_ns(tsc - kept->proven_tsc) < PROOF_MS * 1000000ull)
    return true;
  if (!cs_sleeper_runs(sleeper, runs) || *runs != kept->runs) return false;
  kept->cpu_ns = cpu_ns;
  kept->proven_tsc = tsc;
  return true;
}

// Copies only what a round over many threads needs: a few cache lines of each.
static void copy_reported(struct cs_request *request, const struct kept *kept) {
  memcpy(request->reported, kept->reported, kept->reported_count * sizeof *kept->reported);
  request->reported_count = kept->reported_count;
  request->capture.count = 0;
  request->capture.stop = CS_STOP_BASE;
}

bool cs_asleep_recall(struct cs_request *request, const struct cs_thread *thread, uint32_t flags,
                      uint64_t *runs) {
  struct cs_sleeper *sleeper = cs_load_acquire(&thread->sleeper);
  struct cs_capture *capture = &request->capture;
  struct kept *kept = kept_of(sleeper, false);
  if (kept == NULL || (cs_library.opts.flags & CLRSNAP_ALWAYS_SIGNAL)) return false;
  if (cs_load_relaxed(&kept->runs) == 0 || !cs_sleeper_try_lock(sleeper)) return false;
  bool same = is_of(kept, thread) && has_slept(sleeper, kept, flags, runs) &&
              (!kept->capture.plain || capture->plain) &&
              kept->capture.module_deaths == capture->module_deaths &&
              kept->capture.count <= capture->capacity;
  if (same && (flags & CS_REQUEST_LOGICAL) != 0 && kept->reported_count > 0)
    copy_reported(request, kept);
  else if (same)
    copy(capture, capture->records, &kept->capture, kept->records);
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

// Keeps the frames that DoStackSnapshot reports of the capture, if each is known and there is room.
static void note_reported(struct kept *kept, const struct cs_capture *capture) {
  struct cs_logical view;
  struct cs_logical_frame frame;
  uint32_t count = 0;
  cs_logical_begin(&view, capture);
  while (cs_logical_next(&view, &frame)) {
    if (count < CS_MOST_REPORTED)
      kept->reported[count] = (struct cs_reported){frame.function, cs_record_call_ip(frame.record)};
    count++;
  }
  kept->reported_count = view.unresolved == NULL && count <= CS_MOST_REPORTED ? count : 0;
}

void cs_asleep_keep(const struct cs_request *request, const struct cs_thread *thread) {
  struct cs_sleeper *sleeper = cs_load_acquire(&thread->sleeper);
  const struct cs_capture *capture = &request->capture;
  struct kept *kept = kept_of(sleeper, true);
  if (kept == NULL || !is_whole(capture) || !cs_sleeper_try_lock(sleeper)) return;
  kept->runs = capture->asleep_runs;
  kept->cpu_ns = 0;
  kept->clr_thread = thread->clr_thread;
  kept->generation = thread->generation;
  kept->tid = cs_load_acquire(&thread->tid);
  copy(&kept->capture, kept->records, capture, capture->records);
  note_reported(kept, capture);
  cs_sleeper_unlock(sleeper);
}
