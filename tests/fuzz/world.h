// SPDX-License-Identifier: MIT
// A recorded world: what the walks over the stopped threads of a real .NET process have read, byte
// for byte, with the registers from which they started and the frames that they found. record_world
// writes such files (worlds/), and fuzz_walk walks in them. Reads see the recorded memory and
// nothing else.
#pragma once

#include "images/images.h"
#include "native/native.h"
#include "walk/walk.h"

enum { WORLD_LINE = 64 };  // memory is recorded by lines of so many bytes

// ---- The file: a head; the descriptor's JSON and its pointers; then these, in this order ----
struct world_head {
  char magic[8];
  uint32_t json_bytes, pointers, threads, images, rules, segments;
  uint32_t rule_bytes;  // sizeof(struct cs_cfi_rule) when it was recorded
  uint64_t coreclr_begin, coreclr_end;
  uint32_t hijack_return_address, hijack_slot;
};
#define WORLD_MAGIC "CSWORLD1"

struct world_thread {
  uint64_t r[CS_REG_COUNT];
  struct cs_stack stack;  // of the own one whole pages, from the sp up to where it was read
  uint64_t clr_thread;
  uint32_t frames, stop;  // what a walk finds
};

struct world_image {
  uint64_t begin, end, id_address;
  uint32_t row_count;
  uint8_t is_coreclr, id_size, id[CS_BUILD_ID_MAX];
};

struct world_row {
  uint32_t ip;
  uint16_t rule, pad;
};
// the rules: struct cs_cfi_rule
struct world_segment {  // then its bytes
  uint64_t address;
  uint32_t size, pad;
};

// ---- Loaded ----
struct segment {
  uint64_t address, size;
  uint8_t *bytes;
};

struct recorded {
  struct cs_world world;  // first: its mem is found again by its address
  const struct world_thread *threads;
  uint32_t thread_count, segment_count;
  struct segment *segments;  // sorted, no two of them touch
  uint64_t reads, refused;   // counted up by the reader
};

// Ends the program with a message if the file is not whole or not of this version.
void world_load(struct recorded *w, const char *path);
// The recorded byte at an address, or NULL if there is none. `*left`: the number of bytes from it
// on.
uint8_t *world_at(const struct recorded *w, uint64_t address, uint64_t *left);

// Looks up what the command asks about a managed frame apart from the walk: method, ReadyToRun
// tables, debug info. Returns how much of it was found.
unsigned world_ask_about(const struct cs_world *world, const struct cs_frame *frame);
