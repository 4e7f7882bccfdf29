// SPDX-License-Identifier: MIT
// The recording file: everything that a recording contains, appended while it is made, so that a
// recorder that is killed leaves what it had. docs/recording-format.md describes the format. One
// thread.
#pragma once

#include "recording/output.h"
#include "recording/recording.h"

#define CS_FILE_MAGIC "CLRSNAPF"
#define CS_FILE_VERSION 10u
#define CS_FILE_MAX_RECORD (64u << 20)

struct cs_file_head {
  char magic[8];
  uint32_t version;
  uint32_t head_bytes;  // where the first record begins
};

struct cs_file_record {
  uint32_t size;  // of the whole record, including this header and the padding to 8 bytes
  uint32_t crc;   // CRC-32 of all that follows in the record
  uint16_t kind;  // enum cs_file_kind
  uint16_t flags;
  uint32_t reserved;
};

enum cs_file_kind {
  CS_FILE_META = 1,      // struct cs_file_meta, strings: command line, version of clrsnap
  CS_FILE_REASONS,       // u32 count, u32 index of the complete one; count * strings: token, text
  CS_FILE_START,         // struct cs_wire_start, string runtime
  CS_FILE_THREAD,        // struct cs_wire_thread, string name
  CS_FILE_FUNCTION,      // struct cs_wire_function, 5 strings
  CS_FILE_IMAGE,         // struct cs_wire_image, string path
  CS_FILE_IL_MAP,        // struct cs_wire_il_map, ranges
  CS_FILE_NODES = 9,     // u32 first, u32 count; count * struct cs_file_node
  CS_FILE_SAMPLES,       // u32 count, u32 0; count * struct cs_rec_sample
  CS_FILE_AGENT_END,     // struct cs_wire_end
  CS_FILE_SYMBOLS,       // u32 count, u32 0; count * (u64 frame, string)
  CS_FILE_PLACES,        // u32 count, u32 0; count * (u64 frame, u32 line, string file)
  CS_FILE_LINES,         // struct cs_file_lines, string: modules without symbols
  CS_FILE_END,           // struct cs_rec_totals: the recording is whole
  CS_FILE_BUDGET,        // struct cs_wire_budget
  CS_FILE_LABELS,        // u32 number of the first, u32 count; count * struct cs_label
  CS_FILE_INLINES,       // struct cs_wire_inlines, nodes, mappings
  CS_FILE_STOPS,         // struct cs_wire_stops
  CS_FILE_TICKS,         // struct cs_wire_ticks
  CS_FILE_ENGINE,        // struct cs_wire_engine, strings: why, unseen
  CS_FILE_PUT_OFF,       // struct cs_wire_put_off
  CS_FILE_EVENTS,        // struct cs_wire_events
  CS_FILE_MODULE,        // struct cs_wire_module, strings: path, PDB
  CS_FILE_IMAGES,        // u32 images, u32 of them without names; string: which, and why
  CS_FILE_LOST_SIGNALS,  // struct cs_wire_lost_signals
  CS_FILE_SMALL_STACKS,  // struct cs_wire_small_stacks
  CS_FILE_SCANS,         // struct cs_wire_scans, string: why
  CS_FILE_POOL,          // struct cs_wire_pool
  CS_FILE_POOL_WAITS,    // u32 count, u32 0; count * struct cs_rec_pool_wait
  CS_FILE_STATUS,        // struct cs_wire_status
  CS_FILE_FATE,          // string
  CS_FILE_TIMES,         // struct cs_wire_times
};

// The kind under which the agent's records of a kind (enum cs_wire_kind) are in the file, with the
// same payload; 0: they are not.
enum { CS_FILE_WIRE_KINDS = 64 };  // more than there are
enum cs_file_kind cs_file_kind_of(uint32_t wire_kind);

#define CS_FILE_LINES_WANTED 1u
#define CS_FILE_INLINES_WANTED 2u
struct cs_file_meta {
  uint32_t reserved, hz, lines;  // lines: CS_FILE_..._WANTED
  uint32_t modes;                // CS_WIRE_MODE_BITs
};
struct cs_file_node {
  uint32_t parent, reserved;
  uint64_t frame;
};
struct cs_file_lines {
  uint64_t places, named, methods, unmapped;
  int32_t why_unmapped;
  uint32_t modules, with_symbols, reserved;
};

// The sizes in the file; the memory shared with the agent may change independently.
_Static_assert(sizeof(struct cs_wire_start) == 24 && sizeof(struct cs_wire_thread) == 8 &&
                   sizeof(struct cs_wire_function) == 12 && sizeof(struct cs_wire_image) == 64 &&
                   sizeof(struct cs_wire_il_map) == 12 && sizeof(struct cs_wire_il_range) == 12 &&
                   sizeof(struct cs_wire_inlines) == 16 &&
                   sizeof(struct cs_wire_inline_node) == 12 &&
                   sizeof(struct cs_wire_inline_mapping) == 12 &&
                   sizeof(struct cs_wire_end) == 192 && sizeof(struct cs_wire_budget) == 48 &&
                   sizeof(struct cs_wire_stops) == 24 && sizeof(struct cs_wire_ticks) == 32 &&
                   sizeof(struct cs_wire_engine) == 24 && sizeof(struct cs_wire_put_off) == 32 &&
                   sizeof(struct cs_wire_events) == 32 && sizeof(struct cs_wire_module) == 24 &&
                   sizeof(struct cs_wire_scans) == 56 &&
                   sizeof(struct cs_wire_lost_signals) == 24 &&
                   sizeof(struct cs_wire_small_stacks) == 8 && sizeof(struct cs_wire_pool) == 56 &&
                   sizeof(struct cs_wire_status) == 8 && sizeof(struct cs_wire_times) == 32,
               "another payload is another kind of record");
_Static_assert(sizeof(struct cs_file_meta) == 16 && sizeof(struct cs_file_node) == 16 &&
                   sizeof(struct cs_file_lines) == 48 && sizeof(struct cs_rec_sample) == 32 &&
                   sizeof(struct cs_rec_totals) == 32 && sizeof(struct cs_rec_pool_wait) == 32,
               "another payload is another kind of record");

// ---- writing ----
struct cs_recfile {
  struct cs_output output;
  bool open, begun, failed;
  size_t nodes, samples, labels;  // of the recording that have been written
  uint8_t *buffer;                // the record under construction
  size_t used, capacity;
  struct cs_error error;
};

// Checks now whether `path` can be written; the file appears when the agent has begun.
bool cs_recfile_open(struct cs_recfile *f, const char *path, struct cs_error *err);
// To be called for each valid record that `rec` has just taken in.
void cs_recfile_add(struct cs_recfile *f, const struct cs_recording *rec,
                    const struct cs_wire_record *record);
// Writes everything that has arrived since the last call.
void cs_recfile_flush(struct cs_recfile *f, const struct cs_recording *rec);
// Writes names and totals, which completes the file. Returns false on failure; *err is then the
// first failure since the file was opened.
bool cs_recfile_finish(struct cs_recfile *f, const struct cs_recording *rec, struct cs_error *err);
void cs_recfile_close(struct cs_recfile *f);

// Reads a file into an initialised recording. Returns false if it is not a recording; *err says
// why. Returns true, with a text in *note, if the file ends early; what precedes that was read.
bool cs_recfile_read(const char *path, struct cs_recording *rec, struct cs_error *note,
                     struct cs_error *err);
