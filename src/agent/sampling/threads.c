// SPDX-License-Identifier: MIT
// The threads that are sampled: managed ones come and go with the runtime's callbacks, on the
// threads themselves; native ones are found by a scan (native_threads.c).
//
// Invariants: `lock` is held for list work only, never over a call into the CLR, and no handler
// takes it. Samples name a struct by its address. So it is freed only by the agent's thread, when
// every walk that could still find it in the registry has ended, and the ring has been read beyond
// what those have written. Signal-safe: no.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf16.h"
#include "clr/clr.h"
#include "sampling/agent.h"
#include "sampling/engine.h"

#define STILL_WALKED UINT64_MAX  // as a position of the ring: not known yet

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cs_agent_thread *living, *dead;
static struct cs_wire_rooms rooms;
static bool some_walked;  // of the dead; may be one of a walk that is under way
static uint32_t last_id;
static bool stopped;
static bool unstarted;  // engines, for libraries that were new; not under the lock

// ---- Names ----

// What the kernel calls the thread. Threads that the program has not named have good names there:
// ".NET TP Worker", ".NET Server GC".
static void read_comm(uint32_t tid, char *name, size_t cap) {
  char path[64];
  name[0] = '\0';
  if (tid == (uint32_t)getpid()) {  // there it is the program's file
    (void)snprintf(name, cap, "Main");
    return;
  }
  (void)snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return;  // it has ended
  if (fgets(name, (int)cap, file) == NULL) name[0] = '\0';
  name[strcspn(name, "\n")] = '\0';
  (void)fclose(file);
}

static const char pool_worker[] = ".NET TP Worker";

// The pool tells the profiler of its workers' names; so who has such a name without a word was
// started by one, and has it from there. One that has ended can't be asked any more.
static void read_name(const struct cs_agent_thread *t, char *name, size_t cap) {
  read_comm(t->tid, name, cap);
  if (t->thread == NULL || name[0] == '\0')
    (void)snprintf(name, cap, "%s", t->given);
  else
    cs_thread_whole_name(t->clr_thread, name, cap);
  if (t->started_by_pool && strcmp(name, pool_worker) == 0) name[0] = '\0';
}

// ---- Under the lock ----

// The one that belongs to the registry's entry; a new one if it has none.
static struct cs_agent_thread *of_entry(struct cs_thread *entry) {
  struct cs_agent_thread *t = entry->agent;
  if (t != NULL || stopped) return t;
  t = calloc(1, sizeof *t);
  if (t == NULL) return NULL;
  t->thread = entry;
  t->clr_thread = entry->clr_thread;
  t->id = ++last_id;
  t->next = living;
  living = t;
  cs_store_release(&entry->agent, t);
  return t;
}

// Not while there are libraries that nobody has looked at: one may be such that no signal may be
// sent, and the thread its own.
static void start_engine(struct cs_agent_thread *t) {
  if (t->engine == NULL && cs_library_images_are_old()) {
    cs_store_release(&unstarted, true);
    return;
  }
  if ((cs_agent.modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU)) != 0 && t->engine == NULL &&
      cs_load_acquire(&cs_agent.state) == CS_AGENT_RECORDING && cs_thread_is_equipped(t->thread) &&
      cs_thread_room(t->thread) == CS_ROOM_ENOUGH)
    cs_engine_start(t);
}

static void begin_sampling(struct cs_agent_thread *t, uint32_t tid) {
  if (t->tid != 0 || stopped) return;
  t->tid = tid;
  t->last_ns = cs_clock_now_ns();  // or when the recording begins, if that is later
  cs_labels_link(t->thread);
  // Before the engine: a signal for a thread that is not sampled is ignored.
  cs_store_release(&t->thread->sampling, 1u);
  start_engine(t);
}

static void end_sampling(struct cs_agent_thread *t) {
  cs_store_release(&t->thread->sampling, 0u);
  cs_engine_stop(t);
}

// One that ends, or the recording does. A native one is sampled in mode cpu only.
static void count_room(const struct cs_agent_thread *t) {
  uint32_t signalled =
      t->clr_thread == 0 ? CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU) : CS_WIRE_TIMED_MODES;
  if (t->tid == 0 || (cs_agent.modes & signalled) == 0) return;
  if (cs_thread_room(t->thread) == CS_ROOM_SMALL) rooms.small++;
  if (cs_thread_room(t->thread) == CS_ROOM_UNKNOWN && t->unclear) rooms.unknown++;
}

static void bury(struct cs_agent_thread **link) {
  struct cs_agent_thread *t = *link;
  end_sampling(t);
  cs_store_release(&t->thread->agent, NULL);
  t->thread = NULL;
  *link = t->next;
  t->dead_at = STILL_WALKED;
  t->next = dead;
  dead = t;
  some_walked = true;
}

// It may have become a managed thread while the scan was looking at it.
static bool is_managed(uint32_t tid) {
  const struct cs_agent_thread *t = living;
  while (t != NULL && !(t->clr_thread != 0 && t->tid == tid)) t = t->next;
  return t != NULL;
}

static void bury_native(struct cs_agent_thread **link) {
  struct cs_thread *entry = (*link)->thread;
  bury(link);
  cs_registry_destroyed_entry(entry);
}

// The runtime tells of the end of a thread that it has not made only some time after it. What has
// the tid, or this tid's thread pointer, is another thread by then.
static void bury_ended(struct cs_agent_thread **link) {
  struct cs_thread *entry = (*link)->thread;
  bury(link);
  cs_registry_ended(entry);
}

// The calling thread is `clr_thread`: so all others that had its tid have ended.
static void bury_former(uint64_t clr_thread, uint32_t tid) {
  struct cs_agent_thread **link = &living;
  while (*link != NULL) {
    const struct cs_agent_thread *t = *link;
    if (t->tid != tid || t->clr_thread == clr_thread)
      link = &(*link)->next;
    else if (t->clr_thread == 0)
      bury_native(link);
    else
      bury_ended(link);
  }
}

// ---- Callbacks ----

// On the new thread, before anybody has named it.
void cs_threads_assigned(ThreadID id, uint32_t tid) {
  char given[sizeof((struct cs_agent_thread *)0)->given];
  if (!cs_agent_is_active() || tid == 0) return;
  struct cs_thread *entry = cs_registry_find(id);
  read_comm(tid, given, sizeof given);
  (void)pthread_mutex_lock(&lock);
  bury_former(id, tid);  // itself, if it was a native thread up to now
  struct cs_agent_thread *t = entry != NULL ? of_entry(entry) : NULL;
  if (t != NULL) {
    memcpy(t->given, given, sizeof t->given);
    t->started_by_pool = strcmp(given, pool_worker) == 0;
    begin_sampling(t, tid);
  }
  (void)pthread_mutex_unlock(&lock);
}

// May come before the thread is started, and so before the registry knows it.
void cs_threads_renamed(ThreadID id, const WCHAR *name, ULONG units) {
  char text[sizeof((struct cs_agent_thread *)0)->name];
  if (!cs_agent_is_active() || id == 0 || name == NULL) return;
  while (units > 0 && name[units - 1] == 0) units--;
  (void)cs_utf16_to_utf8(text, sizeof text, name, units, NULL);
  struct cs_thread *entry = cs_registry_created(id);
  (void)pthread_mutex_lock(&lock);
  struct cs_agent_thread *t = entry != NULL ? of_entry(entry) : NULL;
  if (t != NULL) {
    memcpy(t->name, text, sizeof text);
    t->named = text[0] != '\0';
    cs_store_release(&t->announced, 0u);
  }
  (void)pthread_mutex_unlock(&lock);
}

void cs_threads_destroyed(ThreadID id) {
  struct cs_thread *entry = cs_registry_find(id);
  if (entry == NULL) return;
  (void)pthread_mutex_lock(&lock);
  struct cs_agent_thread **link = &living;
  while (*link != NULL && *link != entry->agent) link = &(*link)->next;
  if (*link != NULL) {
    count_room(*link);
    bury(link);
  }
  (void)pthread_mutex_unlock(&lock);
}

// ---- The agent's thread ----

void cs_threads_adopt(void) {
  for (uint32_t i = 0; i < cs_registry_count(); i++) {
    struct cs_thread *entry = cs_registry_at(i);
    uint32_t tid = cs_load_acquire(&entry->tid);
    uint64_t clr_thread = entry->clr_thread;
    // Pinned: its ThreadDestroyed waits until it is in the list, and takes it out then.
    if (tid == 0 || clr_thread == 0 || !cs_thread_pin(entry, clr_thread)) continue;
    (void)pthread_mutex_lock(&lock);
    struct cs_agent_thread *t = of_entry(entry);
    if (t != NULL) begin_sampling(t, tid);
    (void)pthread_mutex_unlock(&lock);
    cs_thread_unpin(entry);
  }
}

void cs_threads_add_native(uint32_t tid) {
  struct cs_thread *entry = cs_registry_attached(0, tid);
  if (entry == NULL) return;
  cs_thread_learn_stack(entry, tid);
  (void)pthread_mutex_lock(&lock);
  struct cs_agent_thread *t = is_managed(tid) ? NULL : of_entry(entry);
  if (t != NULL) {
    begin_sampling(t, tid);
    t->seen = true;
  } else {
    cs_registry_destroyed_entry(entry);
  }
  (void)pthread_mutex_unlock(&lock);
}

static bool look_again(struct cs_agent_thread *t, void *data) {
  uint32_t tid = *(const uint32_t *)data;
  if (t->clr_thread != 0 || t->tid != tid) return true;
  t->seen = true;
  if (cs_thread_room(t->thread) != CS_ROOM_UNKNOWN) return false;
  cs_thread_learn_stack(t->thread, tid);
  t->unclear = cs_thread_room(t->thread) == CS_ROOM_UNKNOWN;
  if (!stopped) start_engine(t);
  return false;
}

void cs_threads_see_native(uint32_t tid) {
  cs_threads_visit(look_again, &tid);
}

void cs_threads_visit(bool (*visit)(struct cs_agent_thread *thread, void *data), void *data) {
  (void)pthread_mutex_lock(&lock);
  for (struct cs_agent_thread *t = living; t != NULL && visit(t, data); t = t->next) {
  }
  (void)pthread_mutex_unlock(&lock);
}

void cs_threads_sweep_ended(void) {
  pid_t pid = getpid();
  (void)pthread_mutex_lock(&lock);
  struct cs_agent_thread **link = &living;
  while (*link != NULL) {
    const struct cs_agent_thread *t = *link;
    bool ended = t->clr_thread != 0 && t->tid != 0 && syscall(SYS_tgkill, pid, t->tid, 0) != 0 &&
                 errno == ESRCH;
    if (ended) {
      count_room(t);
      bury_ended(link);
    } else {
      link = &(*link)->next;
    }
  }
  (void)pthread_mutex_unlock(&lock);
}

void cs_threads_sweep_native(void) {
  (void)pthread_mutex_lock(&lock);
  struct cs_agent_thread **link = &living;
  while (*link != NULL) {
    struct cs_agent_thread *t = *link;
    if (t->clr_thread == 0 && !t->seen) {
      count_room(t);
      bury_native(link);
    } else {
      t->seen = false;
      link = &t->next;
    }
  }
  (void)pthread_mutex_unlock(&lock);
}

// A walk that has found one in the registry before it was taken out may write into the ring yet.
static void note_end_of_walks(void) {
  (void)pthread_mutex_lock(&lock);
  struct cs_agent_thread *first = some_walked ? dead : NULL;
  some_walked = false;
  (void)pthread_mutex_unlock(&lock);
  if (first == NULL) return;
  bool ended = cs_epoch_wait();
  uint64_t written_to = cs_load_acquire(&cs_agent.ring.head);
  (void)pthread_mutex_lock(&lock);
  if (!ended) some_walked = true;
  for (struct cs_agent_thread *t = first; t != NULL && ended; t = t->next)
    if (t->dead_at == STILL_WALKED) t->dead_at = written_to;
  (void)pthread_mutex_unlock(&lock);
}

void cs_threads_free_dead(void) {
  note_end_of_walks();
  uint64_t read_to = cs_load_acquire(&cs_agent.ring.tail);
  (void)pthread_mutex_lock(&lock);
  struct cs_agent_thread **link = &dead;
  while (*link != NULL) {
    struct cs_agent_thread *t = *link;
    if (t->dead_at > read_to || t->written_to > read_to) {
      link = &t->next;
    } else {
      *link = t->next;
      free(t);
    }
  }
  (void)pthread_mutex_unlock(&lock);
}

bool cs_threads_announce(struct cs_agent_thread *t) {
  char name[sizeof t->name];
  if (cs_load_acquire(&t->announced) != 0) return true;
  (void)pthread_mutex_lock(&lock);
  if (!t->named && t->name[0] == '\0') read_name(t, t->name, sizeof t->name);
  memcpy(name, t->name, sizeof name);
  cs_store_release(&t->announced, 1u);  // a new name may come from now on
  struct cs_wire_thread record = {t->id, t->tid};
  (void)pthread_mutex_unlock(&lock);
  const char *strings[] = {name};
  if (cs_producer_put(&cs_agent.wire, CS_WIRE_THREAD, &record, sizeof record, strings, 1))
    return true;
  cs_store_release(&t->announced, 0u);
  return false;
}

static bool refresh_name(struct cs_agent_thread *t, void *data) {
  char name[sizeof t->name];
  (void)data;
  if (t->named || t->tid == 0 || t->announced == 0) return true;
  read_name(t, name, sizeof name);
  if (name[0] != '\0' && strcmp(name, t->name) != 0) {
    memcpy(t->name, name, sizeof name);
    cs_store_release(&t->announced, 0u);
  }
  return true;
}

void cs_threads_refresh_names(void) {
  cs_threads_visit(refresh_name, NULL);
}

static bool start_late(struct cs_agent_thread *t, void *data) {
  (void)data;
  if (t->tid != 0 && !stopped) start_engine(t);
  return true;
}

void cs_threads_start_unstarted(void) {
  if (!cs_load_acquire(&unstarted)) return;
  cs_store_release(&unstarted, false);
  cs_threads_start_engines();
}

void cs_threads_start_engines(void) {
  cs_threads_visit(start_late, NULL);
}

static bool stop_engine(struct cs_agent_thread *t, void *data) {
  (void)data;
  if (t->engine != NULL) cs_engine_stop(t);
  return true;
}

void cs_threads_stop_engines(void) {
  cs_threads_visit(stop_engine, NULL);
}

static bool change_period(struct cs_agent_thread *t, void *data) {
  (void)data;
  cs_engine_change(t);
  return true;
}

void cs_threads_set_period(uint64_t period_ns) {
  cs_store_release(&cs_agent.period_ns, period_ns);
  cs_threads_visit(change_period, NULL);
}

void cs_threads_start(void) {
  (void)pthread_mutex_lock(&lock);
  stopped = false;
  last_id = 0;
  rooms = (struct cs_wire_rooms){0, 0};
  (void)pthread_mutex_unlock(&lock);
}

void cs_threads_stop(void) {
  (void)pthread_mutex_lock(&lock);
  stopped = true;
  for (struct cs_agent_thread *t = living; t != NULL; t = t->next) {
    count_room(t);
    end_sampling(t);
  }
  (void)pthread_mutex_unlock(&lock);
}

bool cs_threads_tell_rooms(void) {
  if (rooms.small + rooms.unknown == 0) return true;
  return cs_producer_put(&cs_agent.wire, CS_WIRE_ROOMS, &rooms, sizeof rooms, NULL, 0);
}

void cs_threads_free_all(void) {
  (void)pthread_mutex_lock(&lock);
  while (living != NULL) {
    if (living->clr_thread == 0)
      bury_native(&living);
    else
      bury(&living);
  }
  while (dead != NULL) {
    struct cs_agent_thread *t = dead;
    dead = t->next;
    free(t);
  }
  (void)pthread_mutex_unlock(&lock);
}
