// SPDX-License-Identifier: MIT
// The walk over another process. No agent runs there and nothing is written to it: its memory is
// read through the kernel, its threads are stopped with ptrace, and the code that walks in the
// handler walks here, too (cs_walk_begin, cs_walk_next). Same user, or root. Not for handlers. One
// thread of the caller's at a time, and always the same one for everything that uses ptrace.
//
//   remote = cs_remote_open(pid, &err);
//   cs_remote_stop(remote, &err);          // unless the threads are stopped already
//   for each tid of cs_remote_threads():
//     cs_remote_thread(remote, tid, &thread, &err);
//     cs_remote_walk_begin(remote, &thread, &walk);
//     while (cs_walk_next(&walk, &frame)) ...
//   cs_remote_resume(remote);                  // the threads run again
//   ...
//   cs_remote_stop(remote, &err);          // forgets all memory that was read before
#pragma once

#include "base/error.h"
#include "images/images.h"
#include "walk/walk.h"

struct cs_remote;

// A stopped thread: everything that a walk starts from.
struct cs_remote_thread {
  int tid;
  struct cs_regs regs;
  uint64_t thread_pointer;
  int call;               // the system call that the stop interrupted; -1: none
  struct cs_stack stack;  // bounds, from /proc/PID/maps; its alternate stack if it is on one
  uint64_t clr_thread;    // Thread *; 0: CoreCLR does not know the thread
};

// Opens the process: finds CoreCLR in it, reads its data contract, and compiles the unwind data of
// its native images. The process need not be stopped. Returns NULL on failure; *err says why not
// (no such process, no permission, no CoreCLR in it, a version that is not supported).
struct cs_remote *cs_remote_open(int pid, struct cs_error *err);
// Resumes all threads that cs_remote_stop has stopped.
void cs_remote_close(struct cs_remote *remote);

// What the walk reads: offsets, images, the source of memory.
const struct cs_world *cs_remote_world(const struct cs_remote *remote);

// The runtime's version, "10.0.12"; "": unknown.
enum { CS_REMOTE_VERSION_BYTES = 24 };
void cs_remote_version(const struct cs_remote *remote, char text[CS_REMOTE_VERSION_BYTES]);

// Reads through the cache. Returns false if not all of it is mapped.
bool cs_remote_read(struct cs_remote *remote, uint64_t address, void *dst, size_t len);
// The same without the cache, for reads so large that they would displace its pages.
bool cs_remote_read_large(struct cs_remote *remote, uint64_t address, void *dst, size_t len);
// To be called after the target has run: forgets everything that was read.
void cs_remote_invalidate(struct cs_remote *remote);
// Forgets what was read in [begin, end).
void cs_remote_invalidate_range(struct cs_remote *remote, uint64_t begin, uint64_t end);
// To be called after libraries have been loaded or unloaded: reads the maps again and compiles what
// is new.
void cs_remote_refresh_images(struct cs_remote *remote);

// Stops all threads of the process, including those that are started meanwhile, and forgets what
// was read before. Returns false if none is stopped; *err says why.
bool cs_remote_stop(struct cs_remote *remote, struct cs_error *err);
// Detaches from them: they run again, and signals that arrived meanwhile are delivered.
void cs_remote_resume(struct cs_remote *remote);
// Raises this process's priority, if that is permitted, so that the other process is not stopped
// for longer than necessary; and restores it.
void cs_remote_raise_priority(void);
void cs_remote_restore_priority(void);
// For how long cs_remote_stop waits for a thread that the kernel keeps in a system call; 2 s at
// first. All others are stopped meanwhile.
void cs_remote_set_timeout(struct cs_remote *remote, uint64_t ns);
// After a failed stop, for a caller that goes on: threads that did not stop in time do so later,
// and would stay stopped from then on. Waits for each of them, and lets it run.
void cs_remote_release_late(struct cs_remote *remote);
// Returns the threads that cs_remote_stop has stopped.
unsigned cs_remote_threads(const struct cs_remote *remote, const int **tids);

// Fills in `thread` for a thread that this tracer has stopped. Returns false if it has ended, or is
// not stopped.
bool cs_remote_thread(struct cs_remote *remote, int tid, struct cs_remote_thread *thread,
                      struct cs_error *err);
// Its registers, its thread pointer and the system call that the stop interrupted (-1: none) only.
bool cs_remote_registers(int tid, struct cs_regs *regs, uint64_t *thread_pointer, int *call);

// Returns the thread's id in the process's own PID namespace, by which the runtime knows it.
int cs_remote_own_tid(const struct cs_remote *remote, int tid);

// ---- The collector (collector.c) ----
// The thread that holds the lock on the runtime's list of threads, as a thread that suspends the
// runtime does.
struct cs_remote_holder {
  int own_tid;          // in the process's PID namespace; 0: no thread
  uint64_t clr_thread;  // 0: the thread is not managed
};
// Returns false if that is not known.
bool cs_remote_holder(struct cs_remote *remote, struct cs_remote_holder *holder);
// Which method of the collector's interface to the runtime the instruction belongs to.
enum cs_gc_method {
  CS_GC_METHOD_UNKNOWN,
  CS_GC_METHOD_NONE,
  CS_GC_METHOD_COLLECT,  // by which threads collect: GarbageCollect, Alloc
  CS_GC_METHOD_OTHER,
};
enum cs_gc_method cs_remote_gc_method(struct cs_remote *remote, uint64_t ip);
// The collector's variables for the debugger (GcDacVars); 0: not found, or of another version.
uint64_t cs_remote_gc_variables(struct cs_remote *remote);
// Whether a background collection is in progress.
enum cs_gc_background { CS_GC_BACKGROUND_UNKNOWN, CS_GC_BACKGROUND_NO, CS_GC_BACKGROUND_YES };
enum cs_gc_background cs_remote_gc_background(struct cs_remote *remote);

// cs_walk_begin for that thread.
void cs_remote_walk_begin(struct cs_remote *remote, const struct cs_remote_thread *thread,
                          struct cs_walk *walk);
