// SPDX-License-Identifier: MIT
// Tests the oracle itself: some of the walks that were found right are compared again with a fault
// put in, and the comparison has to find each fault. A walk that lacks the leaf's caller may look
// as if the thread were about to continue elsewhere; the thread then has to refute that, by
// returning to that very caller (predict.c).
#include <stdio.h>
#include <string.h>

#include "oracle.h"

static struct walked baited;

static void drop(struct walked *w, unsigned at) {
  memmove(&w->frame[at], &w->frame[at + 1], (w->count - at - 1) * sizeof w->frame[0]);
  w->count--;
}

// Puts the fault in at frame `at`, which is neither the leaf nor the last frame. Returns false if
// the fault is impossible in this walk.
static bool put(struct walked *w, enum bait bait, unsigned at, const struct cs_regs *base) {
  struct cs_frame *frame = &w->frame[at];
  switch (bait) {
    case BAIT_SKIPPED:
      drop(w, at);
      return at != 1;
    case BAIT_CALLER:
    case BAIT_RETURNED:
      drop(w, 1);
      return true;
    case BAIT_IP:
    case BAIT_WORD:
      frame->regs.r[CS_IP]++;
      return true;
    case BAIT_SP:
      frame->regs.r[CS_SP] += 16;
      return true;
    case BAIT_EXACT:
      frame->flags ^= CS_FRAME_EXACT;
      return true;
    case BAIT_BRIDGED:
      drop(w, at);
      frame->flags |= CS_FRAME_BRIDGED;
      return true;
    case BAIT_CUT:
    case BAIT_BASE:
      w->count = at;
      w->cut_off = false;
      w->stop = bait == BAIT_CUT ? CS_STOP_NATIVE_RULE : CS_STOP_BASE;
      return true;
    case BAIT_REGISTER:
      w->frame[w->count - 1].regs.r[cs_preserved_register[0]] ^= 8;
      return w->cut_off && (w->frame[w->count - 1].regs.known & base->known &
                            CS_REG_BIT(cs_preserved_register[0])) != 0;
    case BAIT_KIND:
      frame->code.kind = frame->code.kind == CS_CODE_JIT ? CS_CODE_R2R : CS_CODE_JIT;
      return true;
    case BAIT_LENGTH:
      w->count--;
      w->cut_off = false;
      return true;
    case BAIT_BUILT:  // predict.c
    case BAIT_COUNT:
      break;
  }
  return false;
}

static bool is_for_handlers(enum bait bait) {
  return bait == BAIT_WORD || bait == BAIT_KIND || bait == BAIT_LENGTH;
}

void bait_check(struct oracle *oracle, const struct entry *const *want, unsigned count) {
  const struct walked *w = &oracle->walked;
  unsigned chance = oracle->options.bait;
  if (chance == 0 || w->count < 4 || oracle_random(oracle) % chance != 0) return;
  enum bait bait = (enum bait)(oracle_random(oracle) % BAIT_COUNT);
  unsigned at = 1 + (unsigned)(oracle_random(oracle) % (w->count - 2));
  baited.count = w->count;
  baited.cut_off = w->cut_off;
  baited.stop = w->stop;
  baited.stop_ip = w->stop_ip;
  memcpy(baited.frame, w->frame, w->count * sizeof w->frame[0]);
  if (!put(&baited, bait, at, &oracle->base_regs)) return;
  bool found;
  if (is_for_handlers(bait)) {
    struct exact_walk exact = {baited.frame, baited.count, baited.cut_off, baited.stop,
                               baited.stop_ip};
    struct cs_error err;
    found = !handlers_walk_agrees(oracle->handlers, &oracle->thread, &exact, &err);
  } else {
    struct comparison result = oracle_compare(oracle, &baited, want, count, !w->cut_off);
    if (result.verdict == VERDICT_RIGHT && result.resumes) {  // the thread's next steps decide
      if (!oracle->bait_prediction.made)
        prediction_make(&oracle->bait_prediction, oracle, &result, want);
      return;
    }
    found = result.verdict != VERDICT_RIGHT;
  }
  if (bait == BAIT_RETURNED) bait = BAIT_CALLER;
  oracle->bait[bait].put++;
  oracle->bait[bait].found += found;
  if (!found) printf("  a fault of kind %d at frame %u was not noticed\n", (int)bait, at);
}
