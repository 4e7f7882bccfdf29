// SPDX-License-Identifier: MIT
// Which locks the threads of a stopped process wait for, and which threads hold them. The runtime
// itself keeps, for debuggers, what a thread waits for in Monitor and in System.Threading.Lock: a
// list that begins in a static of the thread (ThreadBlockingInfo.t_first), whose items are on its
// stack. ReaderWriterLockSlim keeps no such list, but its method needs the lock after the wait, so
// the lock is in the method's frame or in a register that callees preserve.
//
// Invariant: nothing is guessed. An item counts only on the thread's own stack, below it only
// frames of the wait itself; a ReaderWriterLockSlim only if it is the only one in the frame; an
// owner only if both ids that a monitor has of it belong to the same thread; and nothing is read
// from objects while a collection may move them. One thread. Signal-safe: no.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefix.h"
#include "codemap/method.h"
#include "stack/outside.h"
#include "util/map.h"

// Of a name, the address counts (objects/heap.h).
static const char space[] = "System.Threading", lock_class[] = "Lock",
                  readers_class[] = "ReaderWriterLockSlim";

struct cs_outside_locks {
  const struct cs_world *world;
  struct cs_heap *heap;  // NULL: objects cannot be read
  // The youngest frame of a method of ReaderWriterLockSlim, of the thread that is walked now.
  const struct cs_outside_thread *walked;
  unsigned frames;      // managed frames of it so far
  uint64_t begin;       // of the frame; 0: none so far
  struct cs_regs regs;  // at its call
};

// The rows of the classes are looked for now, because that takes a while.
struct cs_outside_locks *cs_outside_locks_new(const struct cs_world *world, struct cs_heap *heap) {
  struct cs_outside_locks *locks = cs_allocate(sizeof *locks);
  locks->world = world;
  locks->heap = heap;
  if (heap != NULL) {
    (void)cs_heap_class_is(heap, 0, space, lock_class);
    (void)cs_heap_class_is(heap, 0, space, readers_class);
  }
  return locks;
}

void cs_outside_locks_free(struct cs_outside_locks *locks) {
  free(locks);
}

static bool get(const struct cs_outside_locks *locks, uint64_t at, void *out, size_t size) {
  return cs_world_read(locks->world, at, out, size);
}

// ---- Which lock a thread waits for ----

static bool is_method_of_readers(const struct cs_outside_locks *locks,
                                 const struct cs_frame *frame) {
  struct cs_method method;
  uint64_t function = frame->code.function_id, start;
  uint64_t ip = frame->regs.r[CS_IP] - (frame->flags & CS_FRAME_EXACT ? 0u : 1u);
  return (function != 0 || cs_method_of_r2r(locks->world, ip, &function, &start)) &&
         cs_method_read(locks->world, function, &method) && !method.dynamic &&
         cs_heap_class_is(locks->heap, method.class, space, readers_class);
}

// Adds the object to the candidates; more than one different one make the lock unknown.
static void add_candidate(const struct cs_outside_locks *locks, uint64_t object, uint64_t *only,
                          bool *several) {
  if (object == *only || object % 8 != 0 || object == 0 ||
      !cs_heap_is(locks->heap, object, space, readers_class))
    return;
  if (*only != 0) *several = true;
  *only = object;
}

static void find_in_frame(struct cs_outside_locks *locks, uint64_t end,
                          struct cs_outside_thread *thread) {
  enum { MAX_FRAME = 4096 };
  uint64_t only = 0, word;
  bool several = false;
  if (end <= locks->begin || end - locks->begin > MAX_FRAME) return;
  for (unsigned i = 0; i < CS_PRESERVED_COUNT; i++) {
    enum cs_reg preserved = cs_preserved_register[i];
    if ((locks->regs.known & CS_REG_BIT(preserved)) == 0) return;
    add_candidate(locks, locks->regs.r[preserved], &only, &several);
  }
  for (uint64_t at = locks->begin; at < end; at += sizeof word)
    if (get(locks, at, &word, sizeof word)) add_candidate(locks, word, &only, &several);
  if (only == 0 || several) return;
  thread->lock =
      (struct cs_outside_lock){.kind = CS_OUTSIDE_LOCK_READER_WRITER, .object = only, .place = end};
}

void cs_outside_lock_frame(struct cs_outside_locks *locks, const struct cs_frame *frame,
                           struct cs_outside_thread *thread) {
  enum { SEARCHED = 16 };  // a wait for a lock has few managed frames
  if (locks->walked != thread) {
    locks->walked = thread;
    locks->frames = 0;
    locks->begin = 0;
  }
  if (locks->begin != 0) {
    if (locks->frames <= SEARCHED) find_in_frame(locks, frame->regs.r[CS_SP], thread);
    locks->frames = SEARCHED + 1;
  }
  if (locks->heap == NULL || locks->frames > SEARCHED || !cs_code_is_managed(&frame->code)) return;
  locks->frames++;
  if (!is_method_of_readers(locks, frame)) return;
  locks->begin = frame->regs.r[CS_SP];
  locks->regs = frame->regs;
}

static bool is_on_stack(const struct cs_remote_thread *thread, uint64_t at) {
  return at % 8 == 0 && at >= thread->stack.lo && at < thread->stack.hi &&
         (thread->stack.alt_hi != 0 || at >= thread->regs.r[CS_SP]);
}

void cs_outside_lock_thread(struct cs_outside_locks *locks, const struct cs_remote_thread *stopped,
                            struct cs_outside_thread *thread) {
  enum { MONITOR, PULSE, LOCK };
  static const enum cs_outside_lock_kind kinds[] = {[MONITOR] = CS_OUTSIDE_LOCK_MONITOR,
                                                    [PULSE] = CS_OUTSIDE_LOCK_PULSE,
                                                    [LOCK] = CS_OUTSIDE_LOCK_LOCK};
  struct {
    uint64_t object;
    uint32_t kind;
    int32_t limit_ms;
  } item;
  uint64_t at, object;
  if (!cs_object_blocking(locks->world, stopped->clr_thread, &at) || !is_on_stack(stopped, at) ||
      !get(locks, at, &item, sizeof item) || item.kind >= CS_COUNT(kinds))
    return;
  object = item.object;  // of a Monitor: its AwareLock
  if (item.kind == LOCK &&
      (!is_on_stack(stopped, item.object) || !get(locks, item.object, &object, sizeof object)))
    return;
  thread->lock = (struct cs_outside_lock){
      .kind = kinds[item.kind], .object = object, .place = at, .ends = item.limit_ms >= 0};
}

// ---- Who holds it ----

static uint32_t managed_id(const struct cs_outside_locks *locks, uint64_t clr_thread) {
  uint32_t id;
  return clr_thread != 0 && get(locks, clr_thread + locks->world->layout.thread.id, &id, sizeof id)
             ? id
             : 0;
}

static void held_by(struct cs_outside_lock *lock, uint32_t index) {
  lock->owner = CS_OUTSIDE_OWNER_THREAD;
  lock->by = index;
}

// The id is that of an OS thread, in the process's PID namespace.
static void set_owner_by_id(const struct cs_outside *outside, uint32_t id,
                            struct cs_outside_lock *lock) {
  lock->owner = CS_OUTSIDE_OWNER_ENDED;
  for (uint32_t i = 0; i < outside->count; i++) {
    const struct cs_outside_signs *s = &outside->threads[i].signs;
    if (s->clr_thread != 0 && (uint32_t)s->runtime_tid == id) held_by(lock, i);
  }
}

static void set_owner_by_managed_id(const struct cs_outside_locks *locks,
                                    const struct cs_outside *outside, uint32_t id,
                                    struct cs_outside_lock *lock) {
  lock->owner = CS_OUTSIDE_OWNER_ENDED;
  for (uint32_t i = 0; i < outside->count; i++)
    if (managed_id(locks, outside->threads[i].signs.clr_thread) == id) held_by(lock, i);
}

// The runtime inflates a lock whose owner has ended without the OS id of the owner. The owner's
// managed id may have become another thread's since.
static void set_owner_of_monitor(const struct cs_outside_locks *locks,
                                 const struct cs_outside *outside,
                                 const struct cs_object_monitor *monitor,
                                 struct cs_outside_lock *lock) {
  lock->owner = monitor->locked ? CS_OUTSIDE_OWNER_UNKNOWN : CS_OUTSIDE_OWNER_NOBODY;
  if (!monitor->locked || monitor->owner == 0) return;
  set_owner_by_managed_id(locks, outside, monitor->owner, lock);
  if (lock->owner != CS_OUTSIDE_OWNER_THREAD) return;
  uint64_t os_id = (uint64_t)outside->threads[lock->by].signs.runtime_tid;
  if (monitor->owner_os_id == os_id) return;
  lock->owner = monitor->owner_os_id == 0 ? CS_OUTSIDE_OWNER_UNKNOWN : CS_OUTSIDE_OWNER_ENDED;
}

static bool read_monitor(const struct cs_outside_locks *locks, const struct cs_outside *outside,
                         struct cs_outside_lock *lock) {
  struct cs_object_monitor monitor;
  if (!cs_object_monitor(locks->world, lock->object, &monitor)) return false;
  lock->object = monitor.object;
  set_owner_of_monitor(locks, outside, &monitor, lock);
  return true;
}

static bool read_lock(const struct cs_outside_locks *locks, const struct cs_outside *outside,
                      struct cs_outside_lock *lock) {
  enum { LOCKED = 1 };
  uint32_t owner, state;
  if (locks->heap == NULL || !cs_heap_is(locks->heap, lock->object, space, lock_class) ||
      !cs_heap_get(locks->heap, lock->object, "_owningThreadId", CS_HEAP_U4, &owner) ||
      !cs_heap_get(locks->heap, lock->object, "_state", CS_HEAP_U4, &state))
    return false;
  if ((state & LOCKED) == 0)
    lock->owner = CS_OUTSIDE_OWNER_NOBODY;
  else if (owner != 0)
    set_owner_by_id(outside, owner, lock);
  return true;
}

static bool read_readers(const struct cs_outside_locks *locks, const struct cs_outside *outside,
                         struct cs_outside_lock *lock) {
  uint32_t writer, upgrader;  // as int32_t; -1: nobody
  if (!cs_heap_get(locks->heap, lock->object, "_writeLockOwnerId", CS_HEAP_I4, &writer) ||
      !cs_heap_get(locks->heap, lock->object, "_upgradeLockOwnerId", CS_HEAP_I4, &upgrader))
    return false;
  lock->owner = CS_OUTSIDE_OWNER_READERS;
  bool written = (int32_t)writer > 0;
  lock->upgradeable = !written && (int32_t)upgrader > 0;
  if (written) set_owner_by_managed_id(locks, outside, writer, lock);
  if (lock->upgradeable) set_owner_by_managed_id(locks, outside, upgrader, lock);
  return true;
}

static bool may_move_objects(const struct cs_outside *outside) {
  for (uint32_t i = 0; i < outside->count; i++)
    if (outside->threads[i].suspends) return true;
  return false;
}

void cs_outside_lock_owners(struct cs_outside_locks *locks, struct cs_outside *outside) {
  bool moving = outside->moving = may_move_objects(outside);
  for (uint32_t i = 0; i < outside->count; i++) {
    struct cs_outside_thread *thread = &outside->threads[i];
    struct cs_outside_lock *lock = &thread->lock;
    bool monitor = lock->kind == CS_OUTSIDE_LOCK_MONITOR || lock->kind == CS_OUTSIDE_LOCK_PULSE;
    bool known = lock->kind != CS_OUTSIDE_LOCK_NONE && cs_outside_is_waiting(thread);
    if (known && monitor)
      known = read_monitor(locks, outside, lock);
    else if (known)
      known = !moving &&
              (lock->kind == CS_OUTSIDE_LOCK_LOCK ? read_lock : read_readers)(locks, outside, lock);
    // The upgradeable reader itself waits until no other thread reads.
    if (known && lock->upgradeable && lock->owner == CS_OUTSIDE_OWNER_THREAD && lock->by == i) {
      lock->upgradeable = false;
      lock->owner = CS_OUTSIDE_OWNER_READERS;
    }
    // A thread that has just got the lock is on its way out of the wait.
    if (!known || (lock->owner == CS_OUTSIDE_OWNER_THREAD && lock->by == i &&
                   lock->kind != CS_OUTSIDE_LOCK_PULSE))
      lock->kind = CS_OUTSIDE_LOCK_NONE;
    if (lock->kind == CS_OUTSIDE_LOCK_NONE) continue;
    uint64_t class = moving ? 0 : cs_object_class(locks->world, lock->object);
    if (class == 0 || !cs_object_type(locks->world, class, &lock->type))
      lock->type = (struct cs_object_type){.row = 0};
  }
}

// ---- While the process runs again ----

static char *name_of_type(struct cs_heap_modules *modules, const struct cs_object_type *type) {
  char name[4096];
  if (type->row == 0 ||
      !cs_heap_modules_type_name(modules, cs_heap_modules_number(modules, type->module), type->row,
                                 name, sizeof name))
    return NULL;
  size_t len = strlen(name);
  for (unsigned i = 0; i < type->ranks && len + 40 < sizeof name; i++)
    len += (size_t)snprintf(name + len, sizeof name - len, "[%.*s]",
                            type->rank[i] > 0 ? type->rank[i] - 1 : 0,
                            ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,");
  return strdup(name);
}

// Returns whether all managed frames of the wait are of the framework's own methods that wait: a
// wait that runs other code meanwhile, as a SynchronizationContext may make it do, is not a wait
// for the lock.
static bool is_innermost(const struct cs_outside_thread *thread, bool *writes) {
  static const char prefix[] = "System.Threading.";
  for (uint32_t i = 0; i < thread->count; i++) {
    const struct cs_outside_frame *f = &thread->frames[i];
    if (!cs_outside_is_named(f)) continue;
    if (!cs_has_prefix(f->name, prefix)) return f->sp >= thread->lock.place;
    if (strstr(f->name, "WriteLock") != NULL || strstr(f->name, "UpgradeableReadLock") != NULL)
      *writes = true;
  }
  return true;
}

static bool is_blocked(const struct cs_outside_thread *thread) {
  return thread->lock.kind != CS_OUTSIDE_LOCK_NONE && thread->lock.kind != CS_OUTSIDE_LOCK_PULSE &&
         thread->lock.owner == CS_OUTSIDE_OWNER_THREAD;
}

// A thread waits for one lock, and a lock has one owner: each thread has one successor at most.
static void find_cycle(struct cs_outside *outside, uint32_t begin) {
  struct cs_outside_thread *threads = outside->threads;
  uint32_t at = begin, steps = 0;
  do {
    if (!is_blocked(&threads[at]) || threads[at].lock.cycle != 0 || steps++ > outside->count)
      return;
    at = threads[at].lock.by;
  } while (at != begin);
  outside->cycles++;
  do {
    threads[at].lock.cycle = outside->cycles;
    at = threads[at].lock.by;
  } while (at != begin);
}

void cs_outside_lock_finish(struct cs_heap_modules *modules, struct cs_outside *outside) {
  for (uint32_t i = 0; i < outside->count; i++) {
    struct cs_outside_lock *lock = &outside->threads[i].lock;
    bool writes = false;
    if (lock->kind == CS_OUTSIDE_LOCK_NONE) continue;
    if (!is_innermost(&outside->threads[i], &writes)) lock->kind = CS_OUTSIDE_LOCK_NONE;
    // Native code of the runtime takes the locks of some objects.
    if (lock->kind == CS_OUTSIDE_LOCK_MONITOR && outside->threads[i].waits_for == NULL)
      outside->threads[i].waits_for = "a lock";
    // Readers wait for writers only, also for those that wait themselves.
    if (lock->kind == CS_OUTSIDE_LOCK_READER_WRITER && lock->upgradeable && !writes)
      lock->owner = CS_OUTSIDE_OWNER_READERS;
    lock->type_name = name_of_type(modules, &lock->type);
  }
  for (uint32_t i = 0; i < outside->count; i++) find_cycle(outside, i);
}
