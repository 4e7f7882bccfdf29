// SPDX-License-Identifier: MIT
// Which lock a thread waits for, by the runtime's contention events, and who holds that lock at
// this moment, by the runtime's memory. Not for handlers.
#pragma once

#include "state/threads.h"

// ---- The thread that waits, in the runtime's callbacks ----
// `lock` and `object` are the event's LockID and AssociatedObjectID.
void cs_lock_wait_begin(const struct cs_thread *thread, uint64_t lock, uint64_t object);
void cs_lock_wait_end(const struct cs_thread *thread);
// The calling thread begins or ends to wait for a handle, which may be that of the lock. All waits
// for one lock begin at the same depth of the stack, by which they are told from others.
void cs_lock_wait_sleeps(const struct cs_thread *thread, uint64_t depth);
void cs_lock_wait_wakes(const struct cs_thread *thread);
// Returns the MethodTable of the object whose lock the thread waited for last, or 0 if that is
// unknown.
uint64_t cs_lock_wait_class(const struct cs_thread *thread);

// ---- The runtime's callbacks, of one thread at a time ----
void cs_lock_objects_may_move(void);  // RuntimeSuspendFinished
void cs_lock_objects_stay(void);      // RuntimeResumeStarted

// ---- The agent's thread ----
// The class System.Threading.Lock, and where it has its owner's OS id and its state. Until it is
// known, holders of such locks are unknown.
struct cs_lock_layout {
  uint64_t class;
  uint32_t owner, state;
};
bool cs_lock_layout_is_wanted(void);  // such a lock is waited for, and the class is not known
void cs_lock_layout_set(const struct cs_lock_layout *layout);

// A copy of what the thread waits for. Returns false if it waits for no lock.
bool cs_lock_wait_read(const struct cs_agent_thread *thread, struct cs_lock_wait *out);

enum cs_lock_holder {
  CS_LOCK_HELD,
  CS_LOCK_FREE,     // between two holders
  CS_LOCK_UNKNOWN,  // its object has moved since the wait began, or the owner had ended before
};
struct cs_lock_owner {
  uint64_t owner_at;  // where the owner's OS id is
  uint64_t class;     // the MethodTable of the lock's object; 0: unknown
  uint32_t owner;     // the OS id
};
enum cs_lock_holder cs_lock_wait_owner(const struct cs_lock_wait *wait, struct cs_lock_owner *out);
