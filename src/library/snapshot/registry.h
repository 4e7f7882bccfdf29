// SPDX-License-Identifier: MIT
// registry: the threads that may be walked. Look-ups take no lock; changes take one, outside of
// handlers. Not for handlers (they get their entry with the signal).
#ifndef CS_SNAPSHOT_REGISTRY_H
#define CS_SNAPSHOT_REGISTRY_H

#include "base/error.h"
#include "signal/signal.h"

// Reserves the arena (once a process; it is never given back). False: out of address space.
bool cs_registry_init(struct cs_error *err);

// Life of a managed thread. `assigned` runs on the thread itself, as `destroyed` does for a thread
// that the runtime has made; for another one it comes later, on the finalizer's thread. `attached`
// is for threads that were there before us: their stack bounds are asked for on first use. Each may
// be called without the others. `assigned` with clr_thread 0 registers a native thread under its
// tid.
struct cs_thread *cs_registry_created(uint64_t clr_thread);
struct cs_thread *cs_registry_assigned(uint64_t clr_thread, uint32_t tid);
struct cs_thread *cs_registry_attached(uint64_t clr_thread, uint32_t tid);
// Waits until nobody has the thread pinned, then puts its alternate stack back and forgets it.
void cs_registry_destroyed(uint64_t clr_thread);
void cs_registry_destroyed_entry(struct cs_thread *thread);
// The OS thread has ended, whatever the runtime still keeps of it: its tid is not its own any more.
void cs_registry_ended(struct cs_thread *thread);

struct cs_thread *cs_registry_find(uint64_t clr_thread);  // NULL: not known, or gone
struct cs_thread *cs_registry_find_tid(uint32_t tid);     // NULL: not registered
struct cs_thread *cs_registry_self(void);                 // the calling thread; NULL: as above
// The same, for who is in no handler: without a system call but for the first time on a thread.
struct cs_thread *cs_registry_own(void);
// Was this the id of a thread that has been destroyed? The last 1,024 are remembered.
bool cs_registry_was_destroyed(uint64_t clr_thread);
// How many have been so far; and the number of those that are remembered.
uint32_t cs_registry_deaths(void);
enum { CS_REGISTRY_REMEMBERED = 1024 };

// All entries that were ever in use, in no order: for (i = 0; i < cs_registry_count(); i++). Check
// tid != 0, and pin before use.
uint32_t cs_registry_count(void);
struct cs_thread *cs_registry_at(uint32_t i);

// Keeps a thread from being forgotten (its ThreadDestroyed waits). False: it is gone, or the entry
// is another thread's by now. Unpin soon.
bool cs_thread_pin(struct cs_thread *thread, uint64_t clr_thread);
void cs_thread_unpin(struct cs_thread *thread);
// Keeps the runtime's Thread from being freed, whether it has an OS thread or not. False: its end
// has been told. Ended by cs_thread_unpin, too.
bool cs_thread_keep(struct cs_thread *thread, uint64_t clr_thread);

// The calling thread's stack, [lo, hi). False when it cannot be found out.
bool cs_stack_of_self(struct cs_stack *stack);
// The mapping that holds `addr`, as a stack (stackmap.c). False: there is none.
bool cs_stack_around(uint64_t addr, struct cs_stack *stack);
// The same for many at once: all mappings that can hold stacks, as they are now.
struct cs_stack_maps {
  struct cs_stack *stacks;
  uint32_t count;
};
void cs_stack_maps_read(struct cs_stack_maps *all);
bool cs_stack_maps_find(const struct cs_stack_maps *all, uint64_t addr, struct cs_stack *stack);
void cs_stack_maps_free(struct cs_stack_maps *all);
// The same by the one mapping that holds the sp, and the alternate stack that is set: for handlers
// (bounds.c).
bool cs_stack_by_maps(uint64_t sp, struct cs_stack *stack);
void cs_altstack_of_self(struct cs_stack *stack);

// native_stack.c: of a thread that was there before us, or that the runtime does not know, the
// bounds of its stack, and whether that has room for a signal. Nothing is learnt of one whose stack
// the C library has not made.
void cs_thread_learn_stack(struct cs_thread *entry, uint32_t tid);

// ---- Alternate stacks (altstack.c) ----
// Makes one for a thread; leaves sp 0 when there is no memory.
void cs_altstack_map(struct cs_altstack *alt, uint32_t tid);
void cs_altstack_enter(struct cs_altstack *alt);  // on the thread itself: in use from now on
// It is not wanted any more. On the thread itself: the old one back. On another one: it stays
// mapped until there is no thread of that tid that could still use it.
void cs_altstack_leave(struct cs_altstack *alt);
void cs_altstack_free(struct cs_altstack *alt);  // of one that was never in use
// May the thread be sent a signal at any time? A managed one that was there before us may not be
// until it has its larger stack (equip.c). On a native one the runtime has no fault to handle.
// And none may be where code with small stacks is in the process (docs/signal-safety.md).
static inline bool cs_thread_is_equipped(const struct cs_thread *thread) {
  if (cs_load_acquire(&cs_signal.small_stacks) != 0) return false;
  return thread->clr_thread == 0 || cs_load_acquire(&thread->altstack.ready) != 0;
}
// And has its own stack, which the signal comes to, room for it? A native thread's must be known to
// have; a managed one's, which the runtime itself signals, must not be known to have none.
static inline enum cs_room cs_thread_room(const struct cs_thread *thread) {
  if (thread->clr_thread == 0) return (enum cs_room)cs_load_acquire(&thread->room);
  uint64_t hi = cs_load_acquire(&thread->stack.hi);
  return hi == 0 || hi - thread->stack.lo >= CS_LEAST_STACK ? CS_ROOM_ENOUGH : CS_ROOM_SMALL;
}

#endif
