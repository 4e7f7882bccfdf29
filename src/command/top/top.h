// SPDX-License-Identifier: MIT
// `clrsnap top`: a moment of a running program as numbers (model), as a grid of text (render), as
// plain text and JSON, and on a terminal (screen). Only cmd_top.c uses all of them. Shares are of
// the time that the samples stand for: CPU time in cpu mode, time in wall mode.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "process/counters.h"
#include "profile/profile.h"

// ---- The model, top_model.c ----
enum cs_top_sort { CS_TOP_BY_SELF, CS_TOP_BY_TOTAL, CS_TOP_BY_NAME };

#define CS_TOP_FILTER 64

struct cs_top_view {
  bool threads;  // else methods
  enum cs_top_sort sort;
  bool native;  // with native frames; else their time belongs to the managed caller
  bool whole;   // since the start; else the window
  char filter[CS_TOP_FILTER];
};

struct cs_top_method {
  uint32_t frame;      // frame of `methods`
  double self, total;  // shares, 0 to 1
};
struct cs_top_thread {
  uint32_t tid;
  const char *name;
  double cpu;        // in processors: 1 is one of them; < 0: not measured yet
  double share;      // of the samples' time
  uint32_t hottest;  // method; CS_NO_TEXT: none
};

// A thread of the process, as /proc has it.
struct cs_top_task {
  uint32_t tid;
  char name[16];
  char state;      // R, S, D, ...
  uint64_t ticks;  // of CPU time that it has used
  double cpu;
};

struct cs_top_sample {  // or several with the same leaf, in one slot of the window
  uint64_t at_ns, weight;
  uint32_t leaf;
};

#define CS_TOP_CLASSES 32

// A frame's part in the classes of the runtime's own code, of which 0 is none: a frame of the
// runtime without a name is shown as its class, or as that of its nearest caller that has one, as
// far as only native frames lead there.
struct cs_top_part {
  bool native, runtime;  // runtime: without a name
  uint8_t class;
};

// The methods of a frame of the recording.
struct cs_top_frame {
  uint32_t method;       // CS_NO_TEXT: unknown so far
  uint32_t outer;        // index in `outer` of the methods that it was inlined into; 0: none
  bool awaits, resumes;  // not on the stack, but awaiting; has resumed what is awaited
  struct cs_top_part part;
};

struct cs_top {
  const struct cs_tree *tree;   // the recording's: nodes of threads and frames
  struct cs_profile methods;    // its frames are the methods
  struct cs_top_frame *frames;  // by frame of the recording
  size_t frame_count, frame_capacity;
  uint32_t *outer;  // lists of methods, innermost first, each ends with CS_NO_TEXT
  size_t outer_count, outer_capacity;
  bool has_awaits;                        // a frame awaits
  uint32_t class_method[CS_TOP_CLASSES];  // by class; set by the caller
  const uint8_t *thread_class;  // by thread (frame of the tree's first level); set by the caller
  size_t thread_count;
  uint64_t window_ns;
  struct cs_top_sample *queue;  // the samples in the window, a ring
  size_t queue_first, queue_count, queue_capacity;
  uint64_t expired;  // samples that have left the queue
  uint64_t *latest;  // by node: the number of its last queued sample, from 1; 0: none
  uint64_t *window;  // by node: weight of the samples in the window with that leaf
  size_t node_count;
  uint64_t *frozen[2];  // by node, of the window and since the start; NULL: not frozen
  size_t frozen_count;
};

void cs_top_init(struct cs_top *top, const struct cs_tree *tree, uint64_t window_ns);
// Sets the method of the recording's next frame (CS_NO_TEXT: unknown so far), or of an earlier one.
void cs_top_add_frame(struct cs_top *top, uint32_t method);
void cs_top_set_frame(struct cs_top *top, size_t frame, uint32_t method);
// The frame is that many methods, each inlined into the one before. At most once per frame.
void cs_top_set_inlined(struct cs_top *top, size_t frame, const uint32_t *methods, size_t count);
void cs_top_set_async(struct cs_top *top, size_t frame, bool awaits, bool resumes);
void cs_top_set_part(struct cs_top *top, size_t frame, struct cs_top_part part);
// A new sample, which the tree has counted already.
void cs_top_add(struct cs_top *top, uint64_t now_ns, uint32_t leaf, uint64_t weight);
void cs_top_expire(struct cs_top *top, uint64_t now_ns);
// While frozen, the tables do not change, although samples arrive.
void cs_top_freeze(struct cs_top *top, bool on);
void cs_top_free(struct cs_top *top);

// Returns the tables, which the caller frees. Their texts belong to what they were made from.
struct cs_top_method *cs_top_methods(const struct cs_top *top, const struct cs_top_view *view,
                                     size_t *count);
struct cs_top_known {  // a thread of the recording
  uint32_t tid;
  const char *name;
};
struct cs_top_thread *cs_top_threads(const struct cs_top *top, const struct cs_top_view *view,
                                     const struct cs_top_task *tasks, size_t task_count,
                                     const struct cs_top_known *known, size_t known_count,
                                     size_t *count);

// ---- What the kernel says of the process, top_proc.c ----
struct cs_top_proc {
  struct cs_top_task *tasks;
  size_t count, capacity;
  uint64_t at_ns;      // when they were read; 0: never
  uint64_t ticks;      // of the process
  double cpu;          // in processors, since the last reading; < 0: this is the first
  uint64_t rss_bytes;  // 0: not known
};
// Returns false, and changes nothing, if the process is gone.
bool cs_top_proc_read(struct cs_top_proc *proc, pid_t pid, uint64_t now_ns);
void cs_top_proc_free(struct cs_top_proc *proc);

// Where most workers of a starved pool wait, with the numbers of the scan that has found it.
struct cs_top_cause {
  uint32_t waiting, workers;  // workers that wait there, of how many
  uint64_t queued;
  double age_s;     // since the scan
  char place[512];  // "Task.Wait at Shop.Cart.Load (Cart.cs:12)"; "": not known
  char why[256];    // the place cannot be known; "": no scan has ended yet
};

// The thread pool, of the counters' last second and of the kernel's states.
struct cs_top_pool {
  bool known;
  uint32_t threads, asleep;  // workers; the process has no other threads of their name
  uint64_t queued;
  double completed_per_s;
  bool starved;
  struct cs_top_cause cause;  // set by the caller
};

// The pool, from what was just read and the counters.
void cs_top_pool_read(struct cs_top_pool *pool, const struct cs_top_proc *proc,
                      const struct cs_counters *counters, unsigned processors);

// ---- A moment, for people and for programs ----
struct cs_top_facts {
  const char *program, *runtime, *mode;
  int pid;  // 0: no runtime has started yet
  uint32_t hz;
  bool inlined;  // inlined methods have their own rows
  double elapsed_s, interval_s, window_s;
  double cpu;
  uint64_t rss_bytes, samples, lost;
  double samples_per_s;
  double complete;  // share of the walks, 0 to 1; < 0: there are none
  struct cs_counters counters;
  struct cs_top_pool pool;
};
struct cs_top_moment {
  struct cs_top_facts facts;
  struct cs_top_view view;
  const struct cs_top *top;
  struct cs_top_method *methods;
  struct cs_top_thread *threads;
  size_t method_count, thread_count;
  bool frozen, help;
  const char *typing;  // a filter being typed; NULL: none
  size_t scroll;       // rows above the window
};

// A grid of text: lines of valid UTF-8, none wider than the grid, each in one style.
enum cs_grid_style { CS_GRID_PLAIN, CS_GRID_BOLD, CS_GRID_TITLE, CS_GRID_DIM };
struct cs_grid {
  unsigned rows, columns;
  unsigned room;  // the rows of a table that fit; 0: none is shown
  char **text;
  enum cs_grid_style *style;
};
void cs_grid_init(struct cs_grid *grid, unsigned rows, unsigned columns);
void cs_grid_free(struct cs_grid *grid);
void cs_top_render(const struct cs_top_moment *moment, struct cs_grid *grid);
// The same lines without keys, not truncated, with at most `limit` rows of the table.
void cs_top_write_text(const struct cs_top_moment *moment, size_t limit, FILE *out);
void cs_top_write_json(const struct cs_top_moment *moment, size_t limit, FILE *out);

// ---- The terminal, top_screen.c ----
enum cs_top_key { CS_TOP_NOTHING, CS_TOP_REDRAW, CS_TOP_FREEZE, CS_TOP_QUIT };
bool cs_screen_open(int fd_in, int fd_out, struct cs_error *err);
void cs_screen_resize(void);
void cs_screen_suspend(void);  // restores the terminal and stops the command, as Ctrl-Z does
void cs_screen_draw(const struct cs_top_moment *moment);
// Applies the pressed keys to the moment's view. Returns the most important action they ask for.
enum cs_top_key cs_screen_keys(struct cs_top_moment *moment);
void cs_screen_close(void);
