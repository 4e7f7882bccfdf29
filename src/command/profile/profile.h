// SPDX-License-Identifier: MIT
// A profile: one mode of a recording, with names instead of ids. It is what every output format
// reads, and is independent of how the recording was made. One thread.
//
// The nodes of the tree's first level are threads (frame = index into `threads`); below them a
// node's frame is an index into `frames`, callers first. A cut walk has a frame "[cut: reason]" in
// place of the missing part of its stack.
#pragma once

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
  // With lines, a frame is one line of a method: ids in `sources`; otherwise CS_NO_TEXT and 0. An
  // inlined frame always has its method.
  uint32_t method, file, line;
  bool inlined;  // into its caller; `name` says so, `method` does not
};

struct cs_profile_thread {
  uint32_t name;  // string id
  uint32_t tid;
};

// `method` was inlined into the machine code of `into`: string ids, without lines.
struct cs_profile_inlining {
  uint32_t method, into;
};

struct cs_profile_sample {
  uint64_t time_ns, weight;  // time since the start; what the sample stands for
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
  char missing[512];  // modules without symbols, and why; of many, some and their number
};

// Native images in which samples were taken.
struct cs_symbol_facts {
  uint32_t images, refused;  // refused: images whose files could not be used for names
  char missing[512];         // the refused ones, and why; of many, some and their number
  char kernel[256];          // why the kernel's functions have no names; empty: they have names
};

struct cs_inlined_facts {
  bool wanted;
  uint64_t methods,
      unread;  // methods with inlined methods; methods whose inlining could not be read
};

// Where most workers of a starved thread pool wait, in one scan.
struct cs_pool_cause {
  uint32_t waiting, workers;  // there; of the pool. waiting 0: the cause is not known
  uint64_t queued, time_ns;   // items; when, since the start
  char place[400];            // "Task.Wait at Shop.Cart.Load (Cart.cs:12)"
};

// Of threads that ran with their signals blocked: samples without a stack.
enum { CS_BLOCKED_NAMED = 4 };
struct cs_blocked_facts {
  uint64_t samples, weight;
  uint32_t threads;
  struct {
    char thread[64];
    uint64_t weight;
  } named[CS_BLOCKED_NAMED];  // those with the most, most first
};

struct cs_facts {
  const char *program;  // the command line
  uint32_t pid;
  uint32_t processors;  // that the program may run on; 0: not known
  char runtime[32];     // "10.0.12"; empty if unknown
  enum cs_wire_mode mode;
  uint32_t hz;
  uint32_t event;  // cpu mode: the perf event counted instead of CPU time (base/perf.h); 0: none
  uint64_t event_period;  // events between two samples, about
  uint64_t start_ns;      // CLOCK_REALTIME
  uint64_t duration_ns;
  bool part;                      // only samples of a chosen trace or route
  uint64_t samples, weight;       // in the tree, in the mode's unit
  uint64_t events, events_value;  // all events, of which samples are some; 0: unknown
  uint64_t lost_samples;          // of this mode; the losses below are of all modes
  uint64_t lost_target;           // no room in the target's buffer
  uint64_t lost_ring;             // no room in the shared memory
  uint64_t lost_broken;           // malformed records
  uint64_t lost_full;             // the call tree was full
  uint64_t complete;              // walks that reached the stack's base
  struct cs_profile_stop stops[CS_PROFILE_MAX_STOPS];  // the others, most frequent first
  size_t stop_count;
  uint64_t asleep, asleep_weight;      // samples of threads that slept, taken without a signal
  uint64_t unwalked, unwalked_weight;  // samples of events that were not walked, without a stack
  uint64_t held_count, held_p50_ns, held_p99_ns, held_max_ns;
  uint64_t labelled;     // samples of this mode that have a label
  uint64_t labels_full;  // samples of all modes whose label was left out
  const char *fate;      // of a program that has not ended the recording, as a predicate
  bool ended;            // the agent has sent its totals; otherwise some of these are unknown
  bool finished;         // the recording has its end: its recorder was neither killed nor runs on
  struct cs_blocked_facts blocked;  // cpu and wall modes
  struct cs_wire_scans scans;       // async mode only
  struct cs_wire_pool pool;         // wall mode only
  struct cs_pool_cause pool_cause;
  const char *scans_why;  // why the last one that failed did; NULL or "": none
  struct cs_wire_ticks ticks;
  struct cs_wire_times times;
  struct cs_wire_lost_signals lost_signals;
  struct cs_wire_small_stacks small_stacks;
  struct cs_wire_stops stopped;
  uint64_t suspensions;  // how often the runtime was suspended for these stops
  struct cs_wire_put_off put_off;
  const char *put_off_thread, *stackless_thread;  // the names of its threads; "": not known
  // In the runtime's own functions that have no names, and of that, in those without a class.
  uint64_t runtime_weight, unclassed_weight;
  struct cs_line_facts lines;
  struct cs_symbol_facts symbols;
  struct cs_inlined_facts inlined;
  struct cs_engine_facts {                     // cpu mode only
    enum cs_wire_engine_kind requested, used;  // used: AUTO if not known
    uint64_t cpu_ns;           // of the threads, while they were sampled; 0: not known
    uint32_t others, without;  // threads that another engine has sampled, and that none has
    const char *why, *unseen;  // sentences, or empty
  } engine;
  struct cs_wire_budget budget;  // budget_ppm 0: there is none
};

static inline const struct cs_mode *cs_mode_of(const struct cs_facts *f) {
  return f->event != 0 ? cs_mode_of_event(f->event) : cs_mode(f->mode);
}

// Of async mode: does it have so few scans, or do they stand for so much more or less than the time
// that was recorded, that its sums and shares are rough?
static inline bool cs_scans_are_few(const struct cs_facts *f) {
  enum { ENOUGH = 10 };
  double stands_for = (double)f->scans.covered_ns / (double)(f->duration_ns + 1);
  return f->scans.succeeded > 0 &&
         (f->scans.succeeded < ENOUGH || stands_for < 0.75 || stands_for > 1.25);
}

// Samples per second of the CPU time in which threads could take some; 0: not known.
static inline double cs_rate_reached(const struct cs_facts *f) {
  if (f->engine.cpu_ns <= f->blocked.weight) return 0;
  return (double)(f->samples - f->blocked.samples) * 1e9 /
         (double)(f->engine.cpu_ns - f->blocked.weight);
}

// CPU time of the program that no sample stands for, because it was not on a thread that could take
// one: of threads that are not sampled, and before a thread's first instruction of managed code and
// after its last; 0: little, or not known.
static inline uint64_t cs_unsampled_ns(const struct cs_facts *f) {
  enum { LEAST_NS = 50000000, LEAST_PERCENT = 5 };
  uint64_t all = f->times.process_ns, sampled = f->engine.cpu_ns;
  if (sampled == 0 || all < sampled + LEAST_NS) return 0;
  return all - sampled < all / 100 * LEAST_PERCENT ? 0 : all - sampled;
}

// "another 1.67 s of CPU time, 36 % of the program's, is in no sample: ...", of CPU time that is.
void cs_put_unsampled(const struct cs_facts *f, FILE *out);

// Why a mode of samples in time has none: "the program used too little CPU time".
void cs_put_why_nothing(const struct cs_facts *f, FILE *out);

// A mode of waits sees those that begin while it is recorded: what to add where it shows none.
static inline const char *cs_waits_unseen(enum cs_wire_mode mode) {
  return mode == CS_WIRE_MODE_LOCK || mode == CS_WIRE_MODE_WAIT
             ? "; waits that began before are not seen, but `clrsnap stack PID` shows them"
             : "";
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
  struct cs_profile_inlining *inlining;  // each pair once, whether or not it has samples
  size_t inlining_count, inlining_capacity;
  struct cs_map inlining_ids;
  struct cs_tree tree;
  struct cs_profile_sample *samples;  // as they came; none unless a format wants them
  size_t sample_count;
  const struct cs_labels *labels;  // the recording's; NULL: there are none
  struct cs_label_sums labelled;   // of the tree's samples, those that have one, sorted
  const char **endpoints;          // by label, its endpoint's name or ""; NULL: nothing is labelled
  uint16_t *statuses;              // by label, that of its request, 0: unknown; NULL as above
  bool with_idle;                  // outputs that are read leave no idle threads out (waits.h)
  bool by_route;                   // the page begins with the stacks of each route by themselves
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
void cs_profile_inlining(struct cs_profile *p, const char *method, const char *into);
uint32_t cs_profile_thread(struct cs_profile *p, const char *name, uint32_t tid);
// Adds up, into the facts, the samples that stand for events that were not walked.
void cs_profile_add_unwalked(struct cs_profile *p);
// Puts the frames, the call tree and the inlining of `from` into `to`, without the tree's sums:
// cs_tree_join.
uint32_t *cs_profile_join(struct cs_profile *to, const struct cs_profile *from,
                          const uint32_t *thread);
void cs_profile_free(struct cs_profile *p);
const char *cs_profile_method(const struct cs_profile *p, uint32_t frame, size_t *len);
const char *cs_profile_module(const struct cs_profile *p, uint32_t frame, size_t *len);
// Returns NULL if it is not known.
const char *cs_profile_file(const struct cs_profile *p, uint32_t frame, size_t *len);

// "22 samples", or, if not all events were walked, "12345 waits, 500 of them walked". A pause has
// two samples and counts once.
void cs_put_samples(FILE *out, const struct cs_facts *facts);
// Returns whether each event of the mode is in the recording, so that its shares have no error of
// chance.
bool cs_facts_have_all(const struct cs_facts *facts);
// Returns whether the runtime chose the samples by a count of bytes and not at random (alloc mode
// on .NET 9; agent/events/allocations.c): how far its shares are off is then not known.
bool cs_facts_are_by_count(const struct cs_facts *facts);
// What all events come to, if that was counted; otherwise what the samples stand for. Shares are of
// the latter, which differs by chance where not all events were walked.
uint64_t cs_facts_whole(const struct cs_facts *facts);
const char *cs_kind_token(enum cs_profile_kind kind);
const char *cs_kind_label(enum cs_profile_kind kind);
