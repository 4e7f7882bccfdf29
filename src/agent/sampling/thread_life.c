// SPDX-License-Identifier: MIT
// When a thread's sampling begins and ends. Invariants: a thread is in the list before it is marked
// as sampled and before its engine starts, and is removed after both have ended. An entry whose OS
// thread has ended is removed before its tid can be mistaken for that of its next owner.
// Signal-safe: no.
#include "sampling/thread_life.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own_thread.h"
#include "base/utf16.h"
#include "engines/ask.h"
#include "engines/engines.h"
#include "life/small_stacks.h"
#include "state/label_slots.h"
#include "state/thread_name.h"
#include "threads/altstack.h"
#include "threads/native_stack.h"

static struct cs_wire_small_stacks small_stacks;  // with the lock held
static bool stopped;  // with the lock held: no thread is added or sampled any more
static bool delayed;  // atomic: an engine was not started because of new libraries

// ---- With the lock held ----

// Returns the struct of a registry entry, a new one if it has none.
static struct cs_agent_thread *of_entry(struct cs_thread *entry) {
  struct cs_agent_thread *t = entry->agent;
  return t != NULL || stopped ? t : cs_threads_add(entry);
}

static bool may_have_engine(const struct cs_agent_thread *t) {
  return cs_wants(CS_WIRE_MODE_CPU) && cs_load_acquire(&cs_agent.state) == CS_AGENT_RECORDING &&
         cs_thread_may_be_signalled(t->thread) && cs_thread_room(t->thread) == CS_ROOM_ENOUGH;
}

// Waits while there are libraries that have not been examined: the thread may belong to one beside
// which no signal may be sent.
static void start_engine(struct cs_agent_thread *t) {
  if (t->engine != NULL || !may_have_engine(t)) return;
  if (cs_ask_is_blocked(t))
    t->unsampled_from = cs_cpu_ns_of(t->tid);  // blocked.c records its time
  else if (cs_signals_are_safe())
    cs_engine_start(t);
  else
    cs_store_release(&delayed, true);
}

// Some of these call the runtime and so become managed threads, which may hold locks of its
// managed code: the program may then wait for them.
static void name_own(struct cs_agent_thread *t, uint32_t tid) {
  char name[sizeof t->given];
  cs_thread_kernel_name(tid, name, sizeof name);
  (void)snprintf(t->name, sizeof t->name, "%s, the profiler's own thread", name);
  t->named = true;
  cs_store_release(&t->announced, 0u);
}

static void begin_sampling(struct cs_agent_thread *t, uint32_t tid) {
  bool own = cs_own_thread_is(tid);
  if (own) name_own(t, tid);
  if (own || t->tid != 0 || stopped) return;
  cs_threads_set_tid(t, tid);
  t->accounted_to_ns = cs_clock_now_ns();
  cs_label_slot_link(t->thread);
  // Before the engine: a signal for a thread that is not sampled is ignored.
  cs_store_release(&t->thread->sampling, 1u);
  start_engine(t);
}

static void end_sampling(struct cs_agent_thread *t) {
  cs_store_release(&t->thread->sampling, 0u);
  cs_engine_stop(t);
}

// Counts a thread that ends, or that outlives the recording, if its stack is too small, or of
// unknown size. Native threads are sampled in cpu mode only.
static void count_room(const struct cs_agent_thread *t) {
  uint32_t signalled =
      t->clr_thread == 0 ? CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU) : CS_WIRE_TIMED_MODES;
  if (t->tid == 0 || (cs_options.modes & signalled) == 0) return;
  if (cs_thread_room(t->thread) == CS_ROOM_SMALL) small_stacks.small++;
  if (cs_thread_room(t->thread) == CS_ROOM_UNKNOWN && t->room_unknown) small_stacks.unknown++;
}

// What becomes of the registry's entry: a native thread's is freed; a managed thread's is kept
// until ThreadDestroyed, which comes some time after the end of a thread that the runtime has not
// made, but loses its tid and thread pointer, which may be another thread's by then.
enum ending { NATIVE_ENDED, MANAGED_ENDED, DESTROYED };

static void remove_thread(struct cs_agent_thread *t, enum ending ending) {
  struct cs_thread *entry = t->thread;
  end_sampling(t);
  cs_threads_remove(t);
  if (ending == NATIVE_ENDED) cs_registry_destroyed_entry(entry);
  if (ending == MANAGED_ENDED) cs_registry_ended(entry);
}

// The calling thread is `clr_thread`, so all others that have its tid have ended.
static void remove_former(uint64_t clr_thread, uint32_t tid) {
  for (struct cs_agent_thread *next, *t = cs_threads_with_tid(tid, NULL); t != NULL; t = next) {
    next = cs_threads_with_tid(tid, t);
    if (t->clr_thread != clr_thread)
      remove_thread(t, t->clr_thread == 0 ? NATIVE_ENDED : MANAGED_ENDED);
  }
}

// ---- Callbacks ----

// Called on the new thread, before the program can have named it.
void cs_threads_assigned(ThreadID id, uint32_t tid) {
  char given[sizeof((struct cs_agent_thread *)0)->given];
  if (!cs_agent_is_active() || tid == 0) return;
  struct cs_thread *entry = cs_registry_find(id);
  cs_thread_kernel_name(tid, given, sizeof given);
  cs_threads_lock();
  cs_natives_managed(tid);
  remove_former(id, tid);  // among them the thread itself, if it was a native one up to now
  struct cs_agent_thread *t = entry != NULL ? of_entry(entry) : NULL;
  if (t != NULL) {
    memcpy(t->given, given, sizeof t->given);
    t->started_by_pool = strcmp(given, CS_POOL_WORKER) == 0;
    begin_sampling(t, tid);
  }
  cs_threads_unlock();
}

// May be called before the thread is started, and so before the registry has it.
void cs_threads_renamed(ThreadID id, const WCHAR *name, ULONG units) {
  char text[sizeof((struct cs_agent_thread *)0)->name];
  if (!cs_agent_is_active() || id == 0 || name == NULL) return;
  while (units > 0 && name[units - 1] == 0) units--;
  (void)cs_utf16_to_utf8(text, sizeof text, name, units, NULL);
  struct cs_thread *entry = cs_registry_created(id);
  cs_threads_lock();
  struct cs_agent_thread *t = entry != NULL ? of_entry(entry) : NULL;
  if (t != NULL) {
    memcpy(t->name, text, sizeof text);
    t->named = text[0] != '\0';
    cs_store_release(&t->announced, 0u);
  }
  cs_threads_unlock();
}

void cs_threads_destroyed(ThreadID id) {
  struct cs_thread *entry = cs_registry_find(id);
  if (entry == NULL) return;
  cs_threads_lock();
  struct cs_agent_thread *t = entry->agent;
  if (t != NULL) {
    count_room(t);
    remove_thread(t, DESTROYED);
  }
  cs_threads_unlock();
}

// ---- Threads that existed before the agent ----

void cs_threads_adopt(void) {
  for (uint32_t i = 0; i < cs_registry_count(); i++) {
    struct cs_thread *entry = cs_registry_at(i);
    uint32_t tid = cs_load_acquire(&entry->tid);
    uint64_t clr_thread = entry->clr_thread;
    // Pinned, so that its ThreadDestroyed waits until the thread is in the list, and then removes
    // it.
    if (tid == 0 || clr_thread == 0 || !cs_thread_pin(entry, clr_thread)) continue;
    cs_threads_lock();
    struct cs_agent_thread *t = of_entry(entry);
    if (t != NULL) begin_sampling(t, tid);
    cs_threads_unlock();
    cs_thread_unpin(entry);
  }
}

// A thread may have become a managed one during the scan.
static bool is_managed(uint32_t tid) {
  const struct cs_agent_thread *t = cs_threads_with_tid(tid, NULL);
  while (t != NULL && t->clr_thread == 0) t = cs_threads_with_tid(tid, t);
  return t != NULL;
}

void cs_threads_add_native(uint32_t tid) {
  struct cs_thread *entry = cs_registry_attached(0, tid);
  if (entry == NULL) return;
  cs_thread_learn_stack(entry, tid);
  cs_threads_lock();
  struct cs_agent_thread *t = is_managed(tid) ? NULL : of_entry(entry);
  if (t != NULL) {
    begin_sampling(t, tid);
    t->found = true;
  } else {
    cs_registry_destroyed_entry(entry);
  }
  cs_threads_unlock();
}

// Notes that the native thread lives; its stack may be known by now.
static bool note_native(struct cs_agent_thread *t, void *data) {
  uint32_t tid = *(const uint32_t *)data;
  if (t->clr_thread != 0 || t->tid != tid) return true;
  t->found = true;
  if (cs_thread_room(t->thread) != CS_ROOM_UNKNOWN) return false;
  cs_thread_learn_stack(t->thread, tid);
  t->room_unknown = cs_thread_room(t->thread) == CS_ROOM_UNKNOWN;
  if (!stopped) start_engine(t);
  return false;
}

static void scan(uint32_t tid) {
  if (tid == 0 || cs_own_thread_is(tid)) return;
  struct cs_thread *entry = cs_registry_find_tid(tid);
  if (entry != NULL && entry->clr_thread == 0)
    cs_threads_visit(note_native, &tid);
  else if (entry == NULL && !cs_own_thread_may_be(tid))
    cs_threads_add_native(tid);
}

void cs_threads_scan_native(void) {
  cs_own_threads_sweep();
  DIR *tasks = cs_wants(CS_WIRE_MODE_CPU) ? opendir("/proc/self/task") : NULL;
  if (tasks == NULL) return;
  const struct dirent *entry;
  while ((entry = readdir(tasks)) != NULL) scan((uint32_t)strtoul(entry->d_name, NULL, 10));
  (void)closedir(tasks);
  cs_threads_sweep_native();
}

// Returns false if there is no memory.
static bool classify(uint32_t tid) {
  const struct cs_thread *known = cs_registry_find_tid(tid);
  if (known == NULL || known->clr_thread == 0) return cs_natives_found(tid);
  cs_threads_lock();
  cs_natives_managed(tid);
  cs_threads_unlock();
  return true;
}

uint32_t cs_threads_count_unknown(void) {
  DIR *tasks = opendir("/proc/self/task");
  const struct dirent *entry;
  bool all = tasks != NULL;
  cs_natives_begin();
  while (all && (entry = readdir(tasks)) != NULL) {
    uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
    all = tid == 0 || cs_own_thread_may_be(tid) || classify(tid);
  }
  if (tasks != NULL) (void)closedir(tasks);
  cs_threads_lock();
  if (all) cs_natives_end();
  uint32_t count = cs_natives_count();
  cs_threads_unlock();
  return count;
}

// ---- Threads that are gone ----

static bool is_native_gone(struct cs_agent_thread *t) {
  bool gone = t->clr_thread == 0 && !t->found;
  t->found = false;
  return gone;
}

static bool is_managed_ended(struct cs_agent_thread *t) {
  return t->clr_thread != 0 && t->tid != 0 && syscall(SYS_tgkill, cs_signal.pid, t->tid, 0) != 0 &&
         errno == ESRCH;
}

static void sweep(bool (*is_gone)(struct cs_agent_thread *thread), enum ending ending) {
  cs_threads_lock();
  for (struct cs_agent_thread *next, *t = cs_threads_living(); t != NULL; t = next) {
    next = t->next;
    if (!is_gone(t)) continue;
    count_room(t);
    remove_thread(t, ending);
  }
  cs_threads_unlock();
}

void cs_threads_sweep_native(void) {
  sweep(is_native_gone, NATIVE_ENDED);
}

void cs_threads_sweep_ended(void) {
  sweep(is_managed_ended, MANAGED_ENDED);
}

// ---- Engines ----

static bool start_late(struct cs_agent_thread *t, void *data) {
  (void)data;
  if (t->tid != 0 && !stopped) start_engine(t);
  return true;
}

void cs_threads_start_engines(void) {
  cs_threads_visit(start_late, NULL);
}

void cs_threads_start_delayed(void) {
  if (!cs_load_acquire(&delayed)) return;
  cs_store_release(&delayed, false);
  cs_threads_start_engines();
}

static bool stop_engine(struct cs_agent_thread *t, void *data) {
  (void)data;
  cs_engine_stop(t);
  return true;
}

void cs_threads_stop_engines(void) {
  cs_threads_visit(stop_engine, NULL);
}

// ---- A recording ----

void cs_threads_start(void) {
  cs_threads_lock();
  stopped = false;
  small_stacks = (struct cs_wire_small_stacks){0, 0};
  cs_natives_reset();
  cs_threads_unlock();
}

void cs_threads_stop(void) {
  cs_threads_lock();
  stopped = true;
  for (struct cs_agent_thread *t = cs_threads_living(); t != NULL; t = t->next) {
    count_room(t);
    end_sampling(t);
  }
  cs_threads_unlock();
}

bool cs_threads_report_small_stacks(void) {
  return small_stacks.small + small_stacks.unknown == 0 ||
         cs_send(CS_WIRE_SMALL_STACKS, &small_stacks, sizeof small_stacks);
}

void cs_threads_free_all(void) {
  cs_threads_lock();
  for (struct cs_agent_thread *t; (t = cs_threads_living()) != NULL;)
    remove_thread(t, t->clr_thread == 0 ? NATIVE_ENDED : DESTROYED);
  cs_natives_reset();
  cs_threads_unlock();
  cs_threads_reset();
}
