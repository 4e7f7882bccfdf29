// SPDX-License-Identifier: MIT
// Follows arm64 code. Written from the encodings of the architecture, without any of the product's
// code. Only instructions that move sp, fp or lr, save or restore registers, or branch are known;
// compilers write no others for a frame. One thread.
#include "aarch64/steps.h"

#include <stdlib.h>
#include <string.h>

enum { FP = 29, LR = 30, SP = 31 };
enum { PASSES = 3 };  // over an instruction: it is reached, fp is not kept, lr is not kept

struct follower {
  struct steps *steps;
  uint32_t *todo;
  uint32_t pending;
  int64_t constant[SP];  // of the block: what a register was set to by movz and movk
  bool is_constant[SP];
};

bool steps_is_call(uint32_t code) {
  return code >> 26 == 0x25 || (code & 0xFFFFFC1F) == 0xD63F0000;
}

static int64_t field(uint32_t code, unsigned at, unsigned bits) {
  return (int64_t)((uint64_t)code << (64 - at - bits)) >> (64 - bits);
}

static bool same(const struct step_state *a, const struct step_state *b) {
  return a->sp_known == b->sp_known && a->fp_is_frame == b->fp_is_frame &&
         (!a->sp_known || a->sp_below == b->sp_below) &&
         (!a->fp_is_frame || a->fp_below == b->fp_below) &&
         memcmp(a->own, b->own, sizeof a->own) == 0 &&
         memcmp(a->saved, b->saved, sizeof a->saved) == 0;
}

static void reach(struct follower *f, int64_t at, const struct step_state *state) {
  if (at < 0 || at >= f->steps->count) return;
  struct step_state *there = &f->steps->state[at];
  if (there->reached) {
    if (!there->conflict && !same(there, state)) there->conflict = true;
    bool fp_kept = there->fp_kept && state->fp_kept, lr_kept = there->lr_kept && state->lr_kept;
    if (fp_kept == there->fp_kept && lr_kept == there->lr_kept) return;
    there->fp_kept = fp_kept;
    there->lr_kept = lr_kept;
    f->todo[f->pending++] = (uint32_t)at;
    return;
  }
  *there = *state;
  there->reached = true;
  there->conflict = false;
  f->todo[f->pending++] = (uint32_t)at;
}

static int index_of(unsigned reg) {
  return reg >= STEP_FIRST && reg <= LR ? (int)reg - STEP_FIRST : -1;
}

// A register that is saved or restored at cfa - below.
static void move_register(struct step_state *s, unsigned reg, int32_t below, bool load) {
  int i = index_of(reg);
  if (i < 0) return;
  if (!load) {
    if (!s->own[i]) return;  // not its caller's value any more
    s->own[i] = false;
    s->saved[i] = s->left[i] = below;
  } else if (s->saved[i] == below) {
    s->own[i] = true;
    s->saved[i] = 0;
    if (reg == FP) s->fp_is_frame = false, s->fp_kept = true;
    if (reg == LR) s->lr_kept = true;
  } else {
    s->own[i] = false;
    if (reg == FP) s->fp_kept = false;
    if (reg == LR) s->lr_kept = false;
  }
}

// stp, ldp, str and ldr of 64-bit registers by sp or fp; others of their kind that move sp.
static bool step_memory(struct step_state *s, uint32_t code) {
  unsigned base = code >> 5 & 31, first = code & 31, second = code >> 10 & 31;
  bool pair = (code & 0x3A000000) == 0x28000000,
       single = (code & 0x3B200C00) == 0x38000400 || (code & 0x3B200C00) == 0x38000C00;
  bool plain = (code & 0xFF800000) == 0xF9000000;  // str and ldr with an unsigned offset
  if (!pair && !single && !plain) return false;
  bool vector = (code >> 26 & 1) != 0, load = (code >> 22 & 1) != 0;
  int64_t offset;
  unsigned mode;  // 1: after, 2: at an offset, 3: before
  if (pair) {
    unsigned scale = vector ? 2 + (code >> 30) : (code >> 30 & 2) != 0 ? 3 : 2;
    offset = field(code, 15, 7) * (1 << scale);
    mode = code >> 23 & 3;
  } else if (single) {
    offset = field(code, 12, 9);
    mode = code >> 10 & 3;
  } else {
    offset = (int64_t)(code >> 10 & 0xFFF) * 8;
    mode = 2;
  }
  if (base != SP && !(base == FP && s->fp_is_frame)) return true;
  bool known = base == FP || s->sp_known;
  int32_t below = base == FP ? s->fp_below : s->sp_below;
  int32_t at = mode == 1 ? below : below - (int32_t)offset;
  bool words = !vector && (pair ? code >> 30 == 2 : code >> 30 == 3);
  if (known && words) {
    move_register(s, first, at, load);
    if (pair) move_register(s, second, at - 8, load);
  }
  if (base == SP && mode != 2) s->sp_below -= (int32_t)offset;
  return true;
}

// Additions to sp and fp, and copies of one to the other.
static bool step_sum(struct follower *f, struct step_state *s, uint32_t code) {
  unsigned to = code & 31, from = code >> 5 & 31;
  int64_t by;
  bool immediate = (code & 0xBF800000) == 0x91000000 || (code & 0xFF800000) == 0xD1000000;
  bool extended = (code & 0xBFE0FC00) == 0x8B206000;  // add, sub sp, sp, xN
  if (!immediate && !extended) return false;
  if (immediate) {
    by = (int64_t)(code >> 10 & 0xFFF) << ((code >> 22 & 1) != 0 ? 12 : 0);
    if (code >> 30 & 1) by = -by;
  } else {
    unsigned reg = code >> 16 & 31;
    if (reg < SP && f->is_constant[reg] && to == SP && from == SP) {
      s->sp_below += (int32_t)(code >> 30 & 1 ? f->constant[reg] : -f->constant[reg]);
      return true;
    }
    if (to == SP) s->sp_known = false;
    return true;
  }
  bool known = from == SP ? s->sp_known : from == FP && s->fp_is_frame;
  int32_t below = (from == SP ? s->sp_below : s->fp_below) - (int32_t)by;
  if (to == SP) {
    s->sp_known = known;
    s->sp_below = below;
  } else if (to == FP) {
    s->own[STEP_FP] = s->fp_kept = false;
    s->fp_is_frame = known;
    s->fp_below = below;
  }
  if (to < SP) f->is_constant[to] = false;
  return true;
}

static void step_constant(struct follower *f, uint32_t code) {
  unsigned to = code & 31, shift = (code >> 21 & 3) * 16;
  if (to >= SP) return;
  if ((code & 0x7F800000) == 0x52800000) {
    f->constant[to] = (int64_t)((uint64_t)(code >> 5 & 0xFFFF) << shift);
    f->is_constant[to] = true;
  } else if ((code & 0x7F800000) == 0x72800000) {
    f->constant[to] |= (int64_t)((uint64_t)(code >> 5 & 0xFFFF) << shift);
  } else {
    f->is_constant[to] = false;  // or some other register, which is then no constant for us
  }
}

// Follows one instruction to those after it.
static void follow(struct follower *f, const uint32_t *code, uint32_t at) {
  struct step_state s = f->steps->state[at];
  uint32_t c = code[at];
  if (c >> 26 == 0x05) {  // b; of another function: out of range
    reach(f, at + field(c, 0, 26), &s);
    return;
  }
  if ((c & 0xFF000010) == 0x54000000 || (c & 0x7E000000) == 0x34000000) {  // b.cond, cbz, cbnz
    reach(f, at + field(c, 5, 19), &s);
  } else if ((c & 0x7E000000) == 0x36000000) {  // tbz, tbnz
    reach(f, at + field(c, 5, 14), &s);
  } else if ((c & 0xFF9FFC1F) == 0xD61F0000 && !steps_is_call(c)) {  // br, ret
    return;
  } else if ((c & 0xFFE0001F) == 0xD4200000) {  // brk
    return;
  } else if (steps_is_call(c)) {
    s.own[STEP_LR] = s.lr_kept = false;  // what was there is lost
    memset(f->is_constant, 0, sizeof f->is_constant);
  } else if (!step_memory(&s, c) && !step_sum(f, &s, c)) {
    step_constant(f, c);
  }
  reach(f, (int64_t)at + 1, &s);
}

bool steps_follow(struct steps *steps, const uint32_t *code, uint32_t count) {
  struct follower f = {.steps = steps};
  struct step_state entry = {.sp_known = true, .fp_kept = true, .lr_kept = true};
  free(steps->state);
  steps->state = calloc(count, sizeof *steps->state);
  f.todo = calloc(count, PASSES * sizeof *f.todo);
  steps->count = count;
  bool ok = steps->state != NULL && f.todo != NULL;
  for (unsigned i = 0; i < STEP_SAVED; i++) entry.own[i] = true;
  if (ok && count != 0) reach(&f, 0, &entry);
  for (uint32_t last = 0; ok && f.pending != 0;) {
    uint32_t at = f.todo[--f.pending];
    if (at != last + 1) memset(f.is_constant, 0, sizeof f.is_constant);
    follow(&f, code, at);
    last = at;
  }
  free(f.todo);
  return ok;
}
