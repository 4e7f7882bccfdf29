// SPDX-License-Identifier: MIT
// The stacks of all threads of another process, taken from outside at one instant: no agent, and
// nothing is asked of the runtime, so a process that hangs answers, too. One thread.
#ifndef CS_STACK_OUTSIDE_H
#define CS_STACK_OUTSIDE_H

#include "base/error.h"
#include "metadata/lines.h"
#include "remote/remote.h"
#include "walk/walk.h"

enum { CS_OUTSIDE_MAX_FRAMES = 65536 };

struct cs_outside_frame {
  enum cs_code_kind kind;
  uint32_t flags;  // CS_FRAME_*
  bool funclet;
  uint64_t ip, sp;
  char *name;       // "Namespace.Type.Method", "malloc", "[stub]"; "": a native frame without one
  char *module;     // the file's path; NULL: none
  uint32_t token;   // a method's mdMethodDef in its module; 0: it has none
  uint32_t number;  // of that module, or of the native image
  bool runtime;     // its image is the one that the runtime is in
  uint64_t offset;  // of a native frame's ip: its virtual address in the file
  uint32_t il;      // that its instruction comes from, or CS_IL_* (remote/il.h)
  const char *source;  // file of the line, as the compiler was given it; NULL: not known
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

// What shows how a thread stands to a collection, of the instant of its stack (outside_gc.c).
struct cs_outside_signs {
  int own_tid;                      // as the runtime has it
  uint64_t clr_thread;              // the runtime's Thread; 0: it does not know the thread
  uint64_t futex;                   // what it waits on, 8 bytes; 0: no futex
  enum cs_code_kind leaf;           // code that it is in
  uint32_t depth;                   // how many frames it has
  uint64_t managed_ip, managed_sp;  // of the youngest managed one; 0: it has none
  uint64_t caller_sp;               // of that one's caller
  bool jitted;                      // that managed frame is of jitted code
  bool collects, other, unknown;    // of its callers some are such methods of the collector's
  bool trapped;                     // it stands where the runtime holds threads up
};

struct cs_outside_thread {
  int tid;
  bool walked;       // false: it had ended before it could be stopped
  bool managed;      // the runtime knows it
  bool cooperative;  // it runs managed code, or runtime code that a collection would wait for
  bool suspends;     // it keeps the others from running managed code, or is about to
  enum cs_outside_reason reason;  // if it suspends
  enum cs_outside_gc gc;
  struct cs_outside_signs signs;
  char name[512];
  char state[64];         // when it was stopped: "running", "waiting in futex"
  const char *waits_for;  // in the runtime's own words: "a task"; NULL: that is not known
  enum cs_stop stop;
  uint64_t stop_ip;
  uint32_t count;
  struct cs_outside_frame *frames;
};

struct cs_outside {
  int pid;
  uint32_t major, minor, build;  // of the runtime; 0.0.0: not known
  char *command;
  uint64_t stopped_ns;  // how long the process stood still
  uint32_t count;
  struct cs_outside_thread *threads;
  struct cs_target *target;
  struct cs_lines *lines;  // whose file names the frames have
  char refused[1024];      // native images without names, and why; "": none
};

struct cs_outside_options {
  bool native;     // with native frames
  bool raw_names;  // methods as compilers named them
};

// ---- Collections (outside_gc.c) ----
// Each frame of a thread, from the leaf on; and when all of them were there. The process is
// stopped.
void cs_outside_see(struct cs_remote *remote, const struct cs_frame *frame,
                    struct cs_outside_signs *signs);
void cs_outside_seen(struct cs_remote *remote, const struct cs_remote_thread *stopped,
                     struct cs_outside_thread *thread);
// Who suspends the runtime, and why; who collects; and who waits for either: by all signs together.
void cs_outside_judge(struct cs_remote *remote, struct cs_outside *outside);

// NULL: `err` has the reason.
struct cs_outside *cs_outside_take(int pid, const struct cs_outside_options *options,
                                   struct cs_error *err);
void cs_outside_free(struct cs_outside *outside);

// ---- Names (outside_names.c) ----
struct cs_outside_names;
// `target`: the process' files.
struct cs_outside_names *cs_outside_names_new(const struct cs_world *world,
                                              const struct cs_target *target, bool raw);
// What the frame is, as far as the process' memory tells. The process is stopped.
void cs_outside_identify(struct cs_outside_names *names, const struct cs_frame *frame,
                         struct cs_outside_frame *out);
// The name that the program has given a thread, where the kernel has only the beginning, `name`.
void cs_outside_thread_name(const struct cs_world *world, uint64_t clr_thread, char *name,
                            size_t cap);
// What the modules that were met say of their PDBs, and are called if they have no path. The
// process runs again.
void cs_outside_add_modules(struct cs_outside_names *names, struct cs_lines *lines);
// What it is called, and its line. The process runs again: files, and whole metadata, take time.
void cs_outside_name(struct cs_outside_names *names, struct cs_outside_frame *frame);
void cs_outside_line(struct cs_lines *lines, struct cs_outside_frame *frame);
// What a thread waits for, by the framework's method that it waits in. NULL: none that is known.
const char *cs_outside_wait(const struct cs_outside_frame *frames, uint32_t count);
// Why native images' files gave no names: "libx.so (why), ...". "": none was refused.
void cs_outside_refused(const struct cs_outside_names *names, char *text, size_t cap);
void cs_outside_names_free(struct cs_outside_names *names);

#endif
