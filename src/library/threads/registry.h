// SPDX-License-Identifier: MIT
// registry: the threads that may be walked. Look-ups take no lock and are async-signal-safe, except
// cs_registry_self_cached; changes take a lock, and are not for handlers.
#pragma once

#include "base/error.h"
#include "signal/thread.h"

// Reserves the arena (once per process; it is never given back). Returns false if no address space
// is left.
bool cs_registry_init(struct cs_error *err);

// The life of a managed thread. `assigned` runs on the thread itself, and so does `destroyed` if
// the runtime has made the thread; otherwise `destroyed` comes later, on the finalizer's thread.
// `attached` is for threads that existed before the library, whose stack bounds are found on first
// use. Each may be called without the others. `assigned` with clr_thread 0 registers a native
// thread under its tid.
struct cs_thread *cs_registry_created(uint64_t clr_thread);
struct cs_thread *cs_registry_assigned(uint64_t clr_thread, uint32_t tid);
struct cs_thread *cs_registry_attached(uint64_t clr_thread, uint32_t tid);
// Waits until the thread is not pinned, puts its old alternate stack back, and forgets the thread.
void cs_registry_destroyed(uint64_t clr_thread);
void cs_registry_destroyed_entry(struct cs_thread *thread);
// Notes that the OS thread has ended: its tid may be another thread's, though the runtime may still
// know it.
void cs_registry_ended(struct cs_thread *thread);

struct cs_thread *cs_registry_find(uint64_t clr_thread);  // NULL: not known, or gone
struct cs_thread *cs_registry_find_tid(uint32_t tid);     // NULL: not registered
struct cs_thread *cs_registry_self(void);                 // the calling thread; NULL: as above
// The same outside of handlers, with a system call only the first time on a thread.
struct cs_thread *cs_registry_self_cached(void);
// Returns whether the runtime knows the calling thread. (contract: C17)
bool cs_caller_is_managed(void);
// Returns whether this was the id of a thread that has been destroyed. The last 1,024 are
// remembered.
bool cs_registry_was_destroyed(uint64_t clr_thread);
// Returns how many threads have been destroyed so far.
uint32_t cs_registry_deaths(void);
enum { CS_REGISTRY_REMEMBERED = 1024 };

// All entries that were ever in use, in no order: for (i = 0; i < cs_registry_count(); i++). Check
// tid != 0, and pin before use.
uint32_t cs_registry_count(void);
struct cs_thread *cs_registry_at(uint32_t i);

// Keeps a thread from being forgotten: its ThreadDestroyed waits, so unpin soon. Returns false if
// the thread is gone, or the entry is another thread's by now.
bool cs_thread_pin(struct cs_thread *thread, uint64_t clr_thread);
void cs_thread_unpin(struct cs_thread *thread);
// Keeps the runtime's Thread from being freed, whether it has an OS thread or not, until
// cs_thread_unpin. Returns false if ThreadDestroyed has begun.
bool cs_thread_keep(struct cs_thread *thread, uint64_t clr_thread);
