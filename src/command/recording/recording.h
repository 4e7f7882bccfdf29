// SPDX-License-Identifier: MIT
// A recording in progress: the records that have arrived, as tables and a call tree of ids.
// Names are added at the end (resolve.h), because a function's record may arrive after its first
// sample.
#pragma once

#include "base/stop.h"
#include "metadata/elfsym.h"
#include "profile/label_choice.h"
#include "profile/labels.h"
#include "profile/profile.h"
#include "recording/frame_key.h"
#include "wire/decode.h"

#define CS_REC_MAX_REASONS CS_PROFILE_MAX_STOPS

struct cs_rec_function {
  enum cs_wire_function_kind kind;
  uint32_t token;
  uint32_t text[CS_FN_TEXTS];  // string ids
};
struct cs_rec_il_map {
  struct cs_wire_il_map head;
  struct cs_wire_il_range *ranges;  // head.count of them
};
struct cs_rec_inlines {
  struct cs_wire_inlines head;
  struct cs_wire_inline_node *nodes;        // head.nodes of them
  struct cs_wire_inline_mapping *mappings;  // head.mappings of them
  uint32_t *calls;                          // per node: where the method calls it (inlined.c)
};
// A root of the tree: a thread in a mode, so every node belongs to one mode.
struct cs_rec_root {
  uint32_t thread;  // index
  enum cs_wire_mode mode;
};
struct cs_rec_image {
  struct cs_wire_image image;
  uint32_t path;  // string id
};

struct cs_rec_sample {
  uint64_t time_ns, weight;  // since the start; what it represents, in its mode's unit
  uint32_t leaf;             // node of the tree
  uint32_t held_ns;          // 0: the thread slept
  uint32_t stop;             // why the walk ended: index into `reasons`
  uint32_t label;            // index into `labels`
};
struct cs_rec_thread {
  uint32_t id, tid;
  uint32_t name;              // string id
  struct cs_rec_sample wall;  // its last sample of wall mode; leaf 0: none
};
struct cs_rec_reason {
  uint32_t token, text;  // string ids
};
struct cs_rec_place {
  uint64_t frame;
  uint32_t file, line;  // string id
};
// A loaded module and the id of its PDB; lines come from no other PDB.
struct cs_rec_module {
  struct cs_wire_module module;
  uint32_t path, pdb;  // string ids
};

// What the command, not the agent, knows about a recording.
struct cs_rec_meta {
  uint32_t program;    // the command line, string id
  uint32_t modes, hz;  // CS_WIRE_MODE_BITs
  uint32_t event;      // cpu mode: what is counted instead of CPU time; 0: CPU time
  uint64_t event_period;
};
// The sums of a mode.
struct cs_rec_sums {
  uint64_t samples, weight, asleep, asleep_weight;  // asleep: samples of sleeping threads
  uint64_t labelled;                                // samples
  uint64_t stops[CS_REC_MAX_REASONS];
};
struct cs_rec_totals {
  uint64_t recorded_ns, lost_ring, broken, full;
};

// How long threads were held: exact below 128 ns, within 1/64 above. Values up to 2^32 - 1.
#define CS_HELD_BUCKETS 2048
struct cs_held {
  uint64_t bucket[CS_HELD_BUCKETS];
  uint64_t count, max_ns;
};

// Where the workers of a starved thread pool wait (pool_waits.h).
// Workers that waited on one stack at one scan. The file has it in this form.
struct cs_rec_pool_wait {
  uint64_t time_ns, queued;  // when, since the start; the items in the pool's queues
  uint32_t workers;          // that the pool had
  uint32_t node, threads;    // of the recording's tree; how many of them waited there
  uint32_t reserved;
};

struct cs_rec_pool_waits {
  struct cs_rec_pool_wait *items;  // scan by scan
  size_t count, capacity;
};

// A frame of the tree is an index into `frames`, which are keys (frame_key.h).
struct cs_recording {
  struct cs_strings strings;
  bool lines;                          // set by the caller: places in methods are distinct
  bool inlined;                        // set by the caller: the agent reports inlining
  const struct cs_label_choice *only;  // set by the caller: which of a file's samples; NULL: all
  struct cs_symbol_sources *sources;   // set by the caller: --symbols; NULL: only the usual places
  bool keep_samples;  // set by the caller: `samples` keeps each one; otherwise there are only sums
  struct cs_rec_sample *samples;
  size_t sample_count, sample_capacity;
  struct cs_rec_function *functions;
  struct cs_rec_il_map *il_maps;
  struct cs_rec_inlines *inlines;
  struct cs_rec_thread *threads;
  struct cs_rec_root *roots;
  struct cs_rec_image *images;
  uint64_t *frames;
  size_t function_count, function_capacity, thread_count, thread_capacity, image_count,
      image_capacity, frame_count, frame_capacity, il_map_count, il_map_capacity, root_count,
      root_capacity, inlines_count, inlines_capacity;
  struct cs_map function_ids, il_map_ids, inlines_ids, thread_ids, root_ids, image_ids, frame_ids;
  struct cs_tree tree;  // the first level's frames are indices into `roots`
  struct cs_labels labels;
  struct cs_label_sums labelled;  // sums of the samples that have one
  struct cs_map statuses;         // by request, the HTTP status with which it has ended
  uint64_t labels_full;           // samples that lost their label because there are too many
  struct cs_held held;
  struct cs_rec_reason reasons[CS_REC_MAX_REASONS];
  uint32_t reason_count, complete;  // complete: the reason of a complete walk, the stack's base
  struct cs_rec_sums sums[CS_WIRE_MODES];
  uint64_t taken, broken, full, last_ns;  // taken: samples in the tree
  uint64_t bytes;                         // of all its records
  bool started, ended;
  char fate[128];  // facts.fate
  struct cs_rec_meta meta;
  struct cs_rec_totals totals;
  bool finished;  // `totals` is set

  // Names that do not come from the agent: frame -> string id, frame -> index into places.
  struct cs_map symbols, place_ids;
  struct cs_rec_place *places;
  struct cs_rec_module *modules;
  size_t place_count, place_capacity, module_count, module_capacity;
  struct cs_line_facts line_facts;
  struct cs_symbol_facts symbol_facts;
  struct cs_target *target;    // the process whose files they come from; NULL: this machine
  struct cs_elfsyms *native;   // symbols of images
  struct cs_kallsyms *kernel;  // NULL: not needed yet
  bool live;                   // this machine's running kernel was recorded
  bool named;                  // by cs_name_frames, or in the file
  bool sourced;                // by cs_name_frames, and by `sources`

  struct cs_wire_start start;
  struct cs_wire_end end;
  struct cs_wire_stops stops;                // zero: the runtime was not stopped
  struct cs_wire_put_off put_off;            // zero: none was
  struct cs_wire_ticks ticks;                // zero: none was skipped
  struct cs_wire_times times;                // zero: not known
  struct cs_wire_scans scans;                // zero: async mode was not recorded
  uint32_t scans_why;                        // string id
  struct cs_wire_pool pool;                  // zero: the thread pool was not read
  struct cs_rec_pool_waits pool_waits;       // empty: it was not starved
  struct cs_wire_lost_signals lost_signals;  // zero: all threads took their signals
  struct cs_wire_small_stacks small_stacks;  // zero: all stacks have room for a signal
  struct cs_wire_engine engine;              // zero: cpu mode was not recorded, or not reported yet
  uint32_t engine_text[CS_ENGINE_TEXTS];     // string ids
  struct cs_wire_events events[CS_WIRE_MODES];  // of the modes that the agent has reported
  struct cs_wire_budget budget;  // budget_ppm 0: there is none, or it was not reported yet
  char runtime[32];
};

void cs_recording_init(struct cs_recording *rec);
// Takes in one record. An invalid one is counted in `broken` and changes nothing else. A record of
// an unknown kind is ignored: later agents may send more.
void cs_recording_add(struct cs_recording *rec, const struct cs_wire_record *record);
// Adds a node of the tree or a sample from a file. Returns false, and changes nothing, if it is
// invalid. `parent` 0: a root, whose `frame` is the mode << 32 | the thread's id; mode 0: the
// recording's only one.
bool cs_recording_add_node(struct cs_recording *rec, uint32_t parent, uint64_t frame);
// `mode`: the mode of the leaf's root.
bool cs_recording_add_sample(struct cs_recording *rec, enum cs_wire_mode mode,
                             const struct cs_rec_sample *sample);
// Forgets all samples, and of the tree everything but the stacks that threads sleep on, which the
// agent does not send again. Methods, threads and images stay: the agent describes each of them
// once. Not for a recording that keeps its samples.
void cs_recording_forget_samples(struct cs_recording *rec);
// Texts longer than a record allows are cut off.
uint32_t cs_recording_text(struct cs_recording *rec, const char *text);
const char *cs_recording_get(const struct cs_recording *rec, uint32_t string);
// Returns the name of a label's endpoint, or "". It is valid until the next record.
const char *cs_recording_endpoint(const struct cs_recording *rec, const struct cs_label *label);
// Returns the HTTP status with which the label's request has ended, or 0 if that is unknown.
uint32_t cs_recording_status(const struct cs_recording *rec, const struct cs_label *label);
void cs_recording_set_symbol(struct cs_recording *rec, uint64_t frame, const char *name);
void cs_recording_set_place(struct cs_recording *rec, uint64_t frame, uint32_t file, uint32_t line);
void cs_recording_free(struct cs_recording *rec);

void cs_held_add(struct cs_held *held, uint32_t ns);
uint64_t cs_held_percentile(const struct cs_held *held, double fraction);
