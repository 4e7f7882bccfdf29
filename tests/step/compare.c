// SPDX-License-Identifier: MIT
// Compares one walk with the stepper's call stack. In each frame, the ip must be the return address
// that was pushed, and the sp must be the place of the push plus 8. The walk is followed down to
// the frame that called the scene; the callee-saved registers there must be what they were when the
// scene began, so that a register that was restored wrongly on the way is found as well.
#include <stdio.h>
#include <string.h>

#include "oracle.h"

// The registers that are known both in the walk and at the scene's begin must agree.
static bool same_registers(const struct cs_regs *a, const struct cs_regs *b) {
  cs_regmask known = a->known & b->known & CS_REGS_PRESERVED;
  for (unsigned i = 0; i < CS_REG_COUNT; i++)
    if ((known & CS_REG_BIT(i)) && a->r[i] != b->r[i]) return false;
  return true;
}

static uint64_t ip_of(const struct cs_frame *frame) {
  return frame->regs.r[CS_IP];
}
static uint64_t sp_of(const struct cs_frame *frame) {
  return frame->regs.r[CS_SP];
}
static bool is_entry(const struct cs_frame *frame, const struct entry *entry) {
  return entry->ip == ip_of(frame) && entry->slot + 8 == sp_of(frame);
}

// Code that continues elsewhere for good (RtlRestoreContext, longjmp) discards the frames in
// between without changing the stack pointer step by step, and the word at the new stack pointer is
// not a return address of theirs (restore_context). The walk reports the place where the thread
// will continue as the caller, although no call has pushed that address: from there on the walk
// must agree. The thread also has to get there, and must not return to any of the callers that were
// left out (predict.c).
static bool goes_elsewhere(const struct shadow *shadow, const struct cs_frame *leaf,
                           const struct cs_frame *next, const struct entry *const *want,
                           unsigned count, unsigned *skip) {
  if (leaf->code.kind != CS_CODE_NATIVE || (next->flags & CS_FRAME_BRIDGED)) return false;
  bool alternate = shadow_on_alternate(shadow, sp_of(next));
  for (unsigned i = 0; i < count; i++) {
    // A frame that was built for the code there.
    bool built = want[i]->kind == ENTRY_MADE && want[i]->slot + 8 == sp_of(next);
    if (shadow_on_alternate(shadow, want[i]->slot) != alternate) continue;
    if (want[i]->slot <= sp_of(next) && !built) continue;
    *skip = i;
    return true;
  }
  return false;
}

// Where the runtime leaves the alternate stack, it builds the caller of the code there by hand. A
// walk that says where the thread goes on may show that frame before it is built (predict.c checks
// that it is built so). Returns whether this is that frame.
static bool may_be_built(const struct oracle *oracle, const struct walked *walked, unsigned depth,
                         struct comparison *result) {
  const struct cs_frame *frame = &walked->frame[depth];
  if (!result->resumes || result->builds || sp_of(&walked->frame[depth - 1]) != result->resume_sp ||
      ip_of(&walked->frame[depth - 1]) != result->resume_ip || (frame->flags & CS_FRAME_EXACT) ||
      !shadow_on_alternate(&oracle->shadow, sp_of(&walked->frame[0])) ||
      shadow_on_alternate(&oracle->shadow, sp_of(frame)) || sp_of(frame) > result->resume_sp + 8)
    return false;
  result->builds = true;
  result->built_ip = ip_of(frame);
  result->built_sp = sp_of(frame);
  return true;
}

// Returns true if the walk says at frame `depth` that the thread continues elsewhere, and may be
// right.
static bool may_go_elsewhere(const struct shadow *shadow, const struct walked *walked,
                             unsigned depth, const struct entry *const *want, unsigned at,
                             unsigned count, struct comparison *result) {
  const struct cs_frame *frame = &walked->frame[depth];
  unsigned skip;
  if (result->resumes || at >= count || is_entry(frame, want[at])) return false;
  if (depth != 1 && !(frame->flags & CS_FRAME_EXACT)) return false;
  if (!goes_elsewhere(shadow, &walked->frame[0], frame, want, count, &skip) || skip < at)
    return false;
  result->resumes = true;
  result->resume_ip = ip_of(frame);
  result->resume_sp = sp_of(frame);
  result->skip_from = at;
  result->skip_to = skip;
  return true;
}

static struct comparison wrong(struct comparison result, const char *why) {
  result.verdict = VERDICT_WRONG;
  (void)snprintf(result.why, sizeof result.why, "%s", why);
  return result;
}

struct comparison oracle_compare(const struct oracle *oracle, const struct walked *walked,
                                 const struct entry *const *want, unsigned count, bool whole) {
  struct comparison result = {.verdict = VERDICT_RIGHT};
  const struct entry *base = &oracle->shadow.entry[oracle->base];
  unsigned at = 0;
  if (walked->count > 1) {
    result.caller_ip = ip_of(&walked->frame[1]);
    result.caller_sp = sp_of(&walked->frame[1]);
  }
  for (unsigned depth = 1; depth < walked->count; depth++) {
    const struct cs_frame *frame = &walked->frame[depth];
    if (may_go_elsewhere(&oracle->shadow, walked, depth, want, at, count, &result)) {
      at = result.skip_to;
      continue;
    }
    if (at < count && !is_entry(frame, want[at]) && may_be_built(oracle, walked, depth, &result))
      continue;
    // Native frames were left out, and the walk reports it.
    for (unsigned i = at; (frame->flags & CS_FRAME_BRIDGED) && i < count; i++) {
      if (!is_entry(frame, want[i])) continue;
      result.bridged = result.bridged || i != at;
      at = i;
      break;
    }
    if (at >= count || !is_entry(frame, want[at])) return wrong(result, "another frame");
    if ((want[at]->kind == ENTRY_INTERRUPTED) != ((frame->flags & CS_FRAME_EXACT) != 0))
      return wrong(result, "exact or not");
    if (want[at] == base && !same_registers(&frame->regs, &oracle->base_regs))
      return wrong(result, "callee-saved registers");
    result.frames = at + 1;
    if (want[at] == base && !whole) {
      if (result.bridged) result.verdict = VERDICT_CUT;
      return result;
    }
    at++;
  }
  if (walked->cut_off) return wrong(result, "passes the frame that the scene was called by");
  result.stop = walked->stop;
  if (walked->stop != CS_STOP_BASE || result.bridged) {
    result.verdict = VERDICT_CUT;
  } else if (at < count) {
    return wrong(result, "the base too early");
  }
  return result;
}
