// SPDX-License-Identifier: MIT
// A profile: what a recording has come to, with names instead of ids. The one input of every output
// format; knows nothing of how it was recorded. One thread.
//
// The tree's first level is the threads (frame = index into `threads`); from there on a node's
// frame is an index into `frames`, root first. A walk that was cut has a frame "[cut: reason]"
// where the missing part of the stack would be.
#ifndef CS_PROFILE_PROFILE_H
#define CS_PROFILE_PROFILE_H

#include <stdio.h>

#include "profile/labels.h"
#include "profile/mode.h"
#include "profile/tree.h"

// X(NAME, token in the page's data, label in the page's legend)
#define CS_FRAME_KINDS(X)                       \
  X(USER, "user", "your code")                  \
  X(FRAMEWORK, "framework", "framework")        \
  X(DYNAMIC, "dynamic", "stub, dynamic method") \
  X(RUNTIME, "runtime", "runtime (native)")     \
  X(NATIVE, "native", "other native")           \
  X(CUT, "cut", "cut or unknown")               \
  X(AWAITS, "awaits", "awaits (async caller)")  \
  X(TYPE, "type", "type, event")                \
  X(KERNEL, "kernel", "kernel")

enum cs_profile_kind {
#define CS_KIND_ENUM(name, token, label) CS_KIND_##name,
  CS_FRAME_KINDS(CS_KIND_ENUM)
#undef CS_KIND_ENUM
      CS_KIND_COUNT
};

#define CS_NO_TEXT UINT32_MAX

struct cs_profile_frame {
  uint32_t name, module;  // string ids
  enum cs_profile_kind kind;
  // With lines, the frame is one line of a method: ids in `sources`, else CS_NO_TEXT and 0. One
  // that was inlined always has its method.
  uint32_t method, file, line;
  bool inlined;  // into the frame below; its name says so, too, `method` does not
};

struct cs_profile_thread {
  uint32_t name;  // string id
  uint32_t tid;
};

struct cs_profile_sample {
  uint64_t time_ns, weight;  // since the start, when it was taken; what it stands for
  uint32_t leaf;             // node of the tree
  uint32_t label;            // number in `labels`
  bool asleep;               // the thread was blocked in the kernel
};

struct cs_profile_stop {  // walks that ended for one reason
  const char *token, *text;
  uint64_t count;
};
#define CS_PROFILE_MAX_STOPS 32

struct cs_line_facts {
  bool wanted;
  uint64_t places, named;      // distinct places in methods, and those with a line
  uint64_t methods, unmapped;  // methods, and those of which the runtime gave no IL map
  int32_t why_unmapped;        // the last one's HRESULT
  uint32_t modules, with_symbols;
  char missing[512];  // modules without symbols, and why; cut when there are many
};

// Native images that samples have met.
struct cs_symbol_facts {
  uint32_t images, refused;  // those whose files could not be used for names
  char missing[512];         // which, and why not; cut when there are many
  char kernel[256];          // why the kernel's functions have no names; empty: they have
};

struct cs_inlined_facts {
  bool wanted;
  uint64_t methods, unread;  // with something inlined; of which it could not be read
};

struct cs_facts {
  const char *program;  // the command line
  uint32_t pid;
  char runtime[32];  // "10.0.12"; empty if nobody said so
  enum cs_wire_mode mode;
  uint32_t hz;
  uint32_t event;         // mode cpu: what is counted in place of CPU time (base/perf.h); 0: that
  uint64_t event_period;  // about how many of it lie between two samples
  uint64_t start_ns;      // CLOCK_REALTIME
  uint64_t duration_ns;
  uint64_t samples, weight;                            // in the tree, in the mode's unit
  uint64_t events, events_value;                       // of which they are; 0: nobody has said so
  uint64_t lost_samples;                               // of this mode, of those that follow
  uint64_t lost_target;                                // no room in the program's own buffer
  uint64_t lost_ring;                                  // no room on the way to the command
  uint64_t lost_broken;                                // records that made no sense
  uint64_t lost_full;                                  // the call tree was full
  uint64_t complete;                                   // walks that reached the stack's base
  struct cs_profile_stop stops[CS_PROFILE_MAX_STOPS];  // the others, most frequent first
  size_t stop_count;
  uint64_t asleep, asleep_weight;  // samples of threads that slept, taken without a signal
  uint64_t held_count, held_p50_ns, held_p99_ns, held_max_ns;
  uint64_t labelled;               // samples of this mode that have a label
  uint64_t labels_full;            // samples of all modes whose label was left out
  bool ended;                      // the agent has sent its totals; else the next two are not known
  uint64_t ticks, ticks_left_out;  // mode wall: looks at all threads; 0: none was left out
  uint64_t unsent;                 // signals that the limit of pending ones has kept back
  uint64_t silent, silent_ns;      // threads that do not take theirs, and for how long in all
  uint64_t small_stacks;           // threads that are sent no signal: it does not fit,
  uint64_t unknown_stacks;         // or nobody knows whether it does
  uint64_t suspensions;            // how often the runtime was stopped
  uint64_t stopped_ns;             // for how long in all,
  uint64_t stopped_for;            // to give so many threads larger signal stacks,
  uint64_t unsampled_ns;  // and what CPU time threads without one have spent, which has no samples
  uint64_t overruns;      // timer expirations merged into one sample, which then weighs more
  uint64_t put_off;       // samples of all modes: the thread's next one has their weight
  uint64_t put_off_events;     // events whose samples have no stack for it
  uint64_t put_off_ns;         // the longest sample that any was put off for,
  const char *put_off_thread;  // and the name of the thread that took it
  struct cs_line_facts lines;
  struct cs_symbol_facts symbols;
  struct cs_inlined_facts inlined;
  struct cs_engine_facts {                // mode cpu only
    enum cs_wire_engine_kind asked, had;  // had: AUTO if the agent has not told
    uint64_t cpu_ns;                      // of the threads, while they were sampled; 0: not known
    uint32_t others, without;  // threads that another engine has sampled, and that none has
    const char *why, *unseen;  // sentences, or empty
  } engine;
  struct cs_budget_facts {
    uint32_t budget_ppm;  // of one processor, in millionths; 0: there is no budget
    uint64_t recorded_ns, agent_ns, handlers_ns, command_ns;
    uint32_t hz_least, hz_last, changes;
  } budget;
};

static inline const struct cs_mode *cs_mode_of(const struct cs_facts *f) {
  return f->event != 0 ? cs_mode_of_event(f->event) : cs_mode(f->mode);
}

// Samples per second of CPU time; 0: not known.
static inline double cs_rate_had(const struct cs_facts *f) {
  return f->engine.cpu_ns > 0 ? (double)f->samples * 1e9 / (double)f->engine.cpu_ns : 0;
}

// Of two recordings that are compared: which is the only one that has the profile's mode.
enum cs_only { CS_ONLY_NONE, CS_ONLY_BEFORE, CS_ONLY_AFTER };

struct cs_profile {
  struct cs_strings strings;
  struct cs_profile_frame *frames;
  size_t frame_count, frame_capacity;
  struct cs_map frame_ids;
  struct cs_strings sources;  // names of methods without their line, paths of source files
  struct cs_profile_thread *threads;
  size_t thread_count, thread_capacity;
  struct cs_tree tree;
  struct cs_profile_sample *samples;  // as they came; none unless a format wants them
  size_t sample_count;
  const struct cs_labels *labels;  // the recording's; NULL: there are none
  struct cs_label_sums labelled;   // of the tree's samples, those that have one, sorted
  struct cs_facts facts;
  const struct cs_diff *diff;  // of a comparison: what was before; else NULL
  enum cs_only only;           // else CS_ONLY_NONE
};

// What one recording has come to: a profile for each of its modes.
struct cs_profile_set {
  const struct cs_profile *profiles;
  size_t count;  // at least 1
};

void cs_profile_init(struct cs_profile *p);
uint32_t cs_profile_frame(struct cs_profile *p, const char *name, const char *module,
                          enum cs_profile_kind kind);
// The frame is that line of `file` in `method`.
void cs_profile_line(struct cs_profile *p, uint32_t frame, const char *method, const char *file,
                     uint32_t line);
// The frame is `method`, inlined.
void cs_profile_inlined(struct cs_profile *p, uint32_t frame, const char *method);
uint32_t cs_profile_thread(struct cs_profile *p, const char *name, uint32_t tid);
// Puts the frames and the call tree of `from` into `to`, without their sums: cs_tree_join.
uint32_t *cs_profile_join(struct cs_profile *to, const struct cs_profile *from,
                          const uint32_t *thread);
void cs_profile_free(struct cs_profile *p);
const char *cs_profile_method(const struct cs_profile *p, uint32_t frame, size_t *len);
const char *cs_profile_module(const struct cs_profile *p, uint32_t frame, size_t *len);
// NULL: it is not known.
const char *cs_profile_file(const struct cs_profile *p, uint32_t frame, size_t *len);

const char *cs_kind_token(enum cs_profile_kind kind);
const char *cs_kind_label(enum cs_profile_kind kind);

#endif
