// SPDX-License-Identifier: MIT
// From the ring to the wire, sample by sample. Invariants: everything that a sample refers to
// (thread, methods, images) is on the wire before it; a sample that cannot be sent whole is dropped
// and counted; a record leaves the ring only after that. The agent's thread only. Signal-safe: no.
#include "reporting/drain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engines/engine.h"
#include "events/holders.h"
#include "life/images.h"
#include "reporting/awaits.h"
#include "reporting/frames.h"
#include "reporting/lock_types.h"
#include "reporting/methods.h"
#include "reporting/statuses.h"
#include "reporting/stub_shapes.h"
#include "reporting/type_names.h"
#include "reporting/wait_names.h"
#include "sampling/blocked.h"
#include "sampling/budget.h"
#include "sampling/weight.h"
#include "signal/awaits.h"
#include "signal/kernel.h"
#include "state/event_names.h"
#include "state/throttle.h"
#include "threads/stackmap.h"

enum { REFRESH_NS = 50000000 };  // between two searches for new images because of unknown code

// The frames of the sample that is being sent, from frames[1] on. frames[0] is for what an event is
// about; before it, there is room for the kernel's frames.
static uint64_t *buffer, *frames;
static uint64_t lost[CS_SAMPLE_MODES];  // because there was no room in the wire
static uint64_t next_refresh_ns;
static bool images_cached;      // find_images has those of the last sample; within one drain only
static uint32_t oldest_images;  // the number of the oldest table that a sample may still need

bool cs_drain_init(struct cs_error *err) {
  oldest_images = cs_library_images_sequence();
  memset(lost, 0, sizeof lost);
  cs_weights_start();
  cs_blocked_start();
  cs_statuses_init();
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

// Finds the images at the time of the walk: the same for most samples of a drain.
static void find_images(const struct cs_sample *s, struct cs_frame_origin *origin) {
  static uint64_t loaded;
  static uint32_t sequence;
  static struct cs_frame_origin found;
  if (!images_cached || s->loaded != loaded || s->images != sequence) {
    loaded = s->loaded;
    sequence = s->images;
    found.images = cs_library_images_of(loaded, sequence, &found.all);
    images_cached = true;
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

// Returns how many of an event's frames to leave out: first come the runtime's own, which report
// the event (or have stopped the thread) and, for an exception, dispatch it. Returns `count` if no
// managed code follows.
static uint32_t prologue_of(uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint64_t frame = frames[1 + i];
    bool managed = CS_WIRE_FRAME_KIND(frame) == CS_WIRE_FRAME_MANAGED;
    if (managed && !cs_method_is_dispatch(cs_wire_frame_function(frame))) return i;
  }
  return count;
}

// Returns how many frames at the leaf are those of a wait, and in *name what the runtime's methods
// among them say that is waited for.
static uint32_t frames_of_wait(const uint64_t *first, uint32_t count, const char **name) {
  uint32_t i = 0;
  *name = NULL;
  while (i < count && CS_WIRE_FRAME_KIND(first[i]) == CS_WIRE_FRAME_MANAGED &&
         cs_wait_name_of(cs_wire_frame_function(first[i]), name))
    i++;
  return i;
}

// When the recording ends, the threads that wait are walked while they sleep.
static bool has_not_ended(const struct cs_sample *s) {
  return s->mode == CS_WIRE_MODE_WAIT && s->held_ticks == 0;
}

// A wait that Thread.Interrupt has ended has no event either, and its thread is elsewhere.
static bool has_been_interrupted(uint32_t count) {
  const char *name;
  uint32_t skip = prologue_of(count);
  if (skip == count) return false;  // the walk has ended before the program's methods
  uint32_t waits = frames_of_wait(frames + 1 + skip, count - skip, &name);
  return name != NULL ? !cs_wait_name_is_a_wait(name) : waits == 0;
}

// Returns what is waited for, by the stack, or else by the event.
static uint32_t waited_for(const uint64_t *first, uint32_t count, uint32_t by_event) {
  const char *name;
  (void)frames_of_wait(first, count, &name);
  if (name != NULL) return cs_event_name_of(name);
  return by_event != 0 || count == 0 ? by_event : cs_event_name_of(CS_WAIT_UNNAMED);
}

// Returns the event name of the lock's object and owner, or 0 if both are unknown.
static uint32_t held_by(const struct cs_sample *s) {
  char name[128], text[CS_EVENT_NAME_BYTES];
  const char *type = cs_lock_type_name(s->class, s->code_generation), *owner = name;
  if (s->type == 0 && type == NULL) return 0;
  if (s->type == 0)
    owner = "an unknown thread";
  else if (s->type == CS_NO_LOCK_OWNER)
    owner = "nobody when the wait began";
  else if (!cs_threads_name(s->type, name, sizeof name))
    owner = "a thread that has ended";
  else if (name[0] == '\0')
    owner = "a thread without a name";
  (void)snprintf(text, sizeof text, "[%s%sheld by %s]", type != NULL ? type : "",
                 type != NULL ? " " : "", owner);
  return cs_event_name_of(text);
}

static uint32_t holds(const struct cs_sample *s) {
  char text[CS_EVENT_NAME_BYTES];
  const char *type = cs_lock_type_name(s->class, s->code_generation);
  (void)snprintf(text, sizeof text, "[holds %s]", type != NULL ? type : "an unknown object");
  return cs_event_name_of(text);
}

// Returns the event's frames, with what the event is about as the leaf, if that has a name. Returns
// NULL if there is no room.
static uint64_t *frames_of_event(const struct cs_sample *s, uint32_t *count) {
  // For a thread that holds up a suspension, or holds a lock, all frames count, the runtime's and
  // native ones included.
  bool whole = s->cause == CS_CAUSE_STRAGGLER || s->mode == CS_WIRE_MODE_HOLDERS;
  uint32_t skip = whole ? 0 : prologue_of(*count), type = s->type, id;
  uint64_t *first = frames + 1 + skip;
  *count -= skip;
  if (s->mode == CS_WIRE_MODE_ALLOC || s->mode == CS_WIRE_MODE_EXCEPTION)
    type = cs_type_name_whole(s->class, s->type, s->code_generation);
  if (s->mode == CS_WIRE_MODE_WAIT) type = waited_for(first, *count, s->type);
  if (s->mode == CS_WIRE_MODE_LOCK) type = held_by(s);
  if (s->mode == CS_WIRE_MODE_HOLDERS) type = holds(s);
  if (type == 0) return first;
  if (!cs_event_name_to_wire(type, &id)) return NULL;
  *--first = cs_wire_name_frame(id);
  ++*count;
  return first;
}

// Inserts the awaiting methods after the frame of the box that they were found by.
static void add_awaits(const struct cs_sample *s, uint32_t most, uint32_t *count) {
  uint64_t awaits[CS_AWAITS_MOST];
  uint32_t n = *count == s->frame_count ? cs_awaits_to_wire(s, frames + 1, awaits) : 0;
  if (n == 0 || n > most - *count) return;
  uint64_t *to = frames + 1 + s->await_at + 1;
  memmove(to + n, to, (*count - s->await_at - 1) * sizeof *to);
  memcpy(to, awaits, n * sizeof *to);
  *count += n;
}

// Puts the kernel's frames before `first`. Returns how many.
static uint32_t kernel_frames(const struct cs_sample *s, uint64_t *first) {
  const uint64_t *from = &s->frames[s->frame_count + s->await_count];
  if (s->kernel_count == CS_KERNEL_UNKNOWN) {
    cs_perf_count_kernel_unknown();
    return 0;
  }
  for (uint32_t i = 0; i < s->kernel_count; i++)
    *(first - s->kernel_count + i) = CS_WIRE_FRAME_IN_KERNEL | (from[i] & CS_WIRE_KERNEL_ADDRESS);
  return s->kernel_count;
}

// Returns false if there is no room for the endpoint's name.
static bool label_to_wire(const struct cs_label *label, struct cs_label *out) {
  uint32_t id = 0;
  *out = *label;
  uint32_t name = cs_label_endpoint(label);
  if (name != 0 && !cs_event_name_to_wire(name, &id)) return false;
  out->endpoint = (uint64_t)cs_label_request(label) << 32 | id;
  cs_statuses_note(out);
  return true;
}

// Returns false if there was no room for it, or for a record that it needs.
static bool send(const struct cs_sample *s, enum cs_wire_mode mode) {
  struct cs_agent_thread *t = s->agent;
  uint32_t most = cs_producer_max_frames(&cs_agent.wire) - 1;
  if (cs_options.kernel) most -= CS_KERNEL_MOST;
  bool cut = s->frame_count > most;
  struct cs_wire_sample record = {
      .time_ns = cs_since_start(cs_clock_tsc_to_ns(s->tsc)),
      .weight = cs_weight_of(s, mode),
      .stop_ip = s->stop_ip,
      .thread = t->id,
      .stop = (uint16_t)(cut ? CS_STOP_BUFFER : s->stop),
      .mode = (uint16_t)mode,
      .frame_count = cut ? most : s->frame_count,
  };
  if (s->cause == CS_CAUSE_CLOCKED || s->cause == CS_CAUSE_SCAN)
    record.weight = cs_blocked_split(t, record.weight, record.time_ns);
  uint64_t held = cs_clock_ticks_to_ns(s->held_ticks);
  record.held_ns = held < UINT32_MAX ? (uint32_t)held : UINT32_MAX;
  if (!cs_threads_announce(t) || !translate(s, record.frame_count)) return false;
  if (has_not_ended(s)) {
    if (has_been_interrupted(record.frame_count)) return true;
    cs_throttle_count(CS_WIRE_MODE_WAIT, s->weight);
    cs_throttle_add_walk(CS_WIRE_MODE_WAIT);
  }
  add_awaits(s, most, &record.frame_count);
  uint64_t *from =
      s->mode != 0 || s->type != 0 ? frames_of_event(s, &record.frame_count) : frames + 1;
  if (from == NULL) return false;
  uint32_t kernel = kernel_frames(s, from);
  from -= kernel;
  record.frame_count += kernel;
  struct cs_label own;
  const struct cs_label *label = cs_sample_has_label(s) ? &own : NULL;
  if (label != NULL && !label_to_wire(&s->label, &own)) return false;
  uint64_t *out = cs_producer_begin_sample(&cs_agent.wire, &record, label);
  if (out == NULL) return false;
  for (uint32_t i = 0; i < record.frame_count; i++) out[i] = from[i];
  cs_producer_commit_sample(&cs_agent.wire, &record, label);
  return true;
}

// Sends a sample of a thread that does not exist, without a stack, for what has this name and no
// sample stands for. Returns false if there is no room.
static bool send_unsampled(enum cs_wire_mode mode, uint32_t name, uint64_t weight) {
  static const char *const thread_name[] = {CS_WIRE_UNWALKED};
  struct cs_wire_thread thread = {UINT32_MAX, 0};
  struct cs_wire_sample record = {.time_ns = cs_since_start(cs_clock_now_ns()),
                                  .weight = weight,
                                  .thread = thread.id,
                                  .stop = CS_STOP_BASE,
                                  .mode = (uint16_t)mode,
                                  .held_ns = CS_WIRE_NOT_HELD,
                                  .frame_count = 1};
  uint32_t id;
  cs_add_relaxed(&cs_agent.ring.events, 1);
  cs_add_relaxed(&cs_agent.ring.samples, 1);
  uint64_t *out = NULL;
  if (cs_producer_put(&cs_agent.wire, CS_WIRE_THREAD, &thread, sizeof thread, thread_name, 1) &&
      cs_event_name_to_wire(name, &id))
    out = cs_producer_begin_sample(&cs_agent.wire, &record, NULL);
  if (out == NULL) {
    lost[mode]++;
    return false;
  }
  out[0] = cs_wire_name_frame(id);
  cs_producer_commit_sample(&cs_agent.wire, &record, NULL);
  return true;
}

// Returns whether the sample may be sent again as long as its thread sleeps. Its stack and its
// label, which only the thread itself changes, stay the same; but other methods may begin to await
// its methods.
static bool is_repeatable(const struct cs_sample *s) {
  return s->cause == CS_CAUSE_NONE && s->await_state == CS_AWAITS_NONE &&
         s->stop != CS_STOP_UNKNOWN_CODE;  // that may soon be known
}

// ---- What samples reveal ----

// The sample of a thread with an unknown stack has its stack pointer.
static void learn_stack(const struct cs_sample *s) {
  struct cs_stack stack;
  struct cs_thread *thread = cs_registry_at(s->thread);
  if (thread->generation != s->thread_generation || cs_load_acquire(&thread->stack.hi) != 0) return;
  if (!cs_stack_around(s->sp, &stack)) return;
  thread->stack.lo = stack.lo;
  cs_store_release(&thread->stack.hi, stack.hi);
}

// Unknown code may be a library that was loaded since the last search. It need not end the walk:
// from a leaf there is often another way on.
static bool has_unknown_code(const struct cs_sample *s) {
  if (s->stop == CS_STOP_UNKNOWN_CODE) return true;
  return s->frame_count > 0 && CS_FRAME_WORD_KIND(s->frames[0]) == CS_CODE_NONE &&
         cs_stub_shape_name(CS_FRAME_WORD_IP(s->frames[0])) == NULL;
}

static void learn_from(const struct cs_sample *s) {
  if (s->stop == CS_STOP_NO_BOUNDS) learn_stack(s);
  if (!has_unknown_code(s)) return;
  uint64_t now = cs_clock_now_ns();
  // The agent's thread continues with images that are left after the drain.
  if (cs_library_images_are_left()) return;
  if (now < next_refresh_ns && !cs_library_images_are_old()) return;
  next_refresh_ns = now + REFRESH_NS;
  (void)cs_library_refresh_images_briefly();
  images_cached = false;
}

// When all samples have been read, no table older than the newest one before the drain is needed. A
// sample that is being written keeps older ones, but not for ever.
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
    by_mode[i] = lost[i] + events + cs_blocked_lost((enum cs_wire_mode)i);
    timed -= events;
  }
  by_mode[CS_WIRE_MODE_WALL] += cs_weight_lost_repeats();
  // The mode of a timed sample that found no room in the ring is not known.
  by_mode[cs_wants(CS_WIRE_MODE_CPU) ? CS_WIRE_MODE_CPU : CS_WIRE_MODE_WALL] += timed;
}

// Called in each drain, so that they have a time.
static void send_unwalked_holders(void) {
  for (int reason = 0; reason < CS_UNWALKED_REASONS; reason++) {
    uint32_t name;
    uint64_t ns = cs_holders_take_unwalked((enum cs_unwalked)reason, &name);
    if (ns > 0 && name != 0) (void)send_unsampled(CS_WIRE_MODE_HOLDERS, name, ns);
  }
}

void cs_drain_end(void) {
  cs_library_images_keep(UINT32_MAX);
  uint32_t names = cs_event_names_count();
  for (uint32_t name = 1; name <= names; name++) {
    uint64_t events = cs_event_name_take_unsampled(name);
    if (events > 0 && !send_unsampled(CS_WIRE_MODE_EXCEPTION, cs_type_name_known(name), events))
      return;
  }
}

void cs_drain_free(void) {
  free(buffer);
  buffer = frames = NULL;
}

void cs_drain(void) {
  const struct cs_sample *sample;
  uint32_t newest = cs_library_images_sequence();
  // What is written meanwhile is left: threads that write faster than this loop reads would keep it
  // here.
  uint64_t upto = cs_load_acquire(&cs_agent.ring.head);
  images_cached = false;
  while (cs_load_relaxed(&cs_agent.ring.tail) < upto &&
         (sample = cs_sample_ring_peek(&cs_agent.ring)) != NULL) {
    learn_from(sample);
    enum cs_wire_mode mode = mode_of(sample);
    cs_budget_add_held(sample->held_ticks);
    uint64_t begin = cs_tsc();
    bool sent = send(sample, mode);
    if (sample->mode != 0) cs_throttle_add_cost(mode, sample->held_ticks + cs_tsc() - begin);
    if (!sent) lost[mode]++;
    if (mode == CS_WIRE_MODE_WALL)
      ((struct cs_agent_thread *)sample->agent)->repeatable = sent && is_repeatable(sample);
    cs_sample_ring_pop(&cs_agent.ring, sample);
  }
  if (cs_wants(CS_WIRE_MODE_HOLDERS)) send_unwalked_holders();
  keep_images(newest);
  cs_statuses_send();
}
