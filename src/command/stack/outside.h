// SPDX-License-Identifier: MIT
// The stacks of all threads of another process at one instant, taken from outside: there is no
// agent, and the runtime does nothing, so this works on a process that hangs. One thread.
#pragma once

#include <string.h>

#include "base/error.h"
#include "base/prefix.h"
#include "metadata/lines.h"
#include "metadata/runtime_class.h"
#include "objects/modules.h"
#include "objects/objects.h"
#include "remote/remote.h"
#include "stack/pool.h"
#include "walk/walk.h"

enum { CS_OUTSIDE_MAX_FRAMES = 65536 };

struct cs_outside_frame {
  enum cs_code_kind kind;
  uint32_t flags;  // CS_FRAME_*
  bool funclet;
  uint64_t ip, sp;
  char *name;         // "Namespace.Type.Method", "malloc", "[stub]"; "": a native frame without one
  char *module;       // the file's path; NULL: none
  uint32_t token;     // a method's mdMethodDef in its module; 0: it has none
  uint32_t number;    // number of that module, or of the native image
  uint32_t generics;  // its generic arguments (objects/generics.h)
  bool runtime;       // its image contains the runtime
  enum cs_runtime_class class;  // of a native frame without a name
  uint64_t offset;              // a native frame's ip as a virtual address of its file
  uint32_t il;                  // the IL offset of its instruction, or CS_IL_* (remote/il.h)
  const char *source;           // source file, as the compiler was given it; NULL: unknown
  uint32_t line;
};

enum cs_outside_gc {
  CS_OUTSIDE_GC_NONE,
  CS_OUTSIDE_GC_COLLECTS,
  CS_OUTSIDE_GC_BACKGROUND,  // while the others run
};
enum cs_outside_reason {
  CS_OUTSIDE_REASON_UNKNOWN,
  CS_OUTSIDE_REASON_COLLECTION,
  CS_OUTSIDE_REASON_OTHER,  // a debugger, a profiler, the runtime's own work on its code, ...
};

// What outside_gc.c needs of a thread, at the instant of its stack.
struct cs_outside_signs {
  int runtime_tid;                  // the tid that the runtime has
  uint64_t clr_thread;              // the runtime's Thread; 0: it does not know the thread
  uint64_t futex;                   // the 8 bytes that it waits on; 0: no futex
  enum cs_code_kind leaf;           // the kind of code it is in
  uint32_t depth;                   // number of frames
  uint64_t managed_ip, managed_sp;  // of the youngest managed frame; 0: none
  uint64_t caller_sp;               // of that frame's caller
  bool jitted;                      // that managed frame is jitted
  // Its callers include methods that collect, other methods, or unknown code.
  bool collects, other, unknown;
  bool trapped;  // it stands where the runtime blocks threads
};

enum cs_outside_lock_kind {
  CS_OUTSIDE_LOCK_NONE,           // it waits for no lock, or for an unknown one
  CS_OUTSIDE_LOCK_MONITOR,        // to enter an object's monitor
  CS_OUTSIDE_LOCK_PULSE,          // in Monitor.Wait
  CS_OUTSIDE_LOCK_LOCK,           // System.Threading.Lock
  CS_OUTSIDE_LOCK_READER_WRITER,  // ReaderWriterLockSlim
};
enum cs_outside_owner {
  CS_OUTSIDE_OWNER_UNKNOWN,
  CS_OUTSIDE_OWNER_NOBODY,
  CS_OUTSIDE_OWNER_READERS,  // a ReaderWriterLockSlim does not keep which threads read
  CS_OUTSIDE_OWNER_ENDED,    // a thread that has ended without releasing it
  CS_OUTSIDE_OWNER_THREAD,
};

// The lock that a thread waits for, at the instant of its stack (outside_locks.c).
struct cs_outside_lock {
  enum cs_outside_lock_kind kind;
  uint64_t object;             // 0: unknown
  uint64_t place;              // the wait's frames are those below this stack address
  bool ends;                   // the wait has a time limit
  bool upgradeable;            // the owner has entered as an upgradeable reader, not as a writer
  struct cs_object_type type;  // row 0: unknown
  char *type_name;             // NULL: unknown
  enum cs_outside_owner owner;
  uint32_t by;     // the owner, as an index of `threads`
  uint32_t cycle;  // the thread is in the deadlock of this number; 0: in none
};

struct cs_outside_thread {
  int tid;
  bool walked;       // false: it had ended before it could be stopped
  bool managed;      // the runtime knows it
  bool cooperative;  // it runs managed code, or runtime code that a collection would wait for
  bool suspends;     // it stops the others from running managed code, or is about to
  enum cs_outside_reason reason;  // if it suspends
  enum cs_outside_gc gc;
  struct cs_outside_signs signs;
  char name[512];
  char state[64];         // when it was stopped: "running", "waiting in futex"
  const char *waits_for;  // "a task"; NULL: unknown
  struct cs_outside_lock lock;
  enum cs_stop stop;
  uint64_t stop_ip;
  uint32_t count;
  struct cs_outside_frame *frames;
};

// Workers of the thread pool that wait at one place.
struct cs_outside_wait {
  uint32_t workers;
  const struct cs_outside_frame *in;  // the framework's method; NULL: none, as in native code
  const struct cs_outside_frame *at;  // the method that has called it; NULL: the stack has none
};

// The thread pool (outside_pool.c). A worker is idle if it has no item of work; any other one runs
// or waits.
struct cs_outside_pool {
  struct cs_pool now;
  uint32_t running, waiting, idle;  // by their stacks
  uint32_t wait_count;
  struct cs_outside_wait *waits;  // most workers first
  bool starved;
};

struct cs_outside {
  int pid;
  char version[CS_REMOTE_VERSION_BYTES];  // of the runtime; "": unknown
  char *command;
  uint64_t stopped_ns;  // for how long the process was stopped
  uint32_t count;
  struct cs_outside_thread *threads;
  uint32_t cycles;  // the number of deadlocks
  bool moving;      // a collection was in progress, or about to be, and may have moved objects
  struct cs_target *target;
  struct cs_lines *lines;  // owns the frames' source file names
  struct cs_outside_pool pool;
  char refused[1024];  // native images without names, and why; "": none
};

struct cs_outside_options {
  bool native;     // with native frames
  bool raw_names;  // methods as compilers named them
  bool once;       // one stop only: whether the pool is starved is not asked
};

static inline bool cs_outside_is_waiting(const struct cs_outside_thread *thread) {
  return cs_has_prefix(thread->state, "waiting");
}

// ---- Collections (outside_gc.c) ----
// Called for each frame of a thread, from the leaf on, and once after all of them. The process is
// stopped.
void cs_outside_note_frame(struct cs_remote *remote, const struct cs_frame *frame,
                           struct cs_outside_signs *signs);
void cs_outside_note_thread(struct cs_remote *remote, const struct cs_remote_thread *stopped,
                            struct cs_outside_thread *thread);
// Decides from the signs of all threads which one suspends the runtime and why, which ones collect,
// and which ones wait.
void cs_outside_classify(struct cs_remote *remote, struct cs_outside *outside);

// ---- The thread pool (outside_pool.c) ----
// Finds the pool's objects, as far as that is possible while the process runs. Returns NULL if they
// cannot be read; pool->now says why.
struct cs_heap *cs_outside_pool_open(struct cs_heap_modules *modules, struct cs_outside_pool *pool);
// Reads the pool. The process is stopped.
void cs_outside_pool_read(struct cs_remote *remote, struct cs_heap *heap, struct cs_pool *out);
// Sorts the workers by their stacks, which have names. The process runs again.
void cs_outside_pool_sort(struct cs_outside *outside);
// Returns whether the pool may be starved: a second stop is needed to know.
bool cs_outside_pool_may_starve(const struct cs_outside *outside);
// Stops the process again, half a second later, and decides whether the pool is starved.
void cs_outside_pool_confirm(struct cs_remote *remote, struct cs_heap *heap,
                             struct cs_outside *outside);
// "Task.Wait" of "System.Threading.Tasks.Task.Wait".
const char *cs_outside_short_name(const char *name);

// ---- Locks (outside_locks.c) ----
struct cs_outside_locks;
// `heap`: NULL if objects cannot be read. The process may run.
struct cs_outside_locks *cs_outside_locks_new(const struct cs_world *world, struct cs_heap *heap);
// Called for each frame of a thread, from the leaf on, and once after all of them; then, after
// cs_outside_classify, once for all threads. The process is stopped.
void cs_outside_lock_frame(struct cs_outside_locks *locks, const struct cs_frame *frame,
                           struct cs_outside_thread *thread);
void cs_outside_lock_thread(struct cs_outside_locks *locks, const struct cs_remote_thread *stopped,
                            struct cs_outside_thread *thread);
void cs_outside_lock_owners(struct cs_outside_locks *locks, struct cs_outside *outside);
// Names the types, drops what the frames' names contradict, and finds the deadlocks. The process
// runs again, and frames have names.
void cs_outside_lock_finish(struct cs_heap_modules *modules, struct cs_outside *outside);
void cs_outside_locks_free(struct cs_outside_locks *locks);

// Returns NULL, with the reason in `err`.
struct cs_outside *cs_outside_take(int pid, const struct cs_outside_options *options,
                                   struct cs_error *err);
void cs_outside_free(struct cs_outside *outside);

// ---- Names (outside_names.c) ----
// `target`: the process's files. Both must live longer.
struct cs_outside_names;
struct cs_outside_names *cs_outside_names_new(struct cs_heap_modules *modules,
                                              const struct cs_target *target, bool raw);
// Fills in what the process' memory says of the frame. The process is stopped.
void cs_outside_identify(struct cs_outside_names *names, const struct cs_frame *frame,
                         struct cs_outside_frame *out);
// Completes `name`, of which the kernel keeps only the beginning, by the name that the program has
// set.
void cs_outside_thread_name(const struct cs_world *world, uint64_t clr_thread, char *name,
                            size_t cap);
// Adds the modules of all frames to `lines`, and names those without a path. The process runs
// again.
void cs_outside_add_modules(struct cs_outside_names *names, struct cs_lines *lines);
// The frame's name and line. The process runs again, because files and metadata take time.
void cs_outside_name(struct cs_outside_names *names, struct cs_outside_frame *frame);
// Gives the runtime's frames that have no name their classes, once all frames have been named.
void cs_outside_classes(struct cs_outside_thread *thread);
void cs_outside_line(struct cs_lines *lines, struct cs_outside_frame *frame);
// Returns whether the frame is of managed code with a name of its own, not of native code or a
// stub.
bool cs_outside_is_named(const struct cs_outside_frame *frame);
// What a thread waits for, from the method of the framework that it waits in. Returns NULL if that
// is unknown.
const char *cs_outside_wait(const struct cs_outside_frame *frames, uint32_t count);
// The native images whose files were refused, and why: "libx.so (why), ...".
void cs_outside_refused(const struct cs_outside_names *names, char *text, size_t cap);
void cs_outside_names_free(struct cs_outside_names *names);
