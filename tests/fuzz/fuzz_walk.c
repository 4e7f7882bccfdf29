// SPDX-License-Identifier: MIT
// A walk over the recorded memory of real processes (worlds/), with changes in registers, stack and
// tables. The walk must end soon and see only what was recorded; and whatever is on a stack, the
// walk over known return addresses (walk/run.c) must find what the exact one finds.
//
// The input: the world, the thread, flags, then changes of 6 bytes each: what, where, how, value.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "unwind/sites.h"
#include "walk/record.h"
#include "world.h"

enum {
  MOST_WORLDS = 8,
  MOST_CHANGES = 48,
  MOST_FRAMES = 4096,
  HEAD = 3,
  CHANGE = 6,
  // The most reads that a frame may cost. Code that is in no map may be bridged by an explicit
  // Frame, for which up to 64 KiB of stack are searched, with some twenty reads for each word.
  READS_BEFORE = 1 << 19,
  READS_PER_FRAME = 1 << 12,
};
enum { UNSETTLED = 1, UNKNOWN_RBP = 2 };  // flags

static struct recorded worlds[MOST_WORLDS];
static struct cs_sites *sites[MOST_WORLDS];
static uint32_t world_count;

struct change {
  uint8_t *at, old[8];
};
static struct change changes[MOST_CHANGES];
static uint32_t change_count;
static bool tables_changed;

static void load_worlds(void) {
  struct dirent **names;
  int count = scandir(CS_FUZZ_WORLDS, &names, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    char *path;
    if (strstr(names[i]->d_name, ".world") != NULL && world_count < MOST_WORLDS) {
      if (asprintf(&path, "%s/%s", CS_FUZZ_WORLDS, names[i]->d_name) < 0) abort();
      world_load(&worlds[world_count], path);
      sites[world_count] = calloc(1, sizeof **sites);
      if (sites[world_count++] == NULL) abort();
      free(path);
    }
    free(names[i]);
  }
  free(names);
  if (world_count > 0) return;
  (void)fprintf(stderr, "there is no recorded world in %s\n", CS_FUZZ_WORLDS);
  exit(1);
}

// ---- Changes ----

// The value of a change: small, an address on the stack, one in recorded memory, or a copied word.
static uint64_t value_of(const struct recorded *w, const struct world_thread *t, uint8_t how,
                         uint16_t value, uint64_t old) {
  uint64_t sp = t->r[CS_RSP], word, left;
  const struct segment *s = &w->segments[value % w->segment_count];
  const uint8_t *from;
  switch (how & 7) {
    case 0:
      return (uint64_t)(int64_t)(int16_t)value;
    case 1:
      return sp + (uint64_t)((int64_t)(int16_t)value * 8);
    case 2:
      return s->address + (how >> 3) * 8u % s->size;
    case 3:
      from = world_at(w, sp + value * 8ull, &left);
      if (from == NULL || left < 8) return old;
      memcpy(&word, from, sizeof word);
      return word;
    case 4:
      return old + (uint64_t)(int64_t)(int16_t)value;
    case 5:
      return old ^ 1ull << (value & 63);
    case 6:
      return (old & ~0xFFull << (how >> 3) % 8 * 8) | (uint64_t)(value & 0xFF)
                                                          << (how >> 3) % 8 * 8;
    default:
      return t->stack.hi - (uint64_t)value;
  }
}

static uint8_t *place_of(const struct recorded *w, const struct world_thread *t, uint8_t what,
                         uint16_t where) {
  uint64_t left = 0;
  uint8_t *at;
  const struct segment *s = &w->segments[where % w->segment_count];
  if ((what & 3) == 1) {
    at = world_at(w, t->r[CS_RSP] + where * 8ull, &left);
  } else if ((what & 3) == 2 && t->clr_thread != 0) {
    at = world_at(w, t->clr_thread + where % 512, &left);
  } else {
    at = s->bytes + (what >> 2) * 61u % s->size;
    left = (uint64_t)(s->bytes + s->size - at);
  }
  return left >= 8 ? at : NULL;
}

static void change(const struct recorded *w, const struct world_thread *t, struct cs_regs *regs,
                   const uint8_t bytes[CHANGE]) {
  uint16_t where, value;
  uint64_t word;
  memcpy(&where, bytes + 1, sizeof where);
  memcpy(&value, bytes + 4, sizeof value);
  if ((bytes[0] & 3) == 0) {
    uint64_t *reg = &regs->r[where % CS_REG_COUNT];
    *reg = value_of(w, t, bytes[3], value, *reg);
    return;
  }
  uint8_t *at = place_of(w, t, bytes[0], where);
  if (at == NULL) return;
  struct change *c = &changes[change_count++];
  c->at = at;
  memcpy(c->old, at, sizeof c->old);
  memcpy(&word, at, sizeof word);
  word = value_of(w, t, bytes[3], value, word);
  memcpy(at, &word, sizeof word);
  if ((bytes[0] & 3) != 1) tables_changed = true;
}

static void undo(void) {
  while (change_count > 0) {
    change_count--;
    memcpy(changes[change_count].at, changes[change_count].old, sizeof changes[0].old);
  }
}

// ---- Walks ----

static void check(bool holds, const char *what) {
  if (holds) return;
  (void)fprintf(stderr, "fuzz_walk: %s\n", what);
  __builtin_trap();
}

static bool on_alternate(const struct cs_stack *stack, uint64_t sp) {
  return sp >= stack->alt_lo && sp < stack->alt_hi;
}

// The guarantee for callers: a walk goes up the stack and stays on it.
static void check_frame(const struct cs_stack *stack, const struct cs_frame *frame, uint64_t last) {
  uint64_t sp = frame->regs.r[CS_RSP];
  check(cs_stack_holds(stack, sp, 0), "a frame off the stack");
  check(sp >= last || on_alternate(stack, last), "a walk down the stack");
}

static uint64_t words[MOST_FRAMES + 1], fast_words[MOST_FRAMES + 1];

static uint32_t walk_exactly(struct recorded *w, const struct world_thread *t,
                             const struct cs_regs *regs, struct cs_walk *walk) {
  struct cs_frame frame;
  uint32_t count = 0;
  uint64_t last = 0;
  w->reads = w->refused = 0;
  cs_walk_begin(walk, &w->world, regs, &t->stack, t->clr_thread, MOST_FRAMES);
  while (cs_walk_next(walk, &frame)) {
    check_frame(&t->stack, &frame, last);
    last = frame.regs.r[CS_RSP];
    words[count++] =
        CS_FRAME_WORD(frame.regs.r[CS_RIP], frame.code.kind, (frame.flags & CS_FRAME_EXACT) != 0);
    check(w->reads <= READS_BEFORE + count * (uint64_t)READS_PER_FRAME, "too many reads");
    (void)world_ask_about(&w->world, &frame);
  }
  check(w->reads <= READS_BEFORE + count * (uint64_t)READS_PER_FRAME, "too many reads");
  check(walk->stop != CS_STOP_NONE && walk->near.cache == NULL, "a walk that has not ended");
  return count;
}

static uint32_t walk_fast(struct recorded *w, const struct world_thread *t,
                          const struct cs_regs *regs, struct cs_walk *walk) {
  struct cs_frame frame;
  uint32_t count = 0;
  cs_walk_begin(walk, &w->world, regs, &t->stack, t->clr_thread, MOST_FRAMES);
  walk->fast = true;
  while (cs_walk_next(walk, &frame)) {
    fast_words[count++] =
        CS_FRAME_WORD(frame.regs.r[CS_RIP], frame.code.kind, (frame.flags & CS_FRAME_EXACT) != 0);
    count += cs_walk_run_words(walk, &fast_words[count], MOST_FRAMES - count);
  }
  return count;
}

static void check_fast(struct recorded *w, uint32_t world, const struct world_thread *t,
                       const struct cs_regs *regs, const struct cs_walk *exact, uint32_t count) {
  struct cs_walk walk;
  w->world.sites = sites[world];
  uint32_t fast = walk_fast(w, t, regs, &walk);
  w->world.sites = NULL;
  check(fast == count, "the fast walk finds another number of frames");
  check(memcmp(words, fast_words, count * sizeof words[0]) == 0, "the fast walk finds others");
  check(walk.stop == exact->stop && walk.stop_ip == exact->stop_ip, "the fast walk ends elsewhere");
}

// Without changes, the walk of each thread is the one that was recorded.
static void check_recorded(void) {
  struct cs_walk walk;
  for (uint32_t i = 0; i < world_count; i++)
    for (uint32_t k = 0; k < worlds[i].thread_count; k++) {
      const struct world_thread *t = &worlds[i].threads[k];
      struct cs_regs regs = {.known = CS_REGS_ALL};
      memcpy(regs.r, t->r, sizeof regs.r);
      uint32_t count = walk_exactly(&worlds[i], t, &regs, &walk);
      check(count == t->frames && (uint32_t)walk.stop == t->stop,
            "a recorded thread is not walked as it was: record the worlds again");
      check(worlds[i].refused == 0 || walk.stop != CS_STOP_BASE, "what was read is not recorded");
      check_fast(&worlds[i], i, t, &regs, &walk, count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint32_t never_settled = 0;
  static const struct cs_loader unsettled = {.r_state = &never_settled};
  if (world_count == 0) {
    load_worlds();
    check_recorded();
  }
  if (size < HEAD) return 0;
  uint32_t world = data[0] % world_count;
  struct recorded *w = &worlds[world];
  const struct world_thread *t = &w->threads[data[1] % w->thread_count];
  struct cs_regs regs = {.known = CS_REGS_ALL};
  struct cs_walk walk;
  memcpy(regs.r, t->r, sizeof regs.r);
  tables_changed = false;
  for (size_t at = HEAD; at + CHANGE <= size && change_count < MOST_CHANGES; at += CHANGE)
    change(w, t, &regs, data + at);
  if (data[2] & UNKNOWN_RBP) regs.known &= ~CS_REG_BIT(CS_RBP);
  w->world.loader = data[2] & UNSETTLED ? &unsettled : NULL;
  uint32_t count = walk_exactly(w, t, &regs, &walk);
  if (!tables_changed && !(data[2] & UNSETTLED)) check_fast(w, world, t, &regs, &walk, count);
  undo();
  return 0;
}
