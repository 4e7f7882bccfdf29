// SPDX-License-Identifier: MIT
// From the ring to the wire, sample by sample. Invariants: all that a sample refers to (thread,
// methods, images) is in the wire before it; a sample that cannot be sent whole is left out and
// counted there; a record leaves the ring only after that. The agent's thread only. Signal-safe:
// no.
#include <signal.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "base/clock.h"

enum { REFRESH_NS = 50000000 };  // unknown code makes us look for new images this often at most

static uint64_t *frames;  // of the sample that is being sent
static uint64_t next_refresh_ns;
static bool known_images;  // which images the last sample had; not longer than until the next drain
static uint32_t oldest_images;  // the number of the oldest table that a sample may still need

bool cs_drain_init(struct cs_error *err) {
  oldest_images = cs_core_images_sequence();
  if (frames == NULL) frames = calloc(cs_agent.ring.max_depth, sizeof *frames);
  return frames != NULL || cs_error_set(err, "no memory for a sample's frames");
}

// The period of the timer that has sent the sample's signal.
static uint64_t period_of(const struct cs_sample *s, const struct cs_agent_thread *t) {
  return s->tsc < t->timer_set ? t->timer_before_ns : t->timer_ns;
}

// In wall mode a sample stands for the time since the thread's last one.
static uint64_t weight_of(const struct cs_sample *s, struct cs_agent_thread *t, uint64_t now_ns) {
  if (cs_agent.mode == CS_WIRE_MODE_CPU) return period_of(s, t) * (1 + (uint64_t)s->overrun);
  uint64_t weight = now_ns > t->last_ns ? now_ns - t->last_ns : 0;
  t->last_ns = now_ns;
  t->pending_ns = 0;
  return weight;
}

// Which images there were. The same for most samples of a drain.
static void find_images(const struct cs_sample *s, struct cs_frame_origin *origin) {
  static uint64_t loaded;
  static uint32_t sequence;
  static struct cs_frame_origin found;
  if (!known_images || s->loaded != loaded || s->images != sequence) {
    loaded = s->loaded;
    sequence = s->images;
    found.images = cs_core_images_of(loaded, sequence, &found.all);
    known_images = true;
  }
  *origin = found;
  origin->code_generation = s->code_generation;
}

static bool translate(const struct cs_sample *s, uint32_t count) {
  struct cs_frame_origin origin;
  find_images(s, &origin);
  for (uint32_t i = 0; i < count; i++) {
    if (!cs_frame_to_wire(s->frames[i], &origin, &frames[i])) return false;
  }
  return true;
}

// What a record that it needs could not be sent for has been counted there as one lost record.
static void send(const struct cs_sample *s) {
  struct cs_agent_thread *t = s->agent;
  uint64_t tsc_ns = cs_clock_tsc_to_ns(s->tsc);
  uint32_t most = cs_producer_max_frames(&cs_agent.wire);
  bool cut = s->frame_count > most;
  struct cs_wire_sample record = {
      .time_ns = tsc_ns > cs_agent.start_ns ? tsc_ns - cs_agent.start_ns : 0,
      .weight_ns = weight_of(s, t, tsc_ns),
      .stop_ip = s->stop_ip,
      .thread = t->id,
      .stop = (uint16_t)(cut ? CS_STOP_BUFFER : s->stop),
      .mode = (uint16_t)cs_agent.mode,
      .frame_count = cut ? most : s->frame_count,
  };
  uint64_t held = cs_clock_ticks_to_ns(s->held_ticks);
  record.held_ns = held < UINT32_MAX ? (uint32_t)held : UINT32_MAX;
  if (!cs_threads_announce(t) || !translate(s, record.frame_count)) return;
  uint64_t *out = cs_producer_begin_sample(&cs_agent.wire, &record);
  if (out == NULL) return;
  for (uint32_t i = 0; i < record.frame_count; i++) out[i] = frames[i];
  cs_producer_commit_sample(&cs_agent.wire, &record);
}

// A thread whose stack nobody knew: the sample says where its stack pointer was.
static void learn_stack(const struct cs_sample *s) {
  struct cs_stack stack;
  struct cs_thread *thread = cs_registry_at(s->thread);
  if (thread->generation != s->thread_generation || cs_load_acquire(&thread->stack.hi) != 0) return;
  if (!cs_stack_around(s->sp, &stack)) return;
  thread->stack.lo = stack.lo;
  cs_store_release(&thread->stack.hi, stack.hi);
}

// Code that nothing is known of may be a library that has come since the last look. It need not end
// the walk: from a leaf there is often another way on.
static bool met_unknown_code(const struct cs_sample *s) {
  if (s->stop == CS_STOP_UNKNOWN_CODE) return true;
  return s->frame_count > 0 && CS_FRAME_WORD_KIND(s->frames[0]) == CS_CODE_NONE &&
         cs_unknown_code_name(CS_FRAME_WORD_IP(s->frames[0])) == NULL;
}

static void learn_from(const struct cs_sample *s) {
  if (s->stop == CS_STOP_NO_BOUNDS) learn_stack(s);
  if (!met_unknown_code(s)) return;
  uint64_t now = cs_clock_now_ns();
  if (now < next_refresh_ns && !cs_core_images_are_old()) return;
  next_refresh_ns = now + REFRESH_NS;
  (void)cs_core_refresh_images();
  known_images = false;
}

// When all samples have been read, no table is needed that was not the newest before. One that is
// being walked keeps them; but not for ever.
static void keep_images(uint32_t newest_before) {
  enum { MAX_TABLES = 64 };
  uint32_t newest = cs_core_images_sequence();
  if (cs_sample_ring_used(&cs_agent.ring) == 0) oldest_images = newest_before;
  if (newest - oldest_images > MAX_TABLES) oldest_images = newest - MAX_TABLES;
  cs_core_images_keep(oldest_images);
}

void cs_drain_end(void) {
  cs_core_images_keep(UINT32_MAX);
}

void cs_drain_free(void) {
  free(frames);
  frames = NULL;
}

void cs_drain(void) {
  const struct cs_sample *sample;
  uint32_t newest = cs_core_images_sequence();
  known_images = false;
  while ((sample = cs_sample_ring_peek(&cs_agent.ring)) != NULL) {
    learn_from(sample);
    cs_budget_add_held(sample->held_ticks);
    send(sample);
    cs_sample_ring_pop(&cs_agent.ring, sample);
  }
  keep_images(newest);
}
