// SPDX-License-Identifier: MIT
// The key of a frame in a recording's call tree: what distinguishes it from others. It is a frame
// of the wire (wire/frame.h) without what does not matter, or CS_REC_CUT with the reason why a walk
// ended. The lower half of a managed key is
//   nothing                                the method, wherever in it
//   CS_REC_PLACE | offset                  its instruction there (of a caller, the call)
//   CS_REC_PLACE | CS_REC_AT_IL | offset   the place that this IL offset is at
//   CS_REC_INLINED [| CS_REC_PLACE | IL]   the method where it was inlined: of no frame of the
//                                          tree, but of those that are shown in its place
//                                          (inlined.h)
//   CS_REC_AWAITS                          not on the stack; it awaits its child in the tree
#pragma once

#include "wire/frame.h"

#define CS_REC_CUT (3ull << 62)
#define CS_REC_PLACE 0x80000000u
#define CS_REC_INLINED 0x40000000u
#define CS_REC_AT_IL 0x20000000u
#define CS_REC_IL 0x1FFFFFFFu
#define CS_REC_AWAITS 1u

enum cs_key_kind {
  CS_KEY_MANAGED,
  CS_KEY_NATIVE,
  CS_KEY_KERNEL,
  CS_KEY_UNKNOWN,
  CS_KEY_CUT,
};

static inline enum cs_key_kind cs_key_kind(uint64_t key) {
  static const enum cs_key_kind kinds[] = {CS_KEY_MANAGED, CS_KEY_NATIVE, CS_KEY_UNKNOWN,
                                           CS_KEY_CUT};
  return CS_WIRE_FRAME_IS_KERNEL(key) ? CS_KEY_KERNEL : kinds[CS_WIRE_FRAME_KIND(key)];
}

static inline uint64_t cs_key_of_method(uint32_t function, uint32_t lower_half) {
  return (uint64_t)function << 32 | lower_half;
}
static inline uint64_t cs_key_of_cut(uint32_t reason) {
  return CS_REC_CUT | reason;
}
static inline uint64_t cs_key_cut_reason(uint64_t key) {
  return key & ~CS_REC_CUT;
}
static inline bool cs_key_is_inlined(uint64_t key) {
  return cs_key_kind(key) == CS_KEY_MANAGED && (key & CS_REC_INLINED) != 0;
}
static inline bool cs_key_awaits(uint64_t managed_key) {
  return (uint32_t)managed_key == CS_REC_AWAITS;
}

// The place of a managed frame's instruction: a caller's address is where its call returns to.
static inline uint32_t cs_key_place(uint64_t frame) {
  uint32_t offset = (uint32_t)frame & CS_WIRE_MANAGED_OFFSET;
  if ((frame & CS_WIRE_MANAGED_EXACT) != 0) return CS_REC_PLACE | offset;
  return offset > 0 ? CS_REC_PLACE | (offset - 1) : 0;
}

// Of a frame of a sample. A managed frame is its function, wherever in it, unless lines are wanted;
// addresses of unknown code say nothing at all. A native caller's address is where its call returns
// to, which may be the next function's first byte if the call never returns: the byte before it is
// in the caller.
static inline uint64_t cs_key_of(uint64_t frame, bool leaf, bool lines) {
  switch (CS_WIRE_FRAME_KIND(frame)) {
    case CS_WIRE_FRAME_MANAGED:
      return cs_key_of_method(cs_wire_frame_function(frame), lines ? cs_key_place(frame) : 0);
    case CS_WIRE_FRAME_NATIVE:
      return leaf || cs_wire_frame_offset(frame) == 0 ? frame : frame - 1;
    case CS_WIRE_FRAME_AWAITS:
      return cs_key_of_method(cs_wire_frame_function(frame), CS_REC_AWAITS);
    default:
      if (CS_WIRE_FRAME_IS_KERNEL(frame)) return leaf ? frame : frame - 1;
      return cs_wire_unknown_frame(0);
  }
}
