// SPDX-License-Identifier: MIT
// The list of threads that are sampled, and their names in the recording. sampling/thread_life.h
// decides which threads are in it. Not for handlers.
#pragma once

#include "state/state.h"
#include "threads/registry.h"

// Walks of a thread that sleeps where a walk needs more registers than /proc shows
// (sampling/reported_regs.h). The agent's thread only.
struct cs_reported_walks {
  uint32_t times;     // struct cs_reported_regs.times of the report that the other members are
                      // about
  bool misfit;        // the registers are no longer usable
  uint64_t frames;    // a hash of the frames that the walk by them has found; 0: not walked yet
  uint64_t ask_from;  // CLOCK_MONOTONIC, ns: the thread is not asked before
  uint64_t pause_ns;  // between the last time it was asked and the next
  bool wanting;       // its last sample was taken without such registers
};

// The lock that a thread waits for (events/lock_waits.h). The thread writes it, all members are
// atomic.
struct cs_lock_wait {
  uint32_t serial;   // odd: it waits
  uint32_t stops;    // the runtime's stops when the wait began, or, for a monitor, when this copy
                     // was made
  uint64_t monitor;  // its address; 0: it waits for a System.Threading.Lock,
  uint64_t object;   // the address of the lock's object when the wait began
  uint64_t class;    // the MethodTable of a monitor's object; 0: unknown
  // The thread's own. For a System.Threading.Lock:
  uint64_t depth;  // where on its stack the wait's event has come; 0: none has come yet
  bool awake;      // woken: it may have the lock, wait again, or have given up
};

#define CS_NO_LOCK_OWNER UINT32_MAX  // nobody held it

// One for each thread. Samples refer to it by address, so it is freed only when the last of them
// has been read. Fields are accessed with the list's lock held, except where stated.
struct cs_agent_thread {
  // What a scan needs of a thread that has not run, in one cache line. All but the first member:
  // the agent's thread only, without the lock.
  _Alignas(64) uint32_t tid;  // 0: not assigned to an OS thread yet
  bool repeatable;            // its last sample on the wire is of wall mode, and still describes it
  uint32_t repeats;           // weight.c: scans that found it unchanged, and were not sent yet
  uint64_t rested_cpu_ns;     // weight.c: its CPU clock then
  uint64_t rested_to_ns;      // weight.c: it has not run up to then, as far as that clock says,
  uint64_t proven_ns;         // weight.c: and certainly not up to then; 0: not known
  uint64_t written_to;        // wall.c: the end of its last sample that the agent's thread wrote

  struct cs_agent_thread *next, **link;  // `link` is what points to it, while it lives
  struct cs_agent_thread *same_tid;      // the next with an equal hash of its tid, while it lives
  struct cs_thread *thread;  // its entry in the registry; NULL once it has ended, so to be used
                             // only with the lock held, or through a struct cs_pinned
  uint64_t clr_thread;       // 0: a native thread. Constant
  uint32_t id;               // its number in the recording, never reused. Constant
  uint64_t dead_at;  // once it has ended: all of its samples lie before this position of the ring

  // Its name.
  uint32_t announced;    // 1: the wire has the current name. Atomic
  bool named;            // by the program
  bool started_by_pool;  // it inherited the name of a thread pool worker
  char given[16];        // the kernel's name for it when it became a managed thread
  char name[128];

  // thread_life.c.
  bool found;         // a native thread: found by the current scan
  bool room_unknown;  // a native thread: its stack's size could not be determined
  // Wait mode: time-stamp counter; 0: not waiting. Atomic: the thread's own, and the agent's when
  // the recording ends.
  uint64_t waiting_from;
  uint32_t waiting_for;  // the event name of what it waits for; 0: its stack shows that. As above
  uint32_t lock_owner;   // lock mode: the id of the thread that held the lock when this one began
                         // to wait for it; 0: unknown; or CS_NO_LOCK_OWNER. The thread's own
  struct cs_lock_wait lock_wait;

  // CPU mode: what makes it take samples; NULL: nothing does.
  const struct cs_engine *engine;
  uint64_t clock_from, clock_to;  // its CPU clock when its engine began, and at its last sample
  uint64_t event_id;              // engine_perf.c, with the next two
  uint64_t checked_ns, enabled_ns;

  uint64_t asked_ns;  // ask.c: when it was last sent a signal. Atomic

  // sampling/blocked.c
  uint64_t unsampled_from;  // its CPU clock at the last scan, if it has no larger alternate stack
  uint64_t pending_since, pending_sampled;  // asked_ns and the last sample's clock, at a scan;
  uint64_t pending_cpu_ns;                  // its CPU clock at the first scan with these
  uint64_t mask_ns;                         // engines/ask.c: when its signal mask was read
  uint32_t mask_reads;                      // since its event began
  // The last two scans that found that it blocks its signal; 0: none.
  uint64_t blocked_ns, blocked_before_ns;
  bool blocks;      // it does; the agent's thread only
  bool to_unblock;  // it has taken no sample since `blocked_ns`

  // agent/stragglers.c, the watching thread only: the last scan that found it in cooperative mode.
  uint64_t scanned_in;                  // the suspension (struct cs_suspension.begun)
  uint64_t scanned_ns, scanned_cpu_ns;  // the time of that scan; its CPU clock then

  // The agent's thread only, without the lock.
  uint64_t represented_ns;  // engine_clock.c: the CPU time that its samples stand for
  uint64_t owed_scan_ns;    // engine_clock.c: the part of it for which no sample has been asked yet
  uint64_t no_altstack_ns;  // install_altstacks.c: its CPU clock at the last scan; 0: none yet
  uint64_t slept_runs;      // wall.c: its run count at its last sample as a sleeper
  struct cs_reported_walks reported;
  uint64_t accounted_to_ns;  // weight.c: wall time up to which samples account for it
  bool weighed;              // weight.c: a sample of wall time has been weighed
  uint64_t ended_ns;         // when it was removed from the list
  uint64_t owed_ns;          // weight.c: earlier time that its next sample by signal stands for
  uint64_t put_off_ns;       // weight.c: when a signal was last put off
  uint32_t put_off;          // weight.c: signals put off up to the last scan
  uint32_t stackless;        // weight.c: its events without a stack
};

// ---- The list ----
void cs_threads_lock(void);
void cs_threads_unlock(void);
// Calls `visit` for each living thread with the lock held (no call into the CLR) until it returns
// false.
void cs_threads_visit(bool (*visit)(struct cs_agent_thread *thread, void *data), void *data);

// With the lock held: return the first living thread; add one for a registry entry (NULL: no
// memory); give it its tid, once; move one to the dead. Of many threads, none takes longer.
struct cs_agent_thread *cs_threads_living(void);
struct cs_agent_thread *cs_threads_add(struct cs_thread *entry);
void cs_threads_set_tid(struct cs_agent_thread *thread, uint32_t tid);
void cs_threads_remove(struct cs_agent_thread *thread);
// With the lock held. Returns the next living thread with this tid after `last`, or the first one
// (`last` NULL), or NULL. There are several if the kernel has used the number again.
struct cs_agent_thread *cs_threads_with_tid(uint32_t tid, const struct cs_agent_thread *last);

// Frees the dead threads that no sample refers to any more. The agent's thread.
void cs_threads_free_dead(void);
// Wall mode: returns the time after their last samples of all threads that were freed so far. The
// agent's thread.
uint64_t cs_threads_unsampled_ends_ns(void);
// The recording is over and all samples have been read: frees the dead ones, and numbers threads
// from 1 again.
void cs_threads_reset(void);

// A set of threads that outlives the lock, because each is pinned. Zeroed to begin with.
struct cs_pinned {
  struct cs_agent_thread *agent;
  struct cs_thread *thread;  // its entry in the registry
};
struct cs_pinned_list {
  struct cs_pinned *at;
  size_t count, capacity;
};
// Pins a thread and adds it, with the lock held; leaves it out if it is ending. Returns false if
// there is no memory.
bool cs_pinned_add(struct cs_pinned_list *list, struct cs_agent_thread *thread);
// Adds a thread that is pinned already, without the lock.
bool cs_pinned_keep(struct cs_pinned_list *list, const struct cs_pinned *pinned);
// Pins the sampled thread that has this tid. Returns false, with `out->thread` NULL, if there is
// none.
bool cs_pinned_find(uint32_t tid, struct cs_pinned *out);
// Returns the id in the recording of the thread that has this tid, or 0 if it is not sampled.
uint32_t cs_threads_id_of(uint64_t tid);
void cs_pinned_unpin(struct cs_pinned_list *list);  // unpins all: the list is empty then
void cs_pinned_free(struct cs_pinned_list *list);   // frees the memory; unpins nothing

// The living managed threads, unpinned: for the agent's thread, which alone frees them.
// cs_threads_list brings the list up to date. Returns false if there is no memory for all of them.
struct cs_thread_list {
  struct cs_agent_thread **at;
  size_t count, capacity;
  uint32_t changes;  // the number of changes when the list was made
};
bool cs_threads_list(struct cs_thread_list *list);
// Pins one of them. Returns false if it has ended.
bool cs_threads_pin(struct cs_agent_thread *listed, struct cs_pinned *out);

// ---- Names; the agent's thread ----
// Sends the thread's record if the wire does not have the current one. Returns false if there is no
// room.
bool cs_threads_announce(struct cs_agent_thread *thread);
// Gets the name of the thread that has or had this id. Returns false if it is no longer known.
bool cs_threads_name(uint32_t id, char *name, size_t cap);
// Reads the names of threads that the program has not named again.
void cs_threads_refresh_names(void);
