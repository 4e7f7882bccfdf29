// SPDX-License-Identifier: MIT
// One walk against the stepper's call stack. Frame by frame: the ip must be the return address that
// was pushed, and the sp must be where it was pushed plus 8. The walk is followed down to the frame
// that called the scene; that one's callee-saved registers must be what they were when the scene
// began, so that a register restored wrongly on the way is found out as well.
//
// The walker's pages may be older than the memory (only the stack and the runtime's Thread are read
// anew at each instruction). So a walk that is not right is done again with nothing kept, and that
// one counts.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "oracle.h"

enum { THREAD_BYTES = 1024, MAX_COMPARED = 4096, FIXED_ABOVE_MARK = 3 };

struct comparison {
  enum verdict verdict;
  enum cs_stop stop;
  unsigned frames;  // that were right
  uint64_t ip, sp;  // of the first that was not
  struct cs_code leaf;
  const char *why;
  bool bridged;  // native frames were left out
  bool resumes;  // the walk says that the thread goes on elsewhere, here:
  uint64_t resume_ip, resume_sp;
  uint64_t caller_ip, caller_sp;  // of the leaf
};

uint64_t oracle_random(struct oracle *oracle) {
  oracle->random ^= oracle->random << 13;
  oracle->random ^= oracle->random >> 7;
  oracle->random ^= oracle->random << 17;
  return oracle->random;
}

void oracle_invalidate(struct oracle *oracle) {
  const struct cs_remote_thread *t = &oracle->thread;
  uint64_t sp = t->regs.r[CS_RSP], base = oracle->shadow.entry[oracle->base].slot + 64;
  bool alternate = sp >= t->stack.alt_lo && sp < t->stack.alt_hi;
  if (alternate) cs_remote_invalidate_range(oracle->remote, sp & ~4095ull, t->stack.alt_hi);
  uint64_t lo = alternate || sp > base ? base - (64 << 10) : sp;
  cs_remote_invalidate_range(oracle->remote, lo - 256, base);
  if (t->clr_thread != 0)
    cs_remote_invalidate_range(oracle->remote, t->clr_thread, t->clr_thread + THREAD_BYTES);
}

// The registers that both the walk and the scene's begin know must agree.
static bool same_registers(const struct cs_regs *a, const struct cs_regs *b) {
  uint32_t known = a->known & b->known & CS_REGS_PRESERVED;
  for (unsigned i = 0; i < CS_REG_COUNT; i++)
    if ((known & CS_REG_BIT(i)) && a->r[i] != b->r[i]) return false;
  return true;
}

// Code that goes on elsewhere for good (RtlRestoreContext, longjmp) throws the frames in between
// away without touching the stack pointer, and what lies at the new one is no return address of
// theirs (restore_context). The walk gives the place where it will go on as its
// caller, although no call has pushed that address: from there on it must agree. And the thread has
// to get there (check_prediction).
static bool is_resumption(const struct cs_frame *leaf, const struct cs_frame *next,
                          const struct entry *const *want, unsigned count, unsigned *skip) {
  if (leaf->code.kind != CS_CODE_NATIVE || (next->flags & CS_FRAME_BRIDGED)) return false;
  for (unsigned i = 0; i < count; i++) {
    if (want[i]->slot <= next->regs.r[CS_RSP]) continue;
    *skip = i;
    return true;
  }
  return false;
}

static struct comparison compare(struct oracle *oracle, bool fast, bool whole, unsigned hide) {
  static const struct entry *want[MAX_COMPARED];
  static struct cs_walk walk;
  static struct cs_frame frame, leaf;
  struct comparison result = {.verdict = VERDICT_RIGHT};
  const struct entry *base = &oracle->shadow.entry[oracle->base];
  unsigned count =
      shadow_frames(&oracle->shadow, oracle->thread.regs.r[CS_RSP], want, MAX_COMPARED);
  for (unsigned i = hide; hide != 0 && i < count; i++) want[i - 1] = want[i];
  if (hide != 0) count--;
  cs_remote_walk_begin(oracle->remote, &oracle->thread, &walk);
  walk.fast = fast;
  unsigned at = 0;
  for (unsigned depth = 0; cs_walk_next(&walk, &frame); depth++) {
    if (depth == 0) {
      leaf = frame;
      result.leaf = frame.code;
      continue;
    }
    uint64_t ip = frame.regs.r[CS_RIP], sp = frame.regs.r[CS_RSP];
    if (depth == 1) result.caller_ip = ip, result.caller_sp = sp;
    unsigned skip;
    bool may_resume = depth == 1 || (frame.flags & CS_FRAME_EXACT) != 0;
    if (may_resume && !result.resumes && at < count &&
        (want[at]->ip != ip || want[at]->slot + 8 != sp) &&
        is_resumption(&leaf, &frame, want, count, &skip)) {
      result.resumes = true;
      result.resume_ip = ip;
      result.resume_sp = sp;
      at = skip;
      continue;
    }
    // A return address that was overwritten, by libgcc with where an exception is caught: then the
    // thread has to get there.
    uint64_t word;
    if (at < count && want[at]->ip != ip && want[at]->slot + 8 == sp &&
        want[at]->kind == ENTRY_CALL && leaf.code.kind == CS_CODE_NATIVE && !result.resumes &&
        cs_remote_read(oracle->remote, sp - 8, &word, sizeof word) && word == ip) {
      result.resumes = true;
      result.resume_ip = ip;
      result.resume_sp = sp;
      at++;
      continue;
    }
    // Native frames were left out, and the walk says so.
    for (unsigned i = at; (frame.flags & CS_FRAME_BRIDGED) && i < count; i++) {
      if (want[i]->ip != ip || want[i]->slot + 8 != sp) continue;
      result.bridged = result.bridged || i != at;
      at = i;
      break;
    }
    result.ip = ip;
    result.sp = sp;
    result.why = "another frame";
    result.verdict = VERDICT_WRONG;
    if (at >= count || want[at]->ip != ip || want[at]->slot + 8 != sp) return result;
    bool exact = want[at]->kind == ENTRY_INTERRUPTED;
    result.why = "exact or not";
    if (exact != ((frame.flags & CS_FRAME_EXACT) != 0)) return result;
    result.why = "callee-saved registers";
    if (want[at] == base && !same_registers(&frame.regs, &oracle->base_regs)) return result;
    result.verdict = VERDICT_RIGHT;
    result.frames = at + 1;
    if (want[at] == base && !whole) {
      if (result.bridged) result.verdict = VERDICT_CUT;
      return result;
    }
    at++;
  }
  result.stop = walk.stop;
  result.ip = walk.stop_ip;
  if (walk.stop != CS_STOP_BASE || result.bridged) {
    result.verdict = VERDICT_CUT;
  } else if (at < count) {
    result.verdict = VERDICT_WRONG;
    result.why = "the base too early";
  }
  return result;
}

static enum code_group group_of(struct oracle *oracle, const struct cs_code *code) {
  uint8_t b[8];
  switch (code->kind) {
    case CS_CODE_JIT:
      return code->funclet ? GROUP_FUNCLET : GROUP_JIT;
    case CS_CODE_R2R:
      return GROUP_R2R;
    case CS_CODE_STUB:
      return GROUP_STUB;
    case CS_CODE_NONE:
      return GROUP_UNKNOWN;
    case CS_CODE_NATIVE:
      break;
  }
  uint64_t entry = oracle->thread.regs.r[CS_RIP] & ~15ull;  // a PLT's are 16 bytes each
  if (cs_remote_read(oracle->remote, entry, b, sizeof b) &&
      ((b[0] == 0xFF && b[1] == 0x25) || (b[0] == 0xF3 && b[1] == 0x0F && b[2] == 0x1E &&
                                          b[3] == 0xFA && b[4] == 0xFF && b[5] == 0x25)))
    return GROUP_PLT;
  if (code->image->is_coreclr) return GROUP_CORECLR;
  const char *slash = strrchr(code->image->path, '/');
  const char *name = slash != NULL ? slash + 1 : code->image->path;
  if (strncmp(name, "libclrjit", 9) == 0) return GROUP_CLRJIT;
  if (strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0) return GROUP_LIBC;
  return GROUP_OTHER_NATIVE;
}

static void print_walk(struct oracle *oracle) {
  static const struct entry *want[MAX_COMPARED];
  struct cs_walk walk;
  struct cs_frame frame;
  char text[128];
  unsigned count =
      shadow_frames(&oracle->shadow, oracle->thread.regs.r[CS_RSP], want, MAX_COMPARED);
  cs_remote_walk_begin(oracle->remote, &oracle->thread, &walk);
  for (unsigned i = 0; i < 64 && cs_walk_next(&walk, &frame); i++) {
    describe(oracle, frame.regs.r[CS_RIP], text, sizeof text);
    printf("    walk  sp %012" PRIx64 " ip %012" PRIx64 " flags %x  %s\n", frame.regs.r[CS_RSP],
           frame.regs.r[CS_RIP], frame.flags, text);
  }
  printf("    walk  ends: %s\n", cs_stop_token(walk.stop));
  for (unsigned i = 0; i < count && i < 64; i++) {
    describe(oracle, want[i]->ip, text, sizeof text);
    printf("    want  sp %012" PRIx64 " ip %012" PRIx64 " kind %d   %s%s\n", want[i]->slot + 8,
           want[i]->ip, (int)want[i]->kind, text,
           want[i] == &oracle->shadow.entry[oracle->base] ? "  <- fixed from here on" : "");
  }
}

static void print_bytes(struct oracle *oracle) {
  uint64_t ip = oracle->thread.regs.r[CS_RIP];
  uint8_t b[16];
  if (!cs_remote_read(oracle->remote, ip, b, sizeof b)) return;
  printf("    bytes at the ip:");
  for (unsigned i = 0; i < sizeof b; i++) printf(" %02x", b[i]);
  printf("\n");
}

static void remember(struct oracle *oracle, const struct scene *scene,
                     const struct comparison *result) {
  uint64_t ip = oracle->thread.regs.r[CS_RIP];
  unsigned i = 0;
  while (i < oracle->findings &&
         !(oracle->finding[i].ip == ip && oracle->finding[i].verdict == result->verdict &&
           oracle->finding[i].stop == result->stop))
    i++;
  if (i == MAX_FINDINGS) return;
  struct finding *f = &oracle->finding[i];
  f->count++;
  if (i < oracle->findings) return;
  oracle->findings++;
  *f = (struct finding){.verdict = result->verdict, .stop = result->stop, .ip = ip, .count = 1};
  describe(oracle, ip, f->where, sizeof f->where);
  if (oracle->shown++ >= oracle->options.show) return;
  printf("  %s in %s at %s after %u right frames: %s\n",
         result->verdict == VERDICT_WRONG ? "WRONG" : "cut", scene->name, f->where, result->frames,
         result->verdict == VERDICT_WRONG ? result->why : cs_stop_text(result->stop));
  print_bytes(oracle);
  print_walk(oracle);
}

// Where the walk has said that the thread goes on: until it is there, every walk must say the same.
static void check_prediction(struct oracle *oracle, struct comparison *result) {
  struct prediction *p = &oracle->prediction;
  const struct cs_regs *now = &oracle->thread.regs;
  // Where it goes on may be where the call would have returned to anyway.
  bool still = result->caller_ip == p->ip && result->caller_sp == p->sp;
  if (p->made && !result->resumes && !still && oracle->shadow.count <= p->depth) {
    p->made = false;
    if (now->r[CS_RIP] == p->ip && now->r[CS_RSP] == p->sp) {
      oracle->resumptions++;
    } else {
      result->verdict = VERDICT_WRONG;
      result->why = "went on elsewhere than the walk had said";
    }
  }
  if (!result->resumes) return;
  if (p->made && (p->ip != result->resume_ip || p->sp != result->resume_sp)) {
    result->verdict = VERDICT_WRONG;
    result->why = "goes on elsewhere than the walk had said";
  }
  *p = (struct prediction){true, result->resume_ip, result->resume_sp, oracle->shadow.count};
}

// The oracle has to notice that a call is missing: any but those below the scene.
static void check_itself(struct oracle *oracle) {
  unsigned hide = oracle->shadow.count - oracle->base, left_out;
  if (oracle->options.hide == 0 || oracle_random(oracle) % oracle->options.hide != 0) return;
  left_out = 1 + (unsigned)(oracle_random(oracle) % (hide - 1));
  oracle->hidden++;
  // A leaf whose caller is missing looks as if it went on elsewhere: then it would have to.
  struct comparison result = compare(oracle, false, true, left_out);
  oracle->hidden_found += result.verdict != VERDICT_RIGHT || result.resumes;
}

static void check(struct oracle *oracle, struct scene *scene, bool whole) {
  bool fast = (oracle_random(oracle) >> 20 & 1) != 0;
  oracle_invalidate(oracle);
  struct comparison result = compare(oracle, fast, whole, 0);
  if (result.verdict != VERDICT_RIGHT) {
    cs_remote_invalidate(oracle->remote);
    cs_remote_refresh_images(oracle->remote);
    result = compare(oracle, fast, whole, 0);
    if (result.verdict == VERDICT_RIGHT) oracle->stale++;
  }
  check_prediction(oracle, &result);
  if (result.verdict == VERDICT_RIGHT && !result.resumes) check_itself(oracle);
  struct tally *tallies[] = {&scene->tally, &oracle->group[group_of(oracle, &result.leaf)]};
  for (unsigned i = 0; i < CS_COUNT(tallies); i++) {
    tallies[i]->walked++;
    tallies[i]->cut += result.verdict == VERDICT_CUT;
    tallies[i]->wrong += result.verdict == VERDICT_WRONG;
  }
  if (result.verdict == VERDICT_CUT) oracle->stops[result.stop]++;
  if (result.verdict != VERDICT_RIGHT) remember(oracle, scene, &result);
}

void oracle_check(struct oracle *oracle, struct scene *scene) {
  check(oracle, scene, false);
}

void oracle_check_whole(struct oracle *oracle, struct scene *scene) {
  check(oracle, scene, true);
}

bool oracle_begin(struct oracle *oracle, struct cs_error *err) {
  static struct cs_frame frames[SHADOW_MAX];
  struct cs_walk walk;
  unsigned count = 0;
  cs_remote_invalidate(oracle->remote);
  cs_remote_refresh_images(oracle->remote);
  if (!cs_remote_thread(oracle->remote, oracle->tracee.tid, &oracle->thread, err)) return false;
  cs_remote_walk_begin(oracle->remote, &oracle->thread, &walk);
  while (count < SHADOW_MAX && cs_walk_next(&walk, &frames[count])) count++;
  if (walk.stop != CS_STOP_BASE || count < FIXED_ABOVE_MARK + 2)
    return cs_error_set(err, "the stack at a scene's begin is not complete: %s",
                        cs_stop_text(walk.stop));
  oracle->shadow.count = 0;
  oracle->prediction.made = false;
  for (unsigned i = count; i-- > 1;)
    shadow_push(&oracle->shadow, ENTRY_CALL, frames[i].regs.r[CS_RSP] - 8,
                frames[i].regs.r[CS_RIP]);
  oracle->shadow.alt_lo = oracle->thread.stack.alt_lo;
  oracle->shadow.alt_hi = oracle->thread.stack.alt_hi;
  // frames[i] is entry[count - 1 - i]. The mark's own callers may be a stub and the method that
  // runs the scene; what has called that does not change before the scene has ended.
  unsigned fixed = FIXED_ABOVE_MARK + 1;
  oracle->base = count - 1 - fixed;
  oracle->base_regs = frames[fixed].regs;
  return true;
}
