// SPDX-License-Identifier: MIT
// The list of threads. Invariants: `lock` is held for list work only, never over a call into the
// CLR, and no handler takes it. A struct is freed only by the agent's thread, when every walk that
// could still find it in the registry has ended and the ring has been read past what those walks
// have written. Signal-safe: no.
#include "state/threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "life/epoch.h"
#include "state/halts.h"
#include "state/thread_name.h"

#define STILL_WALKED UINT64_MAX  // dead_at: not known yet

enum { TID_BITS = 11 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cs_agent_thread *living, *dead;
static struct cs_agent_thread *by_tid[1 << TID_BITS];  // those of `living` that have one
static bool some_walked;                               // some of `dead` have dead_at STILL_WALKED
static uint32_t last_id;
static uint64_t unsampled_ends_ns;
static uint32_t changes;  // how often threads were added to `living`, or removed

// ---- The list ----

void cs_threads_lock(void) {
  (void)pthread_mutex_lock(&lock);
}

void cs_threads_unlock(void) {
  (void)pthread_mutex_unlock(&lock);
}

struct cs_agent_thread *cs_threads_living(void) {
  return living;
}

static struct cs_agent_thread **bucket_of(uint32_t tid) {
  return &by_tid[tid & ((1u << TID_BITS) - 1)];  // the kernel gives consecutive numbers
}

struct cs_agent_thread *cs_threads_with_tid(uint32_t tid, const struct cs_agent_thread *last) {
  struct cs_agent_thread *t = last != NULL ? last->same_tid : *bucket_of(tid);
  while (t != NULL && t->tid != tid) t = t->same_tid;
  return t;
}

void cs_threads_set_tid(struct cs_agent_thread *t, uint32_t tid) {
  struct cs_agent_thread **bucket = bucket_of(tid);
  t->tid = tid;
  t->same_tid = *bucket;
  *bucket = t;
}

static void forget_tid(const struct cs_agent_thread *t) {
  struct cs_agent_thread **at = bucket_of(t->tid);
  while (*at != NULL && *at != t) at = &(*at)->same_tid;
  if (*at == t) *at = t->same_tid;
}

struct cs_agent_thread *cs_threads_add(struct cs_thread *entry) {
  struct cs_agent_thread *t = aligned_alloc(_Alignof(struct cs_agent_thread), sizeof *t);
  if (t == NULL) return NULL;
  memset(t, 0, sizeof *t);
  changes++;
  t->thread = entry;
  t->clr_thread = entry->clr_thread;
  t->id = ++last_id;
  t->next = living;
  t->link = &living;
  if (living != NULL) living->link = &t->next;
  living = t;
  cs_store_release(&entry->agent, t);
  return t;
}

void cs_threads_remove(struct cs_agent_thread *t) {
  changes++;
  cs_store_release(&t->thread->agent, NULL);
  t->thread = NULL;
  *t->link = t->next;
  if (t->next != NULL) t->next->link = t->link;
  if (t->tid != 0) forget_tid(t);
  t->dead_at = STILL_WALKED;
  t->ended_ns = cs_clock_now_ns();
  t->next = dead;
  dead = t;
  some_walked = true;
}

void cs_threads_visit(bool (*visit)(struct cs_agent_thread *thread, void *data), void *data) {
  cs_threads_lock();
  for (struct cs_agent_thread *t = living; t != NULL && visit(t, data); t = t->next) {
  }
  cs_threads_unlock();
}

bool cs_pinned_keep(struct cs_pinned_list *list, const struct cs_pinned *pinned) {
  struct cs_pinned *at = cs_grow_or_not(list->at, list->count, &list->capacity, sizeof *at);
  if (at == NULL) return false;
  list->at = at;
  list->at[list->count++] = *pinned;
  return true;
}

bool cs_pinned_add(struct cs_pinned_list *list, struct cs_agent_thread *t) {
  struct cs_pinned pinned = {t, t->thread};
  if (!cs_thread_pin(t->thread, t->clr_thread) || cs_pinned_keep(list, &pinned)) return true;
  cs_thread_unpin(t->thread);
  return false;
}

static bool list_living(struct cs_thread_list *list) {
  list->count = 0;
  for (struct cs_agent_thread *t = living; t != NULL; t = t->next) {
    if (t->clr_thread == 0) continue;
    struct cs_agent_thread **at =
        cs_grow_or_not(list->at, list->count, &list->capacity, sizeof *at);
    if (at == NULL) return false;
    list->at = at;
    list->at[list->count++] = t;
  }
  list->changes = changes;
  return true;
}

bool cs_threads_list(struct cs_thread_list *list) {
  cs_threads_lock();
  bool all = (list->at != NULL && list->changes == changes) || list_living(list);
  cs_threads_unlock();
  return all;
}

bool cs_threads_pin(struct cs_agent_thread *listed, struct cs_pinned *out) {
  cs_threads_lock();
  *out = (struct cs_pinned){listed, listed->thread};
  bool pinned = out->thread != NULL && cs_thread_pin(out->thread, listed->clr_thread);
  cs_threads_unlock();
  return pinned;
}

bool cs_pinned_find(uint32_t tid, struct cs_pinned *out) {
  struct cs_thread *thread = tid != 0 ? cs_registry_find_tid(tid) : NULL;
  uint64_t clr_thread = thread != NULL ? thread->clr_thread : 0;
  *out = (struct cs_pinned){NULL, NULL};
  if (thread == NULL || !cs_thread_pin(thread, clr_thread)) return false;
  struct cs_agent_thread *t = cs_load_acquire(&thread->agent);
  if (t != NULL && thread->tid == tid) {
    *out = (struct cs_pinned){t, thread};
    return true;
  }
  cs_thread_unpin(thread);
  return false;
}

uint32_t cs_threads_id_of(uint64_t tid) {
  struct cs_pinned found;
  if (tid > UINT32_MAX || !cs_pinned_find((uint32_t)tid, &found)) return 0;
  uint32_t id = found.agent->id;
  cs_thread_unpin(found.thread);
  return id;
}

void cs_pinned_unpin(struct cs_pinned_list *list) {
  for (size_t i = 0; i < list->count; i++) cs_thread_unpin(list->at[i].thread);
  list->count = 0;
}

void cs_pinned_free(struct cs_pinned_list *list) {
  free(list->at);
  *list = (struct cs_pinned_list){NULL, 0, 0};
}

// The runtime reports the names of pool workers to the profiler. A thread that has such a name, but
// was not named, was started by a worker and inherited its name.
static void read_name(const struct cs_agent_thread *t, char *name, size_t cap) {
  cs_thread_kernel_name(t->tid, name, cap);
  if (t->thread == NULL || name[0] == '\0')
    (void)strcpy(name, t->given);  // it has ended
  else
    cs_thread_whole_name(t->clr_thread, name, cap);
  if (t->started_by_pool && strcmp(name, CS_POOL_WORKER) == 0) name[0] = '\0';
}

// ---- The dead ----

// A walk that found the thread in the registry before it was removed may still write to the ring.
static void note_end_of_walks(void) {
  cs_threads_lock();
  struct cs_agent_thread *first = some_walked ? dead : NULL;
  some_walked = false;
  cs_threads_unlock();
  if (first == NULL) return;
  bool ended = cs_epoch_wait();
  uint64_t written_to = cs_load_acquire(&cs_agent.ring.head);
  cs_threads_lock();
  if (!ended) some_walked = true;
  for (struct cs_agent_thread *t = first; t != NULL && ended; t = t->next)
    if (t->dead_at == STILL_WALKED) t->dead_at = written_to;
  cs_threads_unlock();
}

// The names of threads that have ended: for each id modulo the table's size, the last one.
enum { REMEMBERED = 512 };
static struct {
  uint32_t id;  // 0: none
  char name[sizeof((struct cs_agent_thread *)0)->name];
} former[REMEMBERED];

static void remember_name(struct cs_agent_thread *t) {
  if (!t->named && t->name[0] == '\0') read_name(t, t->name, sizeof t->name);
  former[t->id % REMEMBERED].id = t->id;
  (void)snprintf(former[t->id % REMEMBERED].name, sizeof former->name, "%s", t->name);
}

// Called when all of the thread's samples have been weighed.
static void count_end(const struct cs_agent_thread *t) {
  uint64_t from = t->accounted_to_ns > cs_agent.start_ns ? t->accounted_to_ns : cs_agent.start_ns;
  if (t->clr_thread != 0 && t->tid != 0 && t->ended_ns > from)
    unsampled_ends_ns += t->ended_ns - from - cs_halts_within(from, t->ended_ns);
}

uint64_t cs_threads_unsampled_ends_ns(void) {
  return unsampled_ends_ns;
}

static void free_dead(uint64_t read_to) {
  cs_threads_lock();
  struct cs_agent_thread **link = &dead;
  while (*link != NULL) {
    struct cs_agent_thread *t = *link;
    if (read_to != UINT64_MAX && (t->dead_at > read_to || t->written_to > read_to)) {
      link = &t->next;
    } else {
      *link = t->next;
      count_end(t);
      remember_name(t);
      free(t);
    }
  }
  cs_threads_unlock();
}

void cs_threads_free_dead(void) {
  note_end_of_walks();
  free_dead(cs_load_acquire(&cs_agent.ring.tail));
}

void cs_threads_reset(void) {
  free_dead(UINT64_MAX);
  last_id = 0;
  memset(former, 0, sizeof former);
  unsampled_ends_ns = 0;
}

// ---- Names ----

bool cs_threads_announce(struct cs_agent_thread *t) {
  char name[sizeof t->name];
  if (cs_load_acquire(&t->announced) != 0) return true;
  cs_threads_lock();
  if (!t->named && t->name[0] == '\0') read_name(t, t->name, sizeof t->name);
  memcpy(name, t->name, sizeof name);
  cs_store_release(&t->announced, 1u);  // a new name resets it
  struct cs_wire_thread record = {t->id, t->tid};
  cs_threads_unlock();
  const char *strings[] = {name};
  if (cs_producer_put(&cs_agent.wire, CS_WIRE_THREAD, &record, sizeof record, strings, 1))
    return true;
  cs_store_release(&t->announced, 0u);
  return false;
}

static struct cs_agent_thread *find_in(struct cs_agent_thread *list, uint32_t id) {
  while (list != NULL && list->id != id) list = list->next;
  return list;
}

bool cs_threads_name(uint32_t id, char *name, size_t cap) {
  cs_threads_lock();
  struct cs_agent_thread *t = find_in(living, id);
  if (t == NULL) t = find_in(dead, id);
  if (t != NULL && !t->named && t->name[0] == '\0') read_name(t, t->name, sizeof t->name);
  bool known = t != NULL || former[id % REMEMBERED].id == id;
  if (known) (void)snprintf(name, cap, "%s", t != NULL ? t->name : former[id % REMEMBERED].name);
  cs_threads_unlock();
  return known;
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
