// SPDX-License-Identifier: MIT
// Made at each instruction: the exact walk, compared with the stepper's call stack; then the
// handler's own walks, compared with the exact one (tools/handlers_walk.h).
//
// The walker's cached pages may be older than the memory (only the stack and the runtime's Thread
// are read again at each instruction). So a walk that is not right is repeated with an empty cache,
// and the second walk counts.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { THREAD_BYTES = 1024, FIXED_ABOVE_MARK = 3, BELOW_STACK = 64 << 10 };

uint64_t oracle_random(struct oracle *oracle) {
  oracle->random ^= oracle->random << 13;
  oracle->random ^= oracle->random >> 7;
  oracle->random ^= oracle->random << 17;
  return oracle->random;
}

static bool on_alternate(const struct cs_stack *stack, uint64_t sp) {
  return sp >= stack->alt_lo && sp < stack->alt_hi;
}

// Reads the stack down to the scene's caller, and the runtime's Thread. Returns false with `err`
// set.
static bool read_anew(struct oracle *oracle, struct cs_error *err) {
  const struct cs_remote_thread *t = &oracle->thread;
  uint64_t sp = t->regs.r[CS_SP], base = oracle->shadow.entry[oracle->base].slot + 64;
  bool alternate = on_alternate(&t->stack, sp);
  if (alternate) cs_remote_invalidate_range(oracle->remote, sp & ~4095ull, t->stack.alt_hi);
  uint64_t lo = alternate || sp > base ? base - BELOW_STACK : sp;
  cs_remote_invalidate_range(oracle->remote, lo - 256, base);
  if (t->clr_thread != 0)
    cs_remote_invalidate_range(oracle->remote, t->clr_thread, t->clr_thread + THREAD_BYTES);
  return handlers_walk_copy(oracle->handlers, t, lo - 256, base, err);
}

static void read_all_anew(struct oracle *oracle) {
  cs_remote_invalidate(oracle->remote);
  cs_remote_refresh_images(oracle->remote);
  handlers_walk_forget_copy(oracle->handlers);
}

static void walk_exactly(struct oracle *oracle, bool whole) {
  static struct cs_walk walk;
  struct walked *w = &oracle->walked;
  const struct cs_stack *stack = &oracle->thread.stack;
  uint64_t base_sp = oracle->shadow.entry[oracle->base].slot + 8;
  cs_remote_walk_begin(oracle->remote, &oracle->thread, &walk);
  w->cut_off = false;
  bool hijacked = false;
  for (w->count = 0; w->count < MAX_COMPARED && cs_walk_next(&walk, &w->frame[w->count]);) {
    if ((w->frame[w->count].flags & CS_FRAME_HIJACKED) && !hijacked) oracle->hijacked++;
    hijacked = hijacked || (w->frame[w->count].flags & CS_FRAME_HIJACKED) != 0;
    uint64_t sp = w->frame[w->count++].regs.r[CS_SP];
    w->cut_off = !whole && w->count > 1 && sp >= base_sp && !on_alternate(stack, sp);
    if (!w->cut_off) continue;
    cs_walk_leave(&walk);
    return;
  }
  w->stop = walk.stop;
  w->stop_ip = walk.stop_ip;
}

// The frames that the walk should find as long as nothing is pushed or popped.
static const struct entry *want[MAX_COMPARED];
static unsigned wanted;

static struct comparison look(struct oracle *oracle, bool whole) {
  struct comparison result = {.verdict = VERDICT_WRONG};
  struct cs_error err = {.text = ""};
  bool copied = read_anew(oracle, &err);
  if (copied) {
    walk_exactly(oracle, whole);
    wanted = shadow_frames(&oracle->shadow, oracle->thread.regs.r[CS_SP], want, MAX_COMPARED);
    result = oracle_compare(oracle, &oracle->walked, want, wanted, whole);
    if (result.verdict == VERDICT_WRONG) return result;
    const struct walked *w = &oracle->walked;
    struct exact_walk exact = {w->frame, w->count, w->cut_off, w->stop, w->stop_ip};
    if (handlers_walk_agrees(oracle->handlers, &oracle->thread, &exact, &err)) return result;
  }
  result.verdict = VERDICT_WRONG;
  (void)snprintf(result.why, sizeof result.why, "%.*s", (int)sizeof result.why - 1, err.text);
  return result;
}

static enum code_group group_of(struct oracle *oracle, const struct cs_code *code) {
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
  if (machine_is_plt(oracle, oracle->thread.regs.r[CS_IP])) return GROUP_PLT;
  if (code->image->is_coreclr) return GROUP_CORECLR;
  const char *slash = strrchr(code->image->path, '/');
  const char *name = slash != NULL ? slash + 1 : code->image->path;
  if (strncmp(name, "libclrjit", 9) == 0) return GROUP_CLRJIT;
  if (strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0) return GROUP_LIBC;
  return GROUP_OTHER_NATIVE;
}

static void print_walk(struct oracle *oracle) {
  const struct walked *w = &oracle->walked;
  char text[128];
  for (unsigned i = 0; i < 64 && i < w->count; i++) {
    const struct cs_frame *frame = &w->frame[i];
    describe(oracle, frame->regs.r[CS_IP], text, sizeof text);
    printf("    walk  sp %012" PRIx64 " ip %012" PRIx64 " flags %x  %s\n", frame->regs.r[CS_SP],
           frame->regs.r[CS_IP], frame->flags, text);
  }
  printf("    walk  ends: %s\n", w->cut_off ? "-" : cs_stop_token(w->stop));
  for (unsigned i = 0; i < wanted && i < 64; i++) {
    describe(oracle, want[i]->ip, text, sizeof text);
    printf("    want  sp %012" PRIx64 " ip %012" PRIx64 " kind %d   %s%s\n", want[i]->slot + 8,
           want[i]->ip, (int)want[i]->kind, text,
           want[i] == &oracle->shadow.entry[oracle->base] ? "  <- fixed from here on" : "");
  }
}

static void print_bytes(struct oracle *oracle) {
  uint64_t ip = oracle->thread.regs.r[CS_IP];
  uint8_t b[16];
  if (!cs_remote_read(oracle->remote, ip, b, sizeof b)) return;
  printf("    bytes at the ip:");
  for (unsigned i = 0; i < sizeof b; i++) printf(" %02x", b[i]);
  printf("\n");
}

static void remember(struct oracle *oracle, const struct scene *scene,
                     const struct comparison *result) {
  uint64_t ip = oracle->thread.regs.r[CS_IP];
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
  const char *why = result->verdict == VERDICT_WRONG ? result->why : cs_stop_text(result->stop);
  (void)snprintf(f->why, sizeof f->why, "%s", why);
  if (oracle->shown++ >= oracle->options.show) return;
  printf("  %s in %s at %s after %u right frames: %s\n",
         result->verdict == VERDICT_WRONG ? "WRONG" : "cut", scene->name, f->where, result->frames,
         why);
  print_bytes(oracle);
  print_walk(oracle);
}

static void note_stale(struct oracle *oracle, const struct scene *scene,
                       const struct comparison *first) {
  char where[128];
  bool wrong = first->verdict == VERDICT_WRONG;
  if (oracle->excuse[wrong ? EXCUSE_STALE_WRONG : EXCUSE_STALE]++ >= oracle->options.show) return;
  describe(oracle, oracle->thread.regs.r[CS_IP], where, sizeof where);
  printf("  read anew in %s at %s: %s\n", scene->name, where,
         wrong ? first->why : cs_stop_text(first->stop));
}

// Returns whether the thread goes on at a place that no walk has given yet. Pages from before a
// method was compiled can make it look so: its return address is not recognised, and what an
// earlier replaced return address has left behind is taken for it.
static bool is_news(const struct oracle *oracle, const struct comparison *result) {
  const struct prediction *p = &oracle->prediction;
  return result->resumes && !(p->made && p->ip == result->resume_ip && p->sp == result->resume_sp);
}

static struct comparison look_anew(struct oracle *oracle, struct scene *scene, bool whole,
                                   struct comparison first) {
  read_all_anew(oracle);
  struct comparison result = look(oracle, whole);
  if (result.verdict != VERDICT_RIGHT || (first.verdict == VERDICT_RIGHT && result.resumes))
    return result;
  if (first.verdict == VERDICT_RIGHT) {
    first.verdict = VERDICT_WRONG;
    (void)snprintf(first.why, sizeof first.why, "the thread does not go on elsewhere");
  }
  note_stale(oracle, scene, &first);
  return result;
}

void oracle_check(struct oracle *oracle, struct scene *scene, bool whole) {
  struct comparison result = look(oracle, whole);
  if (result.verdict != VERDICT_RIGHT || is_news(oracle, &result))
    result = look_anew(oracle, scene, whole, result);
  prediction_check(oracle, &result, want);
  if (result.resumes) oracle->excuse[EXCUSE_ELSEWHERE]++;
  if (result.builds) oracle->excuse[EXCUSE_BUILT]++;
  if (result.verdict == VERDICT_RIGHT && !result.resumes) bait_check(oracle, want, wanted);
  struct tally *tallies[] = {&scene->tally,
                             &oracle->group[group_of(oracle, &oracle->walked.frame[0].code)]};
  for (unsigned i = 0; i < CS_COUNT(tallies); i++) {
    tallies[i]->walked++;
    tallies[i]->cut += result.verdict == VERDICT_CUT;
    tallies[i]->wrong += result.verdict == VERDICT_WRONG;
  }
  if (result.verdict == VERDICT_CUT) oracle->stops[result.stop]++;
  if (result.verdict != VERDICT_RIGHT) remember(oracle, scene, &result);
  if (result.verdict == VERDICT_WRONG && oracle->options.first) {
    printf("ends at the first wrong walk\n");
    (void)fflush(stdout);
    _Exit(1);
  }
}

bool oracle_begin(struct oracle *oracle, struct cs_error *err) {
  static struct cs_frame frames[SHADOW_MAX];
  struct cs_walk walk;
  unsigned count = 0;
  read_all_anew(oracle);
  if (!cs_remote_thread(oracle->remote, oracle->tracee.tid, &oracle->thread, err)) return false;
  cs_remote_walk_begin(oracle->remote, &oracle->thread, &walk);
  while (count < SHADOW_MAX && cs_walk_next(&walk, &frames[count])) count++;
  if (walk.stop != CS_STOP_BASE || count < FIXED_ABOVE_MARK + 2)
    return cs_error_set(err, "the stack at a scene's begin is not complete: %s",
                        cs_stop_text(walk.stop));
  oracle->shadow.count = 0;
  oracle->prediction.made = false;
  for (unsigned i = count; i-- > 1;)
    shadow_push(&oracle->shadow, ENTRY_CALL, frames[i].regs.r[CS_SP] - 8, frames[i].regs.r[CS_IP]);
  oracle->shadow.alt_lo = oracle->thread.stack.alt_lo;
  oracle->shadow.alt_hi = oracle->thread.stack.alt_hi;
  // frames[i] is entry[count - 1 - i]. The mark's own callers may be a stub and the method that
  // runs the scene; what has called that does not change before the scene has ended.
  unsigned fixed = FIXED_ABOVE_MARK + 1;
  oracle->base = count - 1 - fixed;
  oracle->base_regs = frames[fixed].regs;
  return true;
}
