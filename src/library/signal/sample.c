// SPDX-License-Identifier: MIT
// A sample: the interrupted thread walks itself straight into the ring. Signal-safe: yes; atomics
// and loads only. Nothing waits: after a few lost races the sample is given up, and counted.
//
// Invariants: a handler writes only into what it has reserved by compare-and-swap on `head`; it
// gives back only what it has not written to, so free space stays zero; the record's first word is
// written last. A walk starts in a small record and moves to a larger one when it needs more, so
// that several deep stacks do not each reserve the largest size.
#include "signal/sample.h"

#include "images/images.h"
#include "signal/await_box.h"
#include "signal/kernel.h"

enum {
  // Frames in a first record (2 KiB) and how a full one grows. A managed stack of a real program
  // has 20 to 120 frames; a 65,536-frame recursion moves four times.
  FIRST_FRAMES = 244,
  GROWTH = 4,
  RESERVE_TRIES = 32,  // compare-and-swaps that may fail in a row
};

CS_ISLAND static uint64_t bytes_for(uint64_t frames) {
  uint64_t bytes = sizeof(struct cs_sample) + frames * 8;
  return (bytes + CS_SAMPLE_ALIGN - 1) & ~(uint64_t)(CS_SAMPLE_ALIGN - 1);
}

CS_ISLAND static uint32_t frames_in(uint64_t bytes) {
  return (uint32_t)((bytes - sizeof(struct cs_sample)) / 8);
}

CS_ISLAND static uint64_t *word_at(const struct cs_sample_ring *ring, uint64_t at) {
  return (uint64_t *)(void *)(ring->bytes + (at & (ring->capacity - 1)));
}

// A record does not wrap around: the rest of the ring is reserved with it, as padding.
CS_ISLAND static bool reserve(struct cs_sample_ring *ring, uint64_t size,
                              struct cs_sample_place *out) {
  for (int i = 0; i < RESERVE_TRIES; i++) {
    // The tail is read first: a stale tail costs room, but a newer tail may be beyond a stale head.
    uint64_t tail = cs_load_acquire(&ring->tail), head = cs_load_acquire(&ring->head);
    uint64_t to_end = ring->capacity - (head & (ring->capacity - 1));
    uint64_t pad = size > to_end ? to_end : 0;
    if (head + pad + size - tail > ring->capacity) return false;
    if (!cs_cas(&ring->head, &head, head + pad + size)) continue;
    if (pad != 0) cs_store_release(word_at(ring, head), CS_SAMPLE_WORD(pad, CS_SAMPLE_PAD));
    out->at = head + pad;
    out->size = size;
    out->sample = (struct cs_sample *)(void *)word_at(ring, out->at);
    return true;
  }
  return false;
}

// Copies all but the first word, which says that the record is ready. `bytes`: of the whole record.
CS_ISLAND static void copy_record(struct cs_sample *to, const struct cs_sample *from,
                                  uint64_t bytes) {
  enum { AFTER_WORD = sizeof to->word };
  cs_copy((uint8_t *)to + AFTER_WORD, (const uint8_t *)from + AFTER_WORD, bytes - AFTER_WORD);
}

// Makes room for more frames, in a larger record.
CS_ISLAND static bool grow(struct cs_sample_ring *ring, struct cs_sample_place *place,
                           uint32_t count) {
  uint64_t size = bytes_for((uint64_t)frames_in(place->size) * GROWTH);
  uint64_t most = bytes_for(ring->max_depth + CS_AWAITS_MOST + CS_KERNEL_MOST + 1ull);
  if (size > most) size = most;
  if (size <= place->size) return false;
  struct cs_sample_place larger;
  if (!reserve(ring, size, &larger)) return false;
  copy_record(larger.sample, place->sample, sizeof *place->sample + count * 8ull);
  cs_store_release(&place->sample->word, CS_SAMPLE_WORD(place->size, CS_SAMPLE_PAD));
  *place = larger;
  return true;
}

// Gives back what the record does not need, unless the space after it has been reserved.
CS_ISLAND static void shrink(struct cs_sample_ring *ring, struct cs_sample_place *place,
                             uint32_t count) {
  uint64_t end = place->at + place->size, size = bytes_for(count);
  if (size < place->size && cs_cas(&ring->head, &end, place->at + size)) place->size = size;
}

// Makes room for `more` words after the first `count`.
CS_ISLAND static bool make_room(struct cs_sample_ring *ring, struct cs_sample_place *place,
                                uint32_t count, uint32_t more) {
  while (more > frames_in(place->size) - count)
    if (!grow(ring, place, count)) return false;
  return true;
}

// Adds the chain of awaiting methods after the frames, or none if there is no room. Returns the new
// number of words.
CS_ISLAND static __attribute__((noinline)) uint32_t add_awaits(struct cs_sample_ring *ring,
                                                               struct cs_sample_place *place,
                                                               const struct cs_sampled *from,
                                                               uint32_t count) {
  struct cs_awaits *awaits = cs_load_acquire(&cs_signal.awaits);
  struct cs_await_chain chain = {.state = CS_AWAITS_NONE};
  if (awaits != NULL && place->sample->stop != CS_STOP_TIME)
    cs_awaits_find(awaits, from, place->sample->frames, count, &chain);
  if (!make_room(ring, place, count, chain.count)) chain.count = 0;
  cs_copy(&place->sample->frames[count], chain.words, chain.count * 8ull);
  place->sample->await_at = chain.at;
  place->sample->await_count = (uint16_t)chain.count;
  place->sample->await_state = (uint16_t)chain.state;
  return count + chain.count;
}

// Adds the kernel's addresses after that chain. Returns the new number of words.
CS_ISLAND static __attribute__((noinline)) uint32_t add_kernel(struct cs_sample_ring *ring,
                                                               struct cs_sample_place *place,
                                                               const struct cs_sampled *from,
                                                               uint32_t count) {
  uint32_t added = from->kernel ? CS_KERNEL_UNKNOWN : 0;
  if (from->kernel && make_room(ring, place, count, CS_KERNEL_MOST))
    added =
        cs_kernel_stack(from->thread, from->regs, &place->sample->frames[count], CS_KERNEL_MOST);
  place->sample->kernel_count = added;
  return added != CS_KERNEL_UNKNOWN ? count + added : count;
}

// Returns the number of frames. Not inlined: the walk is off the handler's stack when the awaiting
// methods are looked for.
CS_ISLAND static __attribute__((noinline)) uint32_t walk_into(struct cs_sample_ring *ring,
                                                              struct cs_sample_place *place,
                                                              const struct cs_sampled *from) {
  struct cs_walk walk;
  struct cs_frame frame;
  uint32_t count = 0;
  bool room = true;
  cs_walk_begin(&walk, from->world, from->regs, from->stack, from->thread->clr_thread,
                ring->max_depth);
  walk.fast = true;
  cs_walk_limit(&walk, from->limit_ns, cs_signal.ticks_of_ns);
  while (cs_walk_next(&walk, &frame)) {
    if (count == frames_in(place->size) && !(room = grow(ring, place, count))) {
      cs_walk_leave(&walk);
      break;
    }
    place->sample->frames[count++] =
        CS_FRAME_WORD(frame.regs.r[CS_IP], frame.code.kind, (frame.flags & CS_FRAME_EXACT) != 0);
    count +=
        cs_walk_run_words(&walk, &place->sample->frames[count], frames_in(place->size) - count);
  }
  place->sample->frame_count = count;
  place->sample->stop = (uint16_t)(room ? walk.stop : CS_STOP_BUFFER);
  place->sample->stop_ip = room ? walk.stop_ip : frame.regs.r[CS_IP];
  place->sample->loaded = walk.loaded;
  return count;
}

CS_ISLAND static void commit(struct cs_sample_ring *ring, const struct cs_sample_place *place,
                             uint64_t held_ticks) {
  cs_add_relaxed(&ring->samples, 1);
  place->sample->held_ticks = held_ticks < UINT32_MAX ? (uint32_t)held_ticks : UINT32_MAX;
  cs_store_release(&place->sample->word, CS_SAMPLE_WORD(place->size, CS_SAMPLE_READY));
}

CS_ISLAND static bool reserve_first(struct cs_sample_ring *ring, struct cs_sample_place *place) {
  uint64_t first = ring->max_depth < FIRST_FRAMES ? ring->max_depth : FIRST_FRAMES;
  if (reserve(ring, bytes_for(first), place)) return true;
  cs_add_relaxed(&ring->lost, 1);
  return false;
}

// Without a label, the record's stays all zero.
CS_ISLAND static void add_label(struct cs_sample *sample, const struct cs_thread *thread) {
  uint32_t recording = cs_load_acquire(&cs_signal.labels);
  const struct cs_label_slot *slot = cs_load_acquire(&thread->label);
  if (recording != 0 && slot != NULL)
    (void)cs_label_read(slot, cs_load_relaxed(&thread->tid), recording, &sample->label);
}

// Fills in what samples of all causes have beside their frames.
CS_ISLAND static void describe(struct cs_sample *sample, const struct cs_sampled *from,
                               uint32_t generation) {
  sample->sp = from->regs->r[CS_SP];
  sample->agent = from->agent;
  sample->thread = from->thread->index;
  sample->thread_generation = from->thread->generation;
  sample->code_generation = generation;
  sample->weight = sample->class = 0;
  sample->put_off = sample->put_off_by_ns = 0;
  sample->cause = CS_CAUSE_NONE;
  sample->mode = sample->type = 0;
  // If the table was replaced meanwhile, the new one has all images of this stack, too.
  const struct cs_images *images = cs_load_acquire(&from->world->images);
  sample->images = images != NULL ? images->sequence : 0;
  add_label(sample, from->thread);
}

// Walks into the place that is reserved.
CS_ISLAND static void write_sample(struct cs_sample_ring *ring, struct cs_sample_place *place,
                                   const struct cs_sampled *from) {
  uint32_t generation = cs_load_acquire(&from->world->code_generation);
  uint32_t count = add_awaits(ring, place, from, walk_into(ring, place, from));
  shrink(ring, place, add_kernel(ring, place, from, count));
  describe(place->sample, from, generation);
}

CS_ISLAND static bool is_sampled(struct cs_thread *thread) {
  return cs_load_acquire(&thread->sampling) != 0 && cs_thread_is_caller(thread);
}

// The sample stands for what the thread's event has counted since the last one, or for the CPU
// time. The weight of a lost sample goes to the next one.
CS_ISLAND static void set_weight(struct cs_sample *sample, struct cs_thread *thread, uint64_t now) {
  uint64_t since = cs_take_seq(&thread->cpu_ns, now);
  if (cs_load_relaxed(&cs_signal.counts) != 0)
    sample->weight = thread->perf.counted;
  else if ((int64_t)(now - since) > 0)
    sample->weight = now - since;
  thread->perf.counted = 0;
}

CS_ISLAND bool cs_hold_lasts(const struct cs_world *world, const struct cs_thread *thread,
                             const struct cs_hold *hold) {
  uint32_t owner = 0;
  return cs_mem_read_guarded(&world->mem, hold->owner_at, &owner, sizeof owner) &&
         owner == cs_load_relaxed(&thread->tid);
}

CS_ISLAND void cs_hold_write(struct cs_sample *sample, const struct cs_hold *hold) {
  sample->weight = hold->weight;
  sample->mode = hold->mode;
  if (sample->code_generation == hold->generation) sample->class = hold->class;
}

// Returns false if the sample that the thread was asked for does not count.
CS_ISLAND static bool still_holds(struct cs_sample_ring *ring, const struct cs_world *world,
                                  const struct cs_thread *thread,
                                  const struct cs_signal_cause *cause) {
  if (!cs_in_cooldown(&thread->cooldown, cause->entry_tsc) &&
      cs_hold_lasts(world, thread, cause->hold))
    return true;
  cs_add_relaxed(&ring->released, cause->hold->weight);
  return false;
}

CS_ISLAND static void count_ran_on(struct cs_sample_ring *ring, const struct cs_thread *thread,
                                   uint64_t now_cpu_ns) {
  uint64_t asked = cs_load_relaxed(&thread->asked_cpu_ns);
  if (asked == 0 || now_cpu_ns < asked) return;
  uint64_t us = (now_cpu_ns - asked) >> 10;
  unsigned at = us == 0 ? 0 : 64 - (unsigned)__builtin_clzll(us);
  cs_add_relaxed(&ring->ran_on[at < CS_RAN_ON_COUNT ? at : CS_RAN_ON_COUNT - 1], 1);
}

CS_ISLAND static void take(struct cs_sample_ring *ring, const struct cs_world *world,
                           struct cs_thread *thread, const struct cs_regs *regs,
                           const struct cs_signal_cause *cause) {
  struct cs_sample_place place;
  struct cs_cooldown *cooldown = &thread->cooldown;
  bool holds = cause->cause == CS_CAUSE_HOLDS;
  struct cs_sampled from = {.world = world,
                            .thread = thread,
                            .agent = cs_load_acquire(&thread->agent),
                            .regs = regs,
                            .stack = &thread->stack,
                            .limit_ns = ring->walk_limit_ns,
                            .kernel = cause->cause == CS_CAUSE_CLOCKED &&
                                      cs_load_acquire(&thread->perf.ring) != NULL &&
                                      cs_load_relaxed(&cs_signal.handler_times) == NULL};
  if (from.agent == NULL) return;  // being set up or taken down
  if (holds && !still_holds(ring, world, thread, cause)) return;
  if (cs_in_cooldown(cooldown, cause->entry_tsc)) {
    cooldown->put_off++;
    cooldown->owed += cause->weight;
    cs_store_relaxed(&cooldown->ever, cooldown->ever + 1);
    return;
  }
  cs_add_relaxed(&ring->signals, 1);
  if (!reserve_first(ring, &place)) {
    cooldown->owed += cause->weight;
    if (holds) cs_add_relaxed(&ring->lost_events[cause->hold->mode % CS_SAMPLE_MODES], 1);
    return;
  }
  uint64_t begin_cpu = cs_thread_cpu_ns();
  if (cause->cause == CS_CAUSE_SCAN || cause->cause == CS_CAUSE_WALL)
    count_ran_on(ring, thread, begin_cpu);
  write_sample(ring, &place, &from);
  place.sample->tsc = cause->entry_tsc;
  place.sample->put_off = cooldown->put_off;
  place.sample->put_off_by_ns =
      cooldown->cost_ns < UINT32_MAX ? (uint32_t)cooldown->cost_ns : UINT32_MAX;
  place.sample->cause = (uint16_t)cause->cause;
  if (cause->cause == CS_CAUSE_CLOCKED) set_weight(place.sample, thread, begin_cpu);
  if (cause->cause == CS_CAUSE_SCAN) {
    place.sample->weight = cause->weight + cooldown->owed;
    cooldown->owed = 0;
  }
  if (holds) cs_hold_write(place.sample, cause->hold);
  cooldown->put_off = 0;
  commit(ring, &place, cs_tsc() - cause->entry_tsc);
  (void)cs_cooldown_begin(cooldown, cause->entry_tsc, begin_cpu, from.limit_ns);
}

// Takes no sample if the suspension no longer waits for the thread.
CS_ISLAND static void take_straggler(struct cs_sample_ring *ring, const struct cs_world *world,
                                     struct cs_thread *thread, const struct cs_regs *regs,
                                     uint64_t entry_tsc) {
  struct cs_sample_place place;
  struct cs_suspension *suspension = &cs_signal.suspension;
  struct cs_sampled from = {.world = world,
                            .thread = thread,
                            .agent = cs_load_acquire(&thread->agent),
                            .regs = regs,
                            .stack = &thread->stack,
                            .limit_ns = ring->walk_limit_ns};
  if (from.agent == NULL || cs_in_cooldown(&thread->cooldown, entry_tsc) ||
      !cs_suspension_waits_for(suspension, world, cs_load_relaxed(&thread->tid),
                               thread->clr_thread))
    return;
  uint64_t weight = cs_suspension_account(suspension, entry_tsc, cs_signal.ns_of_tick);
  if (weight == 0) return;
  cs_add_relaxed(&ring->signals, 1);
  if (!reserve_first(ring, &place)) {
    cs_add_relaxed(&ring->lost_events[suspension->mode % CS_SAMPLE_MODES], 1);
    return;
  }
  uint64_t begin_cpu = cs_thread_cpu_ns();
  write_sample(ring, &place, &from);
  place.sample->tsc = entry_tsc;
  place.sample->cause = CS_CAUSE_STRAGGLER;
  place.sample->weight = weight;
  place.sample->mode = suspension->mode;
  place.sample->type = cs_load_relaxed(&thread->asked_type);
  commit(ring, &place, cs_tsc() - entry_tsc);
  cs_add_relaxed(&suspension->held_ns,
                 cs_cooldown_begin(&thread->cooldown, entry_tsc, begin_cpu, from.limit_ns));
}

CS_ISLAND void cs_sample_take(struct cs_thread *thread, const struct cs_regs *regs,
                              const struct cs_signal_cause *cause) {
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  struct cs_sample_ring *ring = cs_load_acquire(&cs_signal.ring);
  if (world != NULL && ring != NULL && is_sampled(thread)) {
    if (cause->cause == CS_CAUSE_STRAGGLER)
      take_straggler(ring, world, thread, regs, cause->entry_tsc);
    else
      take(ring, world, thread, regs, cause);
  }
  cs_epoch_leave(&cs_signal.epoch, parity);
}

// ---- An event, by the calling thread itself ----

// Writes a sample without frames: it says that the event has happened, but not where.
CS_ISLAND static void write_unwalked(struct cs_sample_ring *ring, struct cs_sample_place *place,
                                     const struct cs_sampled *from) {
  shrink(ring, place, 0);
  place->sample->frame_count = 0;
  place->sample->stop = CS_STOP_PUT_OFF;
  place->sample->stop_ip = 0;
  place->sample->await_at = 0;
  place->sample->await_count = 0;
  place->sample->await_state = CS_AWAITS_NONE;
  place->sample->kernel_count = 0;
  place->sample->loaded = 0;
  describe(place->sample, from, cs_load_acquire(&from->world->code_generation));
}

CS_ISLAND bool cs_sample_event(struct cs_sample_ring *ring, const struct cs_sampled *from,
                               struct cs_cooldown *cooldown, const struct cs_sample_event *event) {
  struct cs_sample_place place;
  uint64_t begin = event->begin != 0 ? event->begin : event->tsc;
  cs_add_relaxed(&ring->events, 1);
  if (!reserve_first(ring, &place)) {
    cs_add_relaxed(&ring->lost_events[event->mode % CS_SAMPLE_MODES], 1);
    return false;
  }
  bool put_off = cs_in_event_cooldown(cooldown, begin);
  uint64_t begin_cpu = put_off ? 0 : cs_thread_cpu_ns();
  if (put_off)
    write_unwalked(ring, &place, from);
  else
    write_sample(ring, &place, from);
  place.sample->tsc = event->tsc;
  place.sample->weight = event->weight;
  place.sample->mode = event->mode;
  place.sample->type = event->type;
  place.sample->class = event->class;
  uint64_t held = cs_tsc() - begin;
  commit(ring, &place, held > 0 ? held : 1);
  if (!put_off) cs_cooldown_begin_event(cooldown, begin, begin_cpu, from->limit_ns);
  return true;
}

CS_ISLAND bool cs_sample_event_like(struct cs_sample_ring *ring, const struct cs_sample *like,
                                    const struct cs_sample_event *event) {
  struct cs_sample_place place;
  uint64_t begin = cs_tsc(), size = CS_SAMPLE_SIZE(like->word);
  cs_add_relaxed(&ring->events, 1);
  if (!reserve(ring, size, &place)) {
    cs_add_relaxed(&ring->lost, 1);
    cs_add_relaxed(&ring->lost_events[event->mode % CS_SAMPLE_MODES], 1);
    return false;
  }
  copy_record(place.sample, like, size);
  place.sample->tsc = event->tsc;
  place.sample->weight = event->weight;
  place.sample->mode = event->mode;
  place.sample->type = event->type;
  commit(ring, &place, cs_tsc() - begin + 1);
  return true;
}

// ---- A sleeping thread, by another one ----

CS_ISLAND bool cs_sample_draft(struct cs_sample_ring *ring, struct cs_sample_place *place,
                               const struct cs_sampled *sleeping) {
  uint64_t tsc = cs_tsc();
  if (!reserve_first(ring, place)) {
    cs_add_relaxed(&ring->asleep, 1);
    return false;
  }
  write_sample(ring, place, sleeping);
  place->sample->tsc = tsc;
  return true;
}

CS_ISLAND void cs_sample_keep(struct cs_sample_ring *ring, const struct cs_sample_place *place) {
  cs_add_relaxed(&ring->asleep, 1);
  commit(ring, place, 0);
}

CS_ISLAND void cs_sample_drop(const struct cs_sample_place *place) {
  cs_store_release(&place->sample->word, CS_SAMPLE_WORD(place->size, CS_SAMPLE_PAD));
}
