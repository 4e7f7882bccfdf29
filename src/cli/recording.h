// SPDX-License-Identifier: MIT
// A recording in the making: the records that have come, as tables and a call tree of ids. Names
// are put on at the end (resolve.h), because a function's record may come after its first sample.
#ifndef CS_RECORDING_H
#define CS_RECORDING_H

#include "export/profile.h"
#include "walk/stop.h"
#include "wire/decode.h"

struct cs_rec_function {
  enum cs_wire_function_kind kind;
  uint32_t token;
  uint32_t text[CS_FN_TEXTS];  // string ids
};
struct cs_rec_il_map {
  struct cs_wire_il_map head;
  struct cs_wire_il_range *ranges;  // head.count of them
};
struct cs_rec_thread {
  uint32_t tid;
  uint32_t name;  // string id
};
struct cs_rec_image {
  struct cs_wire_image image;
  uint32_t path;  // string id
};

// How long threads were held: exact below 128 ns, to 1/64 above. Values up to 2^32 - 1.
#define CS_HELD_BUCKETS 2048
struct cs_held {
  uint64_t bucket[CS_HELD_BUCKETS];
  uint64_t count, max_ns;
};

// A frame id in the tree is an index into `frames`: CS_REC_CUT | enum cs_stop, or wire frames. Of a
// managed frame's lower half there is left: nothing; with lines, if it is known, CS_REC_PLACE and
// the offset of the instruction (of a call, if it is a caller) from the method's start.
#define CS_REC_CUT (3ull << 62)
#define CS_REC_PLACE 0x80000000u

struct cs_recording {
  struct cs_strings strings;
  bool lines;  // set by the user: places in methods are told apart
  struct cs_rec_function *functions;
  struct cs_rec_il_map *il_maps;
  struct cs_rec_thread *threads;
  struct cs_rec_image *images;
  uint64_t *frames;
  size_t function_count, function_capacity, thread_count, thread_capacity, image_count,
      image_capacity, frame_count, frame_capacity, il_map_count, il_map_capacity;
  struct cs_map function_ids, il_map_ids, thread_ids, image_ids, frame_ids;
  struct cs_tree tree;
  struct cs_held held;
  uint64_t stops[CS_STOP_COUNT];
  uint64_t samples, asleep, broken, full, last_ns;
  bool started, ended;
  struct cs_wire_start start;
  struct cs_wire_end end;
  char runtime[32];
};

void cs_recording_init(struct cs_recording *rec);
// Takes in one record; one that makes no sense is counted in `broken` and changes nothing else.
// A record of a kind that is not known is passed over: later agents may send more.
void cs_recording_add(struct cs_recording *rec, const struct cs_wire_record *record);
void cs_recording_free(struct cs_recording *rec);

void cs_held_add(struct cs_held *held, uint32_t ns);
uint64_t cs_held_percentile(const struct cs_held *held, double fraction);

#endif
