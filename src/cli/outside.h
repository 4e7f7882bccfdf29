// SPDX-License-Identifier: MIT
// The stacks of all threads of another process, taken from outside at one instant: no agent, and
// nothing is asked of the runtime, so a process that hangs answers, too. One thread.
#ifndef CS_OUTSIDE_H
#define CS_OUTSIDE_H

#include "base/error.h"
#include "lines/lines.h"
#include "walk/walk.h"

// Which build of a module it is: the linker's stamp (a hash of what it made, if the build is
// deterministic), and the image's size. Zeros: not known.
struct cs_build {
  uint32_t stamp, size;
};

struct cs_outside_frame {
  enum cs_code_kind kind;
  uint32_t flags;  // CS_FRAME_*
  bool funclet;
  uint64_t ip, sp;
  char *name;      // "Namespace.Type.Method", "malloc", "[stub]"; "": a native frame without one
  char *module;    // the file's path; NULL: none
  uint32_t token;  // a method's mdMethodDef in that file; 0: it has none
  struct cs_build build;  // of the module that the process has loaded
  uint64_t offset;        // of a native frame's ip: its virtual address in the file
  uint32_t il;            // that its instruction comes from, or CS_IL_* (remote/il.h)
  const char *source;     // file of the line, as the compiler was given it; NULL: not known
  uint32_t line;
};

struct cs_outside_thread {
  int tid;
  bool walked;       // false: it had ended before it could be stopped
  bool managed;      // the runtime knows it
  bool cooperative;  // it runs managed code, or runtime code that a collection would wait for
  bool suspends;     // it keeps the others from running managed code, or is about to
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
  uint32_t major, minor, build;  // of the runtime
  char *command;
  uint64_t stopped_ns;  // how long the process stood still
  uint32_t count;
  struct cs_outside_thread *threads;
  struct cs_lines *lines;  // whose file names the frames have
};

struct cs_outside_options {
  bool native;     // with native frames
  bool raw_names;  // methods as compilers named them
};

// NULL: `err` has the reason.
struct cs_outside *cs_outside_take(int pid, const struct cs_outside_options *options,
                                   struct cs_error *err);
void cs_outside_free(struct cs_outside *outside);

// ---- Names (outside_names.c) ----
struct cs_outside_names;
struct cs_outside_names *cs_outside_names_new(bool raw);
// What the frame is, as far as the process' memory tells. The process is stopped.
void cs_outside_identify(struct cs_outside_names *names, const struct cs_world *world,
                         const struct cs_frame *frame, struct cs_outside_frame *out);
// The name that the program has given a thread, where the kernel has only the beginning, `name`.
void cs_outside_thread_name(const struct cs_world *world, uint64_t clr_thread, char *name,
                            size_t cap);
// What it is called, from files, and its line. The process runs again: files take time.
void cs_outside_name(struct cs_outside_names *names, struct cs_outside_frame *frame);
void cs_outside_line(struct cs_lines *lines, struct cs_outside_frame *frame);
// What a thread waits for, by the framework's method that it waits in. NULL: none that is known.
const char *cs_outside_wait(const struct cs_outside_frame *frames, uint32_t count);
void cs_outside_names_free(struct cs_outside_names *names);

#endif
