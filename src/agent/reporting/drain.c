// SPDX-License-Identifier: MIT
// From the ring to the wire, sample by sample. Invariants: all that a sample refers to (thread,
// methods, images) is in the wire before it; a sample that cannot be sent whole is left out and
// counted there; a record leaves the ring only after that. The agent's thread only. Signal-safe:
// no.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sampling/agent.h"
#include "sampling/engine.h"
#include "signal/awaits.h"
#include "threads/stackmap.h"

enum { REFRESH_NS = 50000000 };  // unknown code makes us look for new images this often at most

// Of the sample that is being sent, from the second on; the first is what an event is about, or the
// kernel's frames come before.
static uint64_t *buffer, *frames;
static uint64_t kernel_unknown;
static uint64_t lost[CS_SAMPLE_MODES];  // for want of room in the wire
static struct cs_wire_put_off put_off;
static uint64_t next_refresh_ns;
static bool known_images;  // which images the last sample had; not longer than until the next drain
static uint32_t oldest_images;  // the number of the oldest table that a sample may still need

bool cs_drain_init(struct cs_error *err) {
  oldest_images = cs_library_images_sequence();
  memset(lost, 0, sizeof lost);
  put_off = (struct cs_wire_put_off){0};
  kernel_unknown = 0;
  if (buffer == NULL)
    buffer =
        calloc(CS_KERNEL_MOST + cs_agent.ring.max_depth + 1ull + CS_AWAITS_MOST, sizeof *buffer);
  frames = buffer != NULL ? buffer + CS_KERNEL_MOST : NULL;
  return frames != NULL || cs_error_set(err, "no memory for a sample's frames");
}

static enum cs_wire_mode mode_of(const struct cs_sample *s) {
  if (s->mode != 0) return (enum cs_wire_mode)s->mode;
  bool wall = s->cause == CS_CAUSE_WALL || s->cause == CS_CAUSE_NONE;
  return wall ? CS_WIRE_MODE_WALL : CS_WIRE_MODE_CPU;
}

// In wall mode a sample stands for the time since the thread's last one; of a thread that slept,
// since it was last to be sampled by a signal that was put off: what it missed while it ran is no
// part of its sleep, and goes to its next sample by signal.
static uint64_t time_since_last(struct cs_agent_thread *t, uint64_t now_ns, bool slept) {
  uint64_t from = t->last_ns > cs_agent.start_ns ? t->last_ns : cs_agent.start_ns;
  if (now_ns <= from) return 0;
  if (slept && t->missed_until_ns > from) {
    uint64_t until = t->missed_until_ns < now_ns ? t->missed_until_ns : now_ns - 1;
    t->owed_ns += until - from;
    from = until;
  }
  t->last_ns = now_ns;
  return now_ns - from;
}

void cs_drain_note_put_off(struct cs_agent_thread *t, uint64_t now_ns) {
  uint32_t ever = cs_load_relaxed(&t->thread->rest.ever);
  if (ever == t->put_off) return;
  t->put_off = ever;
  t->missed_until_ns = now_ns;
}

void cs_drain_put_off(struct cs_agent_thread *t, uint64_t now_ns) {
  put_off.samples++;
  t->missed_until_ns = now_ns;
}

static uint64_t take_owed(struct cs_agent_thread *t) {
  uint64_t owed = t->owed_ns;
  t->owed_ns = 0;
  return owed;
}

// Whom the samples are put off for: the thread's last one was that long.
static void count_put_off(const struct cs_sample *s, struct cs_agent_thread *t) {
  bool signal = s->cause != CS_CAUSE_NONE;
  uint64_t held = cs_clock_ticks_to_ns(s->held_ticks);
  put_off.samples += s->put_off;
  if (s->put_off != 0 && t->held_ns >= put_off.longest_ns) {
    put_off.longest_ns = t->held_ns;
    put_off.thread = t->id;
  }
  if (s->stop == CS_STOP_PUT_OFF) put_off.events++;
  if (signal) t->held_ns = held;
}

bool cs_drain_tell(void) {
  if (put_off.samples + put_off.events == 0) return true;
  return cs_producer_put(&cs_agent.wire, CS_WIRE_PUT_OFF, &put_off, sizeof put_off, NULL, 0);
}

static uint64_t weight_of(const struct cs_sample *s, struct cs_agent_thread *t,
                          enum cs_wire_mode mode, uint64_t now_ns) {
  if (s->cause == CS_CAUSE_TIMER) return cs_timer_weight(t, s);
  if (s->cause == CS_CAUSE_LOOK) t->stood_ns += s->weight;
  if (mode != CS_WIRE_MODE_WALL) return s->weight;
  bool slept = s->cause != CS_CAUSE_WALL;
  return time_since_last(t, now_ns, slept) + (slept ? 0 : take_owed(t));
}

static uint64_t since_start(uint64_t now_ns) {
  return now_ns > cs_agent.start_ns ? now_ns - cs_agent.start_ns : 0;
}

// Which images there were. The same for most samples of a drain.
static void find_images(const struct cs_sample *s, struct cs_frame_origin *origin) {
  static uint64_t loaded;
  static uint32_t sequence;
  static struct cs_frame_origin found;
  if (!known_images || s->loaded != loaded || s->images != sequence) {
    loaded = s->loaded;
    sequence = s->images;
    found.images = cs_library_images_of(loaded, sequence, &found.all);
    known_images = true;
  }
  *origin = found;
  origin->code_generation = s->code_generation;
}

static bool translate(const struct cs_sample *s, uint32_t count) {
  struct cs_frame_origin origin;
  find_images(s, &origin);
  for (uint32_t i = 0; i < count; i++) {
    if (!cs_frame_to_wire(s->frames[i], &origin, &frames[1 + i])) return false;
  }
  return true;
}

// An event's frames begin with the runtime's own that tell of it, and, when it is an exception,
// with those that dispatch it. The stack that is meant begins where managed code has had it happen;
// one without any such code has no frames. How many frames are to be left out.
static uint32_t prologue_of(uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint64_t frame = frames[1 + i];
    bool managed = CS_WIRE_FRAME_KIND(frame) == CS_WIRE_FRAME_MANAGED;
    if (managed && !cs_function_is_dispatch(cs_wire_frame_function(frame))) return i;
  }
  return count;
}

// What a wait is for, by the runtime's methods that lead to it. 0: they do not say.
static uint32_t waited_for(const uint64_t *first, uint32_t count) {
  const char *name = NULL;
  for (uint32_t i = 0; i < count && CS_WIRE_FRAME_KIND(first[i]) == CS_WIRE_FRAME_MANAGED; i++)
    if (!cs_function_waits(cs_wire_frame_function(first[i]), &name)) break;
  return name != NULL ? cs_type_intern_text(name) : 0;
}

// With what it is about, if that has a name, as the leaf.
static uint64_t *frames_of_event(const struct cs_sample *s, uint32_t *count) {
  uint32_t skip = prologue_of(*count), type = s->type, id;
  uint64_t *first = frames + 1 + skip;
  *count -= skip;
  if (s->mode == CS_WIRE_MODE_WAIT) type = waited_for(first, *count);
  if (type == 0) return first;
  if (!cs_type_to_wire(type, &id)) return NULL;
  *--first = (uint64_t)id << 32;
  ++*count;
  return first;
}

// Who awaits comes behind the frame of the box that they were found by.
static void add_awaits(const struct cs_sample *s, uint32_t most, uint32_t *count) {
  uint64_t awaits[CS_AWAITS_MOST];
  uint32_t n = *count == s->frame_count ? cs_awaits_to_wire(s, frames + 1, awaits) : 0;
  if (n == 0 || n > most - *count) return;
  uint64_t *to = frames + 1 + s->await_at + 1;
  memmove(to + n, to, (*count - s->await_at - 1) * sizeof *to);
  memcpy(to, awaits, n * sizeof *to);
  *count += n;
}

// Before the thread's own: the kernel's, in which it was. Returns how many.
static uint32_t kernel_frames(const struct cs_sample *s, uint64_t *first) {
  const uint64_t *from = &s->frames[s->frame_count + s->await_count];
  if (s->kernel_count == CS_KERNEL_UNKNOWN) {
    kernel_unknown++;
    return 0;
  }
  for (uint32_t i = 0; i < s->kernel_count; i++)
    *(first - s->kernel_count + i) = CS_WIRE_FRAME_IN_KERNEL | (from[i] & CS_WIRE_KERNEL_ADDRESS);
  return s->kernel_count;
}

uint64_t cs_drain_kernel_unknown(void) {
  return kernel_unknown;
}

// What a record that it needs could not be sent for has been counted there as one lost record.
static bool send(const struct cs_sample *s, enum cs_wire_mode mode) {
  struct cs_agent_thread *t = s->agent;
  uint64_t tsc_ns = cs_clock_tsc_to_ns(s->tsc);
  uint32_t most = cs_producer_max_frames(&cs_agent.wire) - 1;
  if (cs_agent.kernel) most -= CS_KERNEL_MOST;
  bool cut = s->frame_count > most;
  struct cs_wire_sample record = {
      .time_ns = since_start(tsc_ns),
      .weight = weight_of(s, t, mode, tsc_ns),
      .stop_ip = s->stop_ip,
      .thread = t->id,
      .stop = (uint16_t)(cut ? CS_STOP_BUFFER : s->stop),
      .mode = (uint16_t)mode,
      .frame_count = cut ? most : s->frame_count,
  };
  uint64_t held = cs_clock_ticks_to_ns(s->held_ticks);
  record.held_ns = held < UINT32_MAX ? (uint32_t)held : UINT32_MAX;
  if (!cs_threads_announce(t) || !translate(s, record.frame_count)) return false;
  add_awaits(s, most, &record.frame_count);
  uint64_t *from = s->mode != 0 ? frames_of_event(s, &record.frame_count) : frames + 1;
  if (from == NULL) return false;
  uint32_t kernel = kernel_frames(s, from);
  from -= kernel;
  record.frame_count += kernel;
  const struct cs_label *label = cs_sample_has_label(s) ? &s->label : NULL;
  uint64_t *out = cs_producer_begin_sample(&cs_agent.wire, &record, label);
  if (out == NULL) return false;
  for (uint32_t i = 0; i < record.frame_count; i++) out[i] = from[i];
  cs_producer_commit_sample(&cs_agent.wire, &record, label);
  return true;
}

// Events of a type that no walked one stands for: a sample of a thread that is none, without a
// stack.
bool cs_drain_unwalked(uint32_t type, uint64_t events) {
  static const char *const name[] = {"[stacks that were not walked]"};
  struct cs_wire_thread thread = {UINT32_MAX, 0};
  struct cs_wire_sample record = {.time_ns = since_start(cs_clock_now_ns()),
                                  .weight = events,
                                  .thread = thread.id,
                                  .stop = CS_STOP_BASE,
                                  .mode = CS_WIRE_MODE_EXCEPTION,
                                  .held_ns = 1,
                                  .frame_count = 1};
  uint32_t id;
  cs_add_relaxed(&cs_agent.ring.events, 1);
  cs_add_relaxed(&cs_agent.ring.samples, 1);
  uint64_t *out = NULL;
  if (cs_producer_put(&cs_agent.wire, CS_WIRE_THREAD, &thread, sizeof thread, name, 1) &&
      cs_type_to_wire(type, &id))
    out = cs_producer_begin_sample(&cs_agent.wire, &record, NULL);
  if (out == NULL) {
    lost[CS_WIRE_MODE_EXCEPTION]++;
    return false;
  }
  out[0] = (uint64_t)id << 32;
  cs_producer_commit_sample(&cs_agent.wire, &record, NULL);
  return true;
}

// ---- Again ----

// Of one that slept, what was on its own stack, and its label, which only itself sets. Others may
// come to await it meanwhile.
static bool is_repeatable(const struct cs_sample *s) {
  return s->cause == CS_CAUSE_NONE && s->await_state == CS_AWAITS_NONE;
}

bool cs_drain_again(struct cs_agent_thread *t, uint64_t now_ns) {
  struct cs_sample_ring *ring = &cs_agent.ring;
  if (!t->repeatable || cs_load_acquire(&ring->tail) < t->written_to) return false;
  struct cs_wire_again again = {since_start(now_ns), time_since_last(t, now_ns, true), t->id, 0};
  cs_add_relaxed(&ring->asleep, 1);
  cs_add_relaxed(&ring->samples, 1);
  if (!cs_threads_announce(t) ||
      !cs_producer_put(&cs_agent.wire, CS_WIRE_AGAIN, &again, sizeof again, NULL, 0))
    lost[CS_WIRE_MODE_WALL]++;
  return true;
}

// ---- What samples teach ----

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
  if (now < next_refresh_ns && !cs_library_images_are_old()) return;
  next_refresh_ns = now + REFRESH_NS;
  (void)cs_library_refresh_images();
  known_images = false;
}

// When all samples have been read, no table is needed that was not the newest before. One that is
// being walked keeps them; but not for ever.
static void keep_images(uint32_t newest_before) {
  enum { MAX_TABLES = 64 };
  uint32_t newest = cs_library_images_sequence();
  if (cs_sample_ring_used(&cs_agent.ring) == 0) oldest_images = newest_before;
  if (newest - oldest_images > MAX_TABLES) oldest_images = newest - MAX_TABLES;
  cs_library_images_keep(oldest_images);
}

void cs_drain_losses(uint64_t by_mode[CS_SAMPLE_MODES]) {
  const struct cs_sample_ring *ring = &cs_agent.ring;
  uint64_t timed = cs_load_acquire(&ring->lost);
  for (int i = 0; i < CS_SAMPLE_MODES; i++) {
    uint64_t events = cs_load_acquire(&ring->lost_events[i]);
    by_mode[i] = lost[i] + events;
    timed -= events;
  }
  // Which of the two it was is not known of a sample that there was no room for.
  bool cpu = (cs_agent.modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU)) != 0;
  by_mode[cpu ? CS_WIRE_MODE_CPU : CS_WIRE_MODE_WALL] += timed;
}

void cs_drain_end(void) {
  cs_library_images_keep(UINT32_MAX);
}

void cs_drain_free(void) {
  free(buffer);
  buffer = frames = NULL;
}

void cs_drain(void) {
  const struct cs_sample *sample;
  uint32_t newest = cs_library_images_sequence();
  known_images = false;
  while ((sample = cs_sample_ring_peek(&cs_agent.ring)) != NULL) {
    learn_from(sample);
    enum cs_wire_mode mode = mode_of(sample);
    cs_budget_add_held(sample->held_ticks);
    count_put_off(sample, sample->agent);
    uint64_t begin = cs_tsc();
    bool sent = send(sample, mode);
    if (sample->mode != 0) cs_gate_add_cost(mode, sample->held_ticks + cs_tsc() - begin);
    if (!sent) lost[mode]++;
    if (mode == CS_WIRE_MODE_WALL)
      ((struct cs_agent_thread *)sample->agent)->repeatable = sent && is_repeatable(sample);
    cs_sample_ring_pop(&cs_agent.ring, sample);
  }
  keep_images(newest);
}
