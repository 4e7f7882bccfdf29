// SPDX-License-Identifier: MIT
// The registry of threads. Not for handlers.
//
// A live thread is identified by its tid, never by an address: the ThreadID, the thread pointer and
// the stack of an ended thread are soon reused, and the runtime forgets a thread that it has not
// made only some time after its end.
//
// Entries lie in an arena that is never freed, so that a late signal that names one reads mapped
// memory. Invariants: an entry's `tid` is set last when it is filled in and cleared first when the
// thread ends. If the tid is still set after its entry was pinned, the thread does not end before
// it is unpinned (both sides use sequentially consistent accesses). ids[] and tids[] are dense
// copies of the ThreadIDs and tids: a look-up among 1,000 threads reads at most 8 or 4 KiB without
// a lock, or one word if the hint is right. A tid in tids[] outlives its thread; the entry's own
// `tid` decides.
#include "threads/registry.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "threads/altstack.h"
#include "threads/own_tid.h"
#include "threads/sleeper.h"
#include "threads/stackmap.h"

enum {
  MAX_THREADS = 65536,
  // ThreadDestroyed waits for walks that have time-outs of their own; this bounds the wait for a
  // hold that is never released.
  MAX_DESTROY_WAIT_S = 60,
  HINT_BITS = 12,
  HINTS = 1 << HINT_BITS,
};

static struct {
  pthread_mutex_t lock;  // of writers
  struct cs_thread *threads;
  uint64_t ids[MAX_THREADS];   // 0: free
  uint32_t tids[MAX_THREADS];  // the last one of each entry
  uint32_t used;               // entries [0, used) have been in use
  uint64_t destroyed[CS_REGISTRY_REMEMBERED];
  uint32_t destroyed_next;
  uint32_t hints[HINTS];      // by hash of the ThreadID: the index where it was last found
  uint32_t tid_hints[HINTS];  // the same by tid
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define NATIVE_ID(tid) (1ull << 63 | (tid))  // ids[] of a native thread; no ThreadID looks like it
#define ASIDE_ID NATIVE_ID(0)  // of a thread that has ended without a callback, and is still pinned

bool cs_registry_init(struct cs_error *err) {
  size_t size = sizeof(struct cs_thread) * MAX_THREADS;
  pthread_mutex_lock(&registry.lock);
  if (registry.threads == NULL) {
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    if (at != MAP_FAILED) {
      cs_signal.threads_lo = (uint64_t)(uintptr_t)at;
      cs_signal.threads_hi = cs_signal.threads_lo + size;
      registry.threads = at;
    }
  }
  bool ok = registry.threads != NULL;
  pthread_mutex_unlock(&registry.lock);
  return ok ||
         cs_error_set(err,
                      "no address space for the table of threads (%zu MiB): raise ulimit -v, or -d",
                      size >> 20);
}

static struct cs_thread *find_id(uint64_t id) {
  uint32_t *hint = &registry.hints[cs_hash_word(id, HINT_BITS)];
  uint32_t used = cs_load_acquire(&registry.used), at = cs_load_relaxed(hint);
  if (at < used && cs_load_acquire(&registry.ids[at]) == id) return &registry.threads[at];
  for (uint32_t i = 0; i < used; i++) {
    if (cs_load_acquire(&registry.ids[i]) != id) continue;
    cs_store_relaxed(hint, i);
    return &registry.threads[i];
  }
  return NULL;
}

struct cs_thread *cs_registry_find(uint64_t clr_thread) {
  return clr_thread != 0 && clr_thread < NATIVE_ID(0) ? find_id(clr_thread) : NULL;
}

struct cs_thread *cs_registry_find_tid(uint32_t tid) {
  uint32_t *hint = &registry.tid_hints[tid % HINTS];
  uint32_t used = cs_load_acquire(&registry.used), at = cs_load_relaxed(hint);
  if (tid != 0 && at < used && cs_load_relaxed(&registry.tids[at]) == tid &&
      cs_load_acquire(&registry.threads[at].tid) == tid)
    return &registry.threads[at];
  for (uint32_t i = 0; i < used && tid != 0; i++) {
    if (cs_load_relaxed(&registry.tids[i]) != tid) continue;
    struct cs_thread *thread = &registry.threads[i];
    if (cs_load_acquire(&thread->tid) != tid) continue;
    cs_store_relaxed(hint, i);
    return thread;
  }
  return NULL;
}

struct cs_thread *cs_registry_self(void) {
  return cs_registry_find_tid(cs_own_tid());
}

// The cache is thread-local, so a new thread begins with an empty one.
struct cs_thread *cs_registry_self_cached(void) {
  static __thread struct cs_thread *self;
  static __thread uint32_t generation, tid;
  if (self != NULL && cs_load_acquire(&self->tid) == tid && self->generation == generation)
    return self;
  self = cs_registry_self();
  if (self == NULL) return NULL;
  tid = cs_load_acquire(&self->tid);
  generation = self->generation;
  return self;
}

// The CLR is not asked: the call could wait for a lock that the thread to be held owns. Every
// thread that runs managed code has come through ThreadAssignedToOSThread.
bool cs_caller_is_managed(void) {
  const struct cs_thread *thread = cs_registry_self();
  return thread != NULL && thread->clr_thread != 0;
}

uint32_t cs_registry_count(void) {
  return cs_load_acquire(&registry.used);
}
struct cs_thread *cs_registry_at(uint32_t i) {
  return &registry.threads[i];
}

// An entry that was set aside is free as soon as it is not pinned.
static bool is_free(uint32_t i) {
  uint64_t id = cs_load_acquire(&registry.ids[i]);
  struct cs_thread *thread = &registry.threads[i];
  if (id != ASIDE_ID || __atomic_load_n(&thread->walkers, __ATOMIC_SEQ_CST) != 0) return id == 0;
  cs_sleeper_forget(thread);
  cs_altstack_leave(&thread->altstack);
  return true;
}

// Returns the entry of `id`, or a new one, not yet visible to walkers; or NULL if the registry is
// full or not initialised.
static struct cs_thread *claim(uint64_t id, uint64_t clr_thread) {
  if (registry.threads == NULL) return NULL;
  struct cs_thread *thread = find_id(id);
  if (thread != NULL) return thread;
  uint32_t i = 0;
  while (i < registry.used && !is_free(i)) i++;
  if (i == MAX_THREADS) {
    cs_log_important("more than %d threads; further ones are not walked", MAX_THREADS);
    return NULL;
  }
  thread = &registry.threads[i];
  thread->generation++;
  thread->clr_thread = clr_thread;
  thread->stack = (struct cs_stack){0};
  thread->sampling = 0;
  cs_store_relaxed(&thread->ending, 0u);
  cs_store_relaxed(&thread->ahead, 0u);
  cs_store_relaxed(&thread->blocks, 0u);
  cs_store_relaxed(&thread->room, (uint32_t)CS_ROOM_UNKNOWN);
  cs_store_relaxed(&thread->asked, 0u);
  cs_store_release(&thread->reported.times, 0u);
  cs_store_relaxed(&thread->thread_pointer, 0);
  thread->index = i;
  thread->agent = NULL;
  cs_store_relaxed(&thread->label, (struct cs_label_slot *)NULL);
  thread->cooldown = (struct cs_cooldown){0};
  cs_store_release(&registry.ids[i], id);
  if (i == registry.used) {
    cs_store_release(&registry.used, i + 1);
    cs_store_release(&cs_signal.threads_used, i + 1);
  }
  return thread;
}

// Does not wait for walkers: the runtime may be waiting for the calling thread in order to stop,
// and a walker of the other thread may be waiting for that stop (install_altstacks.c).
static void end_unannounced(struct cs_thread *thread) {
  cs_registry_ended(thread);
  if (__atomic_load_n(&thread->walkers, __ATOMIC_SEQ_CST) == 0) {
    cs_registry_destroyed_entry(thread);
    return;
  }
  pthread_mutex_lock(&registry.lock);
  cs_store_release(&registry.ids[thread->index], ASIDE_ID);
  pthread_mutex_unlock(&registry.lock);
}

// The calling thread is the runtime's `clr_thread`, so an entry with only this tid, or only this
// id, is of a thread that has ended.
static void end_former(uint64_t clr_thread, uint32_t tid) {
  uint32_t used = cs_load_acquire(&registry.used);
  for (uint32_t i = 0; i < used; i++) {
    struct cs_thread *thread = &registry.threads[i];
    uint32_t entry_tid = cs_load_acquire(&thread->tid);
    if (entry_tid == 0 || thread->clr_thread == 0) continue;
    if (entry_tid == tid && thread->clr_thread != clr_thread) cs_registry_ended(thread);
    if (entry_tid != tid && thread->clr_thread == clr_thread) end_unannounced(thread);
  }
}

static struct cs_thread *add(uint64_t clr_thread, uint32_t tid, bool self) {
  struct cs_stack stack = {0};
  struct cs_altstack alt = {0};
  if (self) (void)cs_stack_of_self(&stack);
  if (self && clr_thread != 0) end_former(clr_thread, tid);
  if (tid != 0 && clr_thread != 0) cs_altstack_map(&alt, tid);
  pthread_mutex_lock(&registry.lock);
  struct cs_thread *thread = claim(clr_thread != 0 ? clr_thread : NATIVE_ID(tid), clr_thread);
  if (thread != NULL && tid != 0 && thread->tid == 0) {
    thread->altstack = alt;
    alt.sp = 0;
    if (self) {
      cs_altstack_enter(&thread->altstack);
      stack.alt_lo = thread->altstack.sp;
      stack.alt_hi = stack.alt_lo + thread->altstack.size;
    }
    thread->stack = stack;
    cs_store_relaxed(&thread->thread_pointer, self ? cs_thread_pointer() : 0);
    cs_store_relaxed(&registry.tids[thread->index], tid);
    __atomic_store_n(&thread->tid, tid, __ATOMIC_SEQ_CST);
  } else if (thread != NULL && self && thread->tid == tid && !cs_thread_may_be_signalled(thread)) {
    cs_altstack_enter(&thread->altstack);  // EnumThreads was faster to report it
  }
  pthread_mutex_unlock(&registry.lock);
  cs_altstack_free(&alt);  // only if the entry had one already
  return thread;
}

struct cs_thread *cs_registry_created(uint64_t clr_thread) {
  return add(clr_thread, 0, false);
}
struct cs_thread *cs_registry_assigned(uint64_t clr_thread, uint32_t tid) {
  return add(clr_thread, tid, true);
}
struct cs_thread *cs_registry_attached(uint64_t clr_thread, uint32_t tid) {
  return add(clr_thread, tid, false);
}

bool cs_thread_pin(struct cs_thread *thread, uint64_t clr_thread) {
  cs_add_seq(&thread->walkers, 1);
  if (__atomic_load_n(&thread->tid, __ATOMIC_SEQ_CST) != 0 && thread->clr_thread == clr_thread)
    return true;
  cs_thread_unpin(thread);
  return false;
}

bool cs_thread_keep(struct cs_thread *thread, uint64_t clr_thread) {
  cs_add_seq(&thread->walkers, 1);
  if (__atomic_load_n(&thread->ending, __ATOMIC_SEQ_CST) == 0 && thread->clr_thread == clr_thread)
    return true;
  cs_thread_unpin(thread);
  return false;
}

void cs_thread_unpin(struct cs_thread *thread) {
  if (cs_add_seq(&thread->walkers, (uint32_t)-1) == (CS_THREAD_AWAITED | 1))
    (void)syscall(SYS_futex, &thread->walkers, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

// The dying thread itself waits here. The signal of a walk under way interrupts the wait and is
// served; then the wait goes on.
static void wait_for_walkers(struct cs_thread *thread) {
  uint64_t give_up = cs_clock_now_ns() + MAX_DESTROY_WAIT_S * 1000000000ull;
  uint32_t walkers;
  while ((walkers = __atomic_fetch_or(&thread->walkers, CS_THREAD_AWAITED, __ATOMIC_SEQ_CST) |
                    CS_THREAD_AWAITED) != CS_THREAD_AWAITED) {
    struct timespec second = {.tv_sec = 1};
    (void)syscall(SYS_futex, &thread->walkers, FUTEX_WAIT_PRIVATE, walkers, &second, NULL, 0);
    if (cs_clock_now_ns() < give_up) continue;
    cs_log_important(
        "clrsnap: a thread ends although a walk of it was not over after %d s: was a hold not "
        "released?",
        MAX_DESTROY_WAIT_S);
    break;
  }
  __atomic_fetch_and(&thread->walkers, ~CS_THREAD_AWAITED, __ATOMIC_SEQ_CST);
}

void cs_registry_ended(struct cs_thread *thread) {
  cs_store_release(&thread->sampling, 0);
  __atomic_store_n(&thread->tid, 0, __ATOMIC_SEQ_CST);
}

// After this, the thread is no longer walked.
static void close_entry(struct cs_thread *thread) {
  __atomic_store_n(&thread->ending, 1u, __ATOMIC_SEQ_CST);
  cs_registry_ended(thread);
  wait_for_walkers(thread);
  cs_sleeper_forget(thread);
}

static void free_entry(struct cs_thread *thread) {
  pthread_mutex_lock(&registry.lock);
  if (thread->clr_thread != 0)
    cs_store_relaxed(&registry.destroyed[registry.destroyed_next++ % CS_REGISTRY_REMEMBERED],
                     thread->clr_thread);
  thread->generation++;
  thread->clr_thread = 0;
  cs_store_relaxed(&thread->thread_pointer, 0);
  cs_store_release(&registry.ids[thread->index], 0);
  pthread_mutex_unlock(&registry.lock);
}

void cs_registry_destroyed_entry(struct cs_thread *thread) {
  close_entry(thread);
  cs_altstack_leave(&thread->altstack);
  free_entry(thread);
}

void cs_registry_destroyed(uint64_t clr_thread) {
  struct cs_thread *thread = cs_registry_find(clr_thread);
  if (thread != NULL) cs_registry_destroyed_entry(thread);
}

bool cs_registry_was_destroyed(uint64_t clr_thread) {
  for (uint32_t i = 0; i < CS_REGISTRY_REMEMBERED && clr_thread != 0; i++)
    if (cs_load_relaxed(&registry.destroyed[i]) == clr_thread) return true;
  return false;
}

uint32_t cs_registry_deaths(void) {
  return cs_load_acquire(&registry.destroyed_next);
}
