// SPDX-License-Identifier: MIT
// The record of a physical frame, and the part of a walk that writes many of them at once, for
// frames whose call sites are cached. Signal-safe: yes.
#pragma once

#include "walk/walk.h"

// Everything that is needed later to name a frame, to make its CONTEXT, and to derive the logical
// view. On x86-64 it has 104 bytes, struct cs_frame about 240.
struct cs_record {
  uint64_t preserved[CS_PRESERVED_COUNT];  // the registers that a call preserves, and the ip
  uint64_t function_id;                    // 0: native, a stub, or unresolved ReadyToRun code
  uint64_t method_start;
  uint64_t call_ip;  // the frame's ip according to its own InlinedCallFrame; 0: it has none
  cs_regmask known;
  uint8_t kind;   // enum cs_code_kind
  uint8_t flags;  // CS_FRAME_*
  bool funclet;
  bool collectible;
  bool may_be_gone;  // its code may have been unloaded since the walk (life/function.c)
  // Filled in by the requester (life/function.c), and kept here so that the result of a capture
  // does not depend on a cache that may be emptied meanwhile:
  bool resolved;    // function_id is the runtime's, and the next two are valid
  bool dynamic;     // a dynamic method or an IL stub, without metadata; function_id may be 0
  uint8_t eh;       // enum cs_eh_role
  uint16_t deaths;  // with `may_be_gone`: the low half of cs_module_deaths() before the walk
  // Set by cs_walk_run_plain: where the frame pointer was read, in words from sp (walk/again.h); 0:
  // it was not saved.
  int16_t fp_at;
};
static inline bool cs_record_is_managed(const struct cs_record *record) {
  return record->kind == CS_CODE_JIT || record->kind == CS_CODE_R2R;
}
static inline uint64_t cs_record_ip(const struct cs_record *record) {
  return record->preserved[CS_PRESERVED_IP];
}
// Returns the ip that DoStackSnapshot reports.
static inline uint64_t cs_record_call_ip(const struct cs_record *record) {
  return record->call_ip != 0 ? record->call_ip : cs_record_ip(record);
}
static inline uint64_t cs_record_sp(const struct cs_record *record) {
  return record->preserved[CS_PRESERVED_SP];
}

// Continues, after cs_walk_next has returned a frame, over frames whose call sites are cached
// (unwind/sites.h), and writes up to `room` records. Returns their number. Any step that is not
// that simple is left to the next cs_walk_next.
CS_ISLAND uint32_t cs_walk_run(struct cs_walk *walk, struct cs_record *out, uint32_t room);
// The same for at most `frames` frames, without records.
CS_ISLAND uint32_t cs_walk_skip(struct cs_walk *walk, uint32_t frames);
// Like cs_walk_run, without the registers that no site uses, which is half the work.
CS_ISLAND uint32_t cs_walk_run_plain(struct cs_walk *walk, struct cs_record *out, uint32_t room);

// The same with one word per frame instead of a record: the ip, which has CS_ADDRESS_BITS, and what
// the walk knows about the frame.
enum { CS_FRAME_WORD_KIND_AT = CS_ADDRESS_BITS };
#define CS_FRAME_WORD_EXACT (1ull << 63)  // interrupted at the ip; else a return address
#define CS_FRAME_WORD_IP(word) ((word) & ((1ull << CS_FRAME_WORD_KIND_AT) - 1))
#define CS_FRAME_WORD(ip, kind, exact)                                \
  (CS_FRAME_WORD_IP(ip) | (uint64_t)(kind) << CS_FRAME_WORD_KIND_AT | \
   ((exact) ? CS_FRAME_WORD_EXACT : 0))
#define CS_FRAME_WORD_KIND(word) ((enum cs_code_kind)((word) >> CS_FRAME_WORD_KIND_AT & 7))
CS_ISLAND uint32_t cs_walk_run_words(struct cs_walk *walk, uint64_t *out, uint32_t room);
