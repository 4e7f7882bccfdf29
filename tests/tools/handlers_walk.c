// SPDX-License-Identifier: MIT
// Invariant: while a walk is made, [copied.lo, copied.hi) is mapped here from end to end, and from
// the thread's sp up it has the bytes of the thread's own stack. One thread.
#include "handlers_walk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/uio.h>
#include <unistd.h>

#include "images/images.h"
#include "signal/handler.h"
#include "signal/request.h"
#include "signal/sample.h"
#include "unwind/sites.h"

enum { RING_BYTES = 4 << 20, MOST_FRAMES = 65536, PAGE = 4096 };

struct handlers_walk {
  struct cs_world world;  // first: its mem is found again by its address
  struct cs_remote *remote;
  struct cs_sites *cold, *warm;
  struct cs_sample_ring ring;
  struct cs_record *records;
  struct cs_stack copied;  // [lo, hi) is mapped here; hi 0: nothing is
  bool whole;              // and its bytes are there
  uint32_t images;         // the number of their table: what is known of call sites is for these
  uint32_t generation;     // of collectible code; unloading is not reported, so advanced at times
  uint32_t cold_generation;
  uint32_t turn;
  struct handlers_walk_counts counts;
};

void handlers_walk_make_room(char **argv) {
  int now = personality(0xFFFFFFFF);
  if (now < 0 || (now & ADDR_COMPAT_LAYOUT) || personality((unsigned)now | ADDR_COMPAT_LAYOUT) < 0)
    return;
  (void)execv("/proc/self/exe", argv);
}

void handlers_walk_leave_room(void) {
  (void)personality((unsigned)personality(0xFFFFFFFF) & ~(unsigned)ADDR_COMPAT_LAYOUT);
}

static bool read_any(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  const struct handlers_walk *hw = (const struct handlers_walk *)(uintptr_t)mem;
  if (address < hw->copied.lo || address >= hw->copied.hi || len > hw->copied.hi - address)
    return cs_remote_read(hw->remote, address, dst, len);
  memcpy(dst, (const void *)(uintptr_t)address, len);
  return true;
}
_Static_assert(offsetof(struct handlers_walk, world) == 0 && offsetof(struct cs_world, mem) == 0,
               "the source of memory leads to its walk");

struct handlers_walk *handlers_walk_new(struct cs_remote *remote) {
  struct handlers_walk *hw = calloc(1, sizeof *hw);
  if (hw == NULL) return NULL;
  hw->remote = remote;
  hw->cold = calloc(1, sizeof *hw->cold);
  hw->warm = calloc(1, sizeof *hw->warm);
  hw->records = calloc(MOST_FRAMES, sizeof *hw->records);
  hw->ring.bytes = calloc(1, RING_BYTES);
  hw->ring.capacity = RING_BYTES;
  if (hw->cold != NULL && hw->warm != NULL && hw->records != NULL && hw->ring.bytes != NULL)
    return hw;
  handlers_walk_free(hw);
  return NULL;
}

static void unmap(struct handlers_walk *hw) {
  if (hw->copied.hi != 0)
    (void)munmap((void *)(uintptr_t)hw->copied.lo, hw->copied.hi - hw->copied.lo);
  hw->copied = (struct cs_stack){0};
  hw->whole = false;
}

void handlers_walk_free(struct handlers_walk *hw) {
  if (hw == NULL) return;
  unmap(hw);
  free(hw->cold);
  free(hw->warm);
  free(hw->records);
  free(hw->ring.bytes);
  free(hw);
}

void handlers_walk_forget_copy(struct handlers_walk *hw) {
  hw->whole = false;
  hw->generation++;
}

const struct handlers_walk_counts *handlers_walk_counts(const struct handlers_walk *hw) {
  return &hw->counts;
}

// The pages of a stack that has grown downwards are added; any other stack replaces the old one.
static bool map(struct handlers_walk *hw, const struct cs_stack *stack, struct cs_error *err) {
  uint64_t end = stack->hi;
  if (hw->copied.hi == stack->hi && hw->copied.lo <= stack->lo) return true;
  if (hw->copied.hi == stack->hi)
    end = hw->copied.lo;
  else
    unmap(hw);
  void *want = (void *)(uintptr_t)stack->lo;
  void *got = mmap(want, end - stack->lo, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != want) {
    if (got != MAP_FAILED) (void)munmap(got, end - stack->lo);
    return cs_error_set(err, "this process has something where the thread's stack is: start again");
  }
  hw->copied.lo = stack->lo;
  hw->copied.hi = stack->hi;
  return true;
}

bool handlers_walk_copy(struct handlers_walk *hw, const struct cs_remote_thread *thread,
                        uint64_t begin, uint64_t end, struct cs_error *err) {
  const struct cs_stack *stack = &thread->stack;
  if (!map(hw, stack, err)) return false;
  if (!hw->whole) {
    uint64_t sp = thread->regs.r[CS_SP];
    begin = sp >= stack->lo && sp < stack->hi ? sp - 256 : stack->lo;
    end = stack->hi;
  }
  begin = begin < stack->lo ? stack->lo : begin & ~7ull;
  end = end > stack->hi ? stack->hi : end;
  struct iovec there = {(void *)(uintptr_t)begin, end - begin}, here = there;
  hw->whole = process_vm_readv(thread->tid, &here, 1, &there, 1, 0) == (ssize_t)there.iov_len;
  return hw->whole || cs_error_set(err, "the stack of thread %d cannot be copied", thread->tid);
}

// ---- The walks' results, compared with the exact walk ----

static bool differ(struct cs_error *err, const char *walk, const char *what, unsigned at,
                   uint64_t is, uint64_t exact) {
  return cs_error_set(err,
                      "the handler's walk (%s) differs from the exact one in frame %u: %s %" PRIx64
                      ", exact %" PRIx64,
                      walk, at, what, is, exact);
}

static bool same_end(const struct exact_walk *exact, const char *walk, unsigned count,
                     enum cs_stop stop, uint64_t stop_ip, struct cs_error *err) {
  enum cs_stop want = exact->cut_off ? CS_STOP_DEPTH : exact->stop;
  if (count != exact->count) return differ(err, walk, "frames", count, count, exact->count);
  if (stop != want) return differ(err, walk, "reason for the end", count, stop, want);
  if (!exact->cut_off && stop_ip != exact->stop_ip)
    return differ(err, walk, "ip of the end", count, stop_ip, exact->stop_ip);
  return true;
}

static bool same_words(const struct exact_walk *exact, const char *walk,
                       const struct cs_sample *sample, struct cs_error *err) {
  for (unsigned i = 0; i < exact->count && i < sample->frame_count; i++) {
    const struct cs_frame *f = &exact->frames[i];
    uint64_t want = CS_FRAME_WORD(f->regs.r[CS_IP], f->code.kind, (f->flags & CS_FRAME_EXACT) != 0);
    if (sample->frames[i] != want) return differ(err, walk, "word", i, sample->frames[i], want);
  }
  return same_end(exact, walk, sample->frame_count, (enum cs_stop)sample->stop, sample->stop_ip,
                  err);
}

// A plain walk follows most registers only where it needs them.
static bool same_records(const struct exact_walk *exact, const char *walk,
                         const struct cs_capture *capture, struct cs_error *err) {
  for (unsigned i = 0; i < exact->count && i < capture->count; i++) {
    const struct cs_frame *f = &exact->frames[i];
    const struct cs_record *r = &capture->records[i];
    cs_regmask known = capture->plain ? f->regs.known & r->known : f->regs.known;
    if (!capture->plain && (r->known & CS_REGS_PRESERVED) != (known & CS_REGS_PRESERVED))
      return differ(err, walk, "known registers", i, r->known, known);
    for (unsigned p = 0; p < CS_PRESERVED_COUNT; p++) {
      unsigned reg = cs_preserved_register[p];
      bool counts = (known & CS_REG_BIT(reg)) || reg == CS_SP || reg == CS_IP;
      if (counts && r->preserved[p] != f->regs.r[reg])
        return differ(err, walk, "register", i, r->preserved[p], f->regs.r[reg]);
    }
    if (r->kind != (uint8_t)f->code.kind)
      return differ(err, walk, "kind", i, r->kind, (uint64_t)f->code.kind);
    if (r->flags != (uint8_t)f->flags) return differ(err, walk, "flags", i, r->flags, f->flags);
  }
  return same_end(exact, walk, capture->count, capture->stop, capture->stop_ip, err);
}

// ---- The walks ----

static void begin(struct handlers_walk *hw, struct cs_sites *sites) {
  hw->world = *cs_remote_world(hw->remote);
  hw->world.mem = (struct cs_mem){.read = read_any, .stack_in_place = true, .guard_works = true};
  hw->world.sites = sites;
  hw->world.unloads_are_reported = true;
  hw->world.code_generation = sites == hw->cold ? ++hw->cold_generation : hw->generation;
}

// One frame more than there are, so that a walk that goes on too far is noticed.
static uint32_t depth_of(const struct exact_walk *exact) {
  return exact->count + (exact->cut_off ? 0 : 1);
}

static bool sample_agrees(struct handlers_walk *hw, const struct cs_remote_thread *thread,
                          const struct exact_walk *exact, const char *name, struct cs_error *err) {
  struct cs_thread entry = {
      .tid = (uint32_t)thread->tid, .clr_thread = thread->clr_thread, .stack = thread->stack};
  struct cs_sampled from = {.world = &hw->world,
                            .thread = &entry,
                            .agent = hw,
                            .regs = &thread->regs,
                            .stack = &entry.stack};
  struct cs_sample_place place;
  struct cs_sample_ring *ring = &hw->ring;
  ring->max_depth = depth_of(exact);
  if (!cs_sample_draft(ring, &place, &from)) return cs_error_set(err, "the ring has no room");
  bool same = same_words(exact, name, place.sample, err);
  memset(ring->bytes, 0, ring->head);
  ring->head = ring->tail = 0;
  hw->counts.frames += exact->count;
  return same;
}

static bool capture_agrees(struct handlers_walk *hw, const struct cs_remote_thread *thread,
                           const struct exact_walk *exact, bool plain, struct cs_error *err) {
  struct cs_capture capture = {.records = hw->records, .capacity = MOST_FRAMES, .plain = plain};
  cs_capture_walk(&capture, &hw->world, &thread->regs, &thread->stack, thread->clr_thread,
                  depth_of(exact));
  hw->counts.frames += exact->count;
  return same_records(exact, plain ? "plain records" : "records", &capture, err);
}

// Empties the lines of the cache to which such a walk can have added something; code that may die
// gets a new generation each time. The rules stay, because they contain no addresses.
static void make_cold(struct cs_sites *sites, const struct exact_walk *exact) {
  for (unsigned i = 0; i < exact->count; i++) {
    uint64_t place = CS_SITE_PLACE(CS_SITE_HASH(exact->frames[i].regs.r[CS_IP]));
    memset(&sites->words[place & ~(CS_SITE_WAYS - 1ull)], 0, CS_SITE_WAYS * sizeof(uint64_t));
  }
}

// Libraries have come or gone, so what is known of call sites may be wrong.
static void mind_images(struct handlers_walk *hw) {
  const struct cs_images *images = cs_remote_world(hw->remote)->images;
  if (images->sequence == hw->images) return;
  hw->images = images->sequence;
  memset(hw->cold, 0, sizeof *hw->cold);
  memset(hw->warm, 0, sizeof *hw->warm);
}

// A walk that differs keeps its turn, because the caller may want to repeat it.
static bool turn_agrees(struct handlers_walk *hw, const struct cs_remote_thread *thread,
                        const struct exact_walk *exact, struct cs_error *err) {
  struct handlers_walk_counts *counts = &hw->counts;
  switch (hw->turn % 3) {
    case 0:
      counts->full++;
      return capture_agrees(hw, thread, exact, false, err);
    case 1:
      counts->plain++;
      return capture_agrees(hw, thread, exact, true, err);
    default:
      counts->asleep++;
      hw->world.mem.stack_in_place = false;
      return sample_agrees(hw, thread, exact, "sample of a sleeper", err);
  }
}

bool handlers_walk_agrees(struct handlers_walk *hw, const struct cs_remote_thread *thread,
                          const struct exact_walk *exact, struct cs_error *err) {
  if (exact->count == 0 || exact->count >= MOST_FRAMES) return true;
  struct handlers_walk_counts *counts = &hw->counts;
  mind_images(hw);
  make_cold(hw->cold, exact);
  begin(hw, hw->cold);
  counts->cold++;
  if (!sample_agrees(hw, thread, exact, "sample, empty cache", err)) return false;
  begin(hw, hw->warm);
  counts->warm++;
  if (!sample_agrees(hw, thread, exact, "sample, kept cache", err)) return false;
  if (!turn_agrees(hw, thread, exact, err)) return false;
  hw->turn++;
  return true;
}
