// SPDX-License-Identifier: MIT
// The event of a monitor comes in cooperative mode, and its LockID is the monitor's address, in
// memory that is never freed. The event of a System.Threading.Lock comes from managed code through
// a QCall, in preemptive mode: its LockID is a wait handle, so the owner is in the object alone,
// and the object's address is good only until a collection moves it.
//
// Invariants: `stops` is odd while the runtime may move objects, and whatever the agent's thread
// reads from an object counts only if `stops` was even and the same before and after; a
// System.Threading.Lock counts only if the object is of that class. The class of a monitor's object
// is read where the wait begins, so it is known during a collection, too. It is that of the
// monitor's object as long as the thread waits, because what is waited for is alive, and until the
// runtime is suspended again, without which no monitor goes over to another object and no class is
// unloaded. All reads are guarded. A thread writes its own `wait`. A System.Threading.Lock has no
// event where TryEnter gives up, so it is waited for only between the events of its wait handle.
// A wait that Thread.Interrupt ends has no event at all, and lasts until the thread's next one.
// Signal-safe: no.
#include "events/lock_waits.h"

#include "codemap/monitor.h"
#include "signal/signal.h"

// `class` is 0 until the rest is set, and then stays as it is. Atomic.
static struct cs_lock_layout lock_layout;
static bool layout_wanted;
static uint32_t stops;

// ---- The thread that waits ----

static struct cs_lock_wait *wait_of(const struct cs_thread *thread) {
  struct cs_agent_thread *t = cs_load_acquire(&thread->agent);
  return t != NULL ? &t->lock_wait : NULL;
}

void cs_lock_wait_begin(const struct cs_thread *thread, uint64_t lock, uint64_t object) {
  struct cs_lock_wait *wait = wait_of(thread);
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  if (wait == NULL || world == NULL) return;
  cs_lock_wait_end(thread);
  bool monitor = cs_is_cooperative(world, thread->clr_thread);
  uint32_t now = cs_load_acquire(&stops);
  if (!monitor && cs_load_acquire(&lock_layout.class) == 0) cs_store_release(&layout_wanted, true);
  wait->depth = 0;
  // Written with release: no earlier than the end of the wait before.
  // A thread in cooperative mode keeps objects where they are. One that has not moved since this
  // thread's last wait is not read again.
  if (!monitor)
    cs_store_release(&wait->class, 0u);
  else if (wait->class == 0 || wait->monitor == 0 || wait->object != object || wait->stops != now)
    cs_store_release(&wait->class, object != 0 ? cs_object_class(world, object) : 0);
  cs_store_release(&wait->monitor, monitor ? lock : 0);
  cs_store_release(&wait->object, object);
  cs_store_release(&wait->stops, now);
  cs_add_seq(&wait->serial, 1);
}

void cs_lock_wait_end(const struct cs_thread *thread) {
  struct cs_lock_wait *wait = wait_of(thread);
  if (wait == NULL) return;
  if ((cs_load_relaxed(&wait->serial) & 1) != 0) cs_add_seq(&wait->serial, 1);
  wait->awake = false;
}

void cs_lock_wait_sleeps(const struct cs_thread *thread, uint64_t depth) {
  struct cs_lock_wait *wait = wait_of(thread);
  if (wait == NULL || cs_load_relaxed(&wait->monitor) != 0) return;
  bool waits = (cs_load_relaxed(&wait->serial) & 1) != 0;
  if (waits && wait->depth == 0)
    wait->depth = depth;
  else if (waits && wait->depth != depth)
    cs_lock_wait_end(thread);
  else if (wait->awake && wait->depth == depth)
    cs_add_seq(&wait->serial, 1);
  wait->awake = false;
}

void cs_lock_wait_wakes(const struct cs_thread *thread) {
  struct cs_lock_wait *wait = wait_of(thread);
  if (wait == NULL || cs_load_relaxed(&wait->monitor) != 0 || wait->depth == 0) return;
  if ((cs_load_relaxed(&wait->serial) & 1) == 0) return;
  cs_add_seq(&wait->serial, 1);
  wait->awake = true;
}

uint64_t cs_lock_wait_class(const struct cs_thread *thread) {
  const struct cs_lock_wait *wait = wait_of(thread);
  if (wait == NULL || wait->object == 0) return 0;
  return wait->monitor != 0 ? wait->class : cs_load_acquire(&lock_layout.class);
}

// ---- Suspensions ----

// After an attach the first suspension may be reported from its middle on.
void cs_lock_objects_may_move(void) {
  __atomic_store_n(&stops, (cs_load_acquire(&stops) + 1) | 1, __ATOMIC_SEQ_CST);
}

void cs_lock_objects_stay(void) {
  __atomic_store_n(&stops, (cs_load_acquire(&stops) | 1) + 1, __ATOMIC_SEQ_CST);
}

// ---- The agent's thread ----

bool cs_lock_layout_is_wanted(void) {
  return cs_load_acquire(&layout_wanted) && cs_load_acquire(&lock_layout.class) == 0;
}

void cs_lock_layout_set(const struct cs_lock_layout *layout) {
  lock_layout.owner = layout->owner;
  lock_layout.state = layout->state;
  cs_store_release(&lock_layout.class, layout->class);
}

bool cs_lock_wait_read(const struct cs_agent_thread *t, struct cs_lock_wait *out) {
  const struct cs_lock_wait *wait = &t->lock_wait;
  uint32_t now = cs_load_acquire(&stops);
  out->serial = cs_load_acquire(&wait->serial);
  if ((out->serial & 1) == 0) return false;
  out->monitor = cs_load_acquire(&wait->monitor);
  out->object = cs_load_acquire(&wait->object);
  out->class = cs_load_acquire(&wait->class);
  out->stops = cs_load_acquire(&wait->stops);
  if (out->monitor != 0) out->stops = now;
  return cs_load_acquire(&wait->serial) == out->serial;
}

static enum cs_lock_holder look_at_monitor(const struct cs_world *world,
                                           const struct cs_lock_wait *wait,
                                           struct cs_lock_owner *out) {
  struct cs_object_monitor monitor;
  if (!cs_object_monitor(world, wait->monitor, &monitor)) return CS_LOCK_UNKNOWN;
  out->owner_at = wait->monitor + CS_MONITOR_OWNER;
  out->owner = (uint32_t)monitor.owner_os_id;
  out->class = cs_load_acquire(&stops) == wait->stops ? wait->class : 0;
  if (!monitor.locked) return CS_LOCK_FREE;
  return out->owner != 0 ? CS_LOCK_HELD : CS_LOCK_UNKNOWN;
}

static enum cs_lock_holder look_at_lock(const struct cs_world *world,
                                        const struct cs_lock_wait *wait,
                                        struct cs_lock_owner *out) {
  enum { LOCKED = 1 };
  uint32_t state;
  const struct cs_lock_layout *l = &lock_layout;
  out->class = cs_load_acquire(&l->class);
  out->owner_at = wait->object + l->owner;
  if (out->class == 0 || (wait->stops & 1) != 0 ||
      cs_object_class(world, wait->object) != out->class ||
      !cs_mem_read_guarded(&world->mem, out->owner_at, &out->owner, sizeof out->owner) ||
      !cs_mem_read_guarded(&world->mem, wait->object + l->state, &state, sizeof state) ||
      cs_load_acquire(&stops) != wait->stops)
    return CS_LOCK_UNKNOWN;
  if ((state & LOCKED) == 0) return CS_LOCK_FREE;
  return out->owner != 0 ? CS_LOCK_HELD : CS_LOCK_UNKNOWN;
}

enum cs_lock_holder cs_lock_wait_owner(const struct cs_lock_wait *wait, struct cs_lock_owner *out) {
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  *out = (struct cs_lock_owner){.owner = 0};
  if (world == NULL) return CS_LOCK_UNKNOWN;
  return wait->monitor != 0 ? look_at_monitor(world, wait, out) : look_at_lock(world, wait, out);
}
