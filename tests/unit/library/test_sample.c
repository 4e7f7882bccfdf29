// SPDX-License-Identifier: MIT
// The sample ring: threads walk themselves into it while another thread reads. Their stacks are
// laid out by hand, so that every record can be checked word by word. The test itself makes the
// call that a handler makes.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "signal/cooldown.h"
#include "signal/sample.h"
#include "state/ring.h"
#include "support/fake_clr.h"

enum { FRAME_WORDS = FAKE_FRAME, MAX_FRAMES = 3000, THREADS = 4, ROUNDS = 20000 };

static struct fake_clr clr;
static uint64_t method;
static struct cs_sample_ring ring;

struct walker {  // a thread with a stack of its own making
  struct cs_thread thread;
  uint64_t words[MAX_FRAMES * FRAME_WORDS + 16];
};
static struct walker walkers[THREADS];

static int setup(void **state) {
  (void)state;
  static uint8_t code[64];
  fake_frame_code(code);
  fake_clr_init(&clr);
  struct fake_function f = {code, sizeof code, fake_frame_info, sizeof fake_frame_info};
  method = fake_clr_add_method(&clr, &f, 1, 0x1234, 0);
  cs_signal.world = &clr.world;
  return 0;
}
static int teardown(void **state) {
  (void)state;
  cs_signal.ring = NULL;
  cs_signal.world = NULL;
  cs_sample_ring_close(&ring);
  fake_clr_free(&clr);
  return 0;
}

static void open_ring(uint64_t bytes, uint32_t depth) {
  assert_true(cs_sample_ring_open(&ring, bytes, depth));
  cs_store_release(&cs_signal.ring, &ring);
}

static void become(struct walker *w, uint32_t index) {
  memset(w, 0, sizeof *w);
  w->thread.tid = (uint32_t)syscall(SYS_gettid);
  w->thread.index = index;
  w->thread.generation = index + 100;
  w->thread.sampling = 1;
  w->thread.agent = w;
  w->thread.stack.lo = (uint64_t)(uintptr_t)w->words;
  w->thread.stack.hi = (uint64_t)(uintptr_t)(w->words + CS_COUNT(w->words));
  for (size_t i = FAKE_RETURN; i < CS_COUNT(w->words); i += FRAME_WORDS)
    w->words[i] = method + AFTER_CALL;
}

enum { WEIGHT = 1000 };

// Takes a sample of a stack of `frames`: the leaf is placed so that this many frames lead to the
// base.
static void take_because(struct walker *w, uint32_t frames, const struct cs_signal_cause *cause) {
  struct cs_regs regs = {.known = CS_REGS_ALL};
  uint64_t base = MAX_FRAMES * FRAME_WORDS;
  w->words[base - FRAME_WORDS + FAKE_RETURN] = 0;  // the base: no return address
  regs.r[CS_IP] = method + AFTER_CALL;
  regs.r[CS_SP] = (uint64_t)(uintptr_t)&w->words[base - frames * FRAME_WORDS];
  cs_sample_take(&w->thread, &regs, cause);
}

static void take(struct walker *w, uint32_t frames) {
  struct cs_signal_cause cause = {cs_tsc(), CS_CAUSE_SCAN, WEIGHT, NULL};
  take_because(w, frames, &cause);
}

static void check(const struct cs_sample *s, uint32_t frames) {
  assert_int_equal(s->frame_count, frames);
  assert_int_equal(s->stop, CS_STOP_BASE);
  assert_int_equal(s->thread_generation, s->thread + 100);
  assert_ptr_equal(s->agent, &walkers[s->thread]);
  assert_int_equal(s->cause, CS_CAUSE_SCAN);
  for (uint32_t i = 0; i < frames; i++) {
    uint64_t want = CS_FRAME_WORD(method + AFTER_CALL, CS_CODE_JIT, i == 0);
    if (s->frames[i] != want) fail_msg("frame %u is %#lx", i, (unsigned long)s->frames[i]);
  }
}

static void a_sample_is_what_the_walk_found(void **state) {
  (void)state;
  open_ring(65536, 1000);
  become(&walkers[0], 0);
  assert_null(cs_sample_ring_peek(&ring));
  for (uint32_t round = 1; round < 300; round++) {
    take(&walkers[0], round);
    const struct cs_sample *s = cs_sample_ring_peek(&ring);
    assert_non_null(s);
    check(s, round);
    cs_sample_ring_pop(&ring, s);
    assert_null(cs_sample_ring_peek(&ring));
    assert_int_equal(cs_sample_ring_used(&ring), 0);
  }
  assert_int_equal(ring.samples, 299);
}

static void unused_space_is_given_back(void **state) {
  (void)state;
  open_ring(65536, 1000);
  become(&walkers[0], 0);
  for (unsigned i = 0; i < 100; i++) take(&walkers[0], 10);
  assert_int_equal(cs_sample_ring_used(&ring),
                   100 * ((sizeof(struct cs_sample) + 80 + 15) & ~15ul));
  assert_int_equal(ring.lost, 0);
}

static void deep_stacks_are_cut_where_the_limit_is(void **state) {
  (void)state;
  open_ring(1 << 20, 1500);
  become(&walkers[0], 0);
  take(&walkers[0], MAX_FRAMES);
  const struct cs_sample *s = cs_sample_ring_peek(&ring);
  assert_non_null(s);
  assert_int_equal(s->frame_count, 1500);
  assert_int_equal(s->stop, CS_STOP_DEPTH);
  cs_sample_ring_pop(&ring, s);
  take(&walkers[0], 1500);
  s = cs_sample_ring_peek(&ring);
  assert_non_null(s);
  check(s, 1500);
}

// A record that cannot grow is cut off, and marked as cut.
static void a_stack_that_does_not_fit_says_so(void **state) {
  (void)state;
  open_ring(65536, 65536);
  become(&walkers[0], 0);
  take(&walkers[0], MAX_FRAMES);
  for (unsigned i = 0; i < 4; i++) take(&walkers[0], 240);
  take(&walkers[0], MAX_FRAMES);
  const struct cs_sample *s, *last = NULL;
  unsigned seen = 0;
  while ((s = cs_sample_ring_peek(&ring)) != NULL) {
    if (s->stop == CS_STOP_BUFFER) {
      assert_true(s->frame_count > 0 && s->frame_count < MAX_FRAMES);
      assert_int_equal(s->stop_ip, method + AFTER_CALL);
      last = s;
    } else {
      check(s, s->frame_count);
    }
    cs_sample_ring_pop(&ring, s);
    seen++;
  }
  assert_non_null(last);
  assert_int_equal(seen, ring.samples);
  assert_int_equal(ring.samples + ring.lost, 6);
}

static void spin_until(uint64_t tsc, uint64_t cpu_ns) {
  while (cs_tsc() < tsc || cs_thread_cpu_ns() < cpu_ns) {
  }
}

// At any rate, at least nine times the duration of a sample passes before the next sample, which
// stands for those left out.
static void a_thread_is_left_alone_after_a_long_sample(void **state) {
  (void)state;
  struct cs_cooldown *cooldown = &walkers[0].thread.cooldown;
  cs_clock_init();
  cs_signal.ns_of_tick = cs_clock_ticks_to_ns(1ull << 32);
  cs_signal.ticks_of_ns = (uint64_t)(((unsigned __int128)1 << 64) / cs_signal.ns_of_tick);
  open_ring(1 << 20, MAX_FRAMES);
  become(&walkers[0], 0);
  uint64_t cost = 0;
  for (uint32_t round = 1; round < 20; round++) {
    uint64_t before = cs_thread_cpu_ns();
    take(&walkers[0], MAX_FRAMES);
    uint64_t spent = cs_thread_cpu_ns() - before;
    assert_int_equal(ring.samples, round);
    const struct cs_sample *s = cs_sample_ring_peek(&ring);
    assert_non_null(s);
    assert_int_equal(s->put_off, round > 1 ? 5 : 0);
    assert_int_equal(s->put_off_by_ns, cost);
    cost = cooldown->cost_ns;
    assert_true(cost > 0);
    assert_int_equal(s->weight, round > 1 ? 6 * WEIGHT : WEIGHT);
    cs_sample_ring_pop(&ring, s);
    assert_true(cooldown->until_cpu == 0 || cooldown->until_cpu >= before + 5 * spent);
    for (int i = 0; i < 5; i++) take(&walkers[0], 10);
    assert_int_equal(ring.samples, round);
    assert_int_equal(cooldown->put_off, 5);
    assert_int_equal(cooldown->ever, 5 * round);
    spin_until(cooldown->until, cooldown->until_cpu);
  }
  assert_int_equal(ring.signals, ring.samples);
  cs_signal.ns_of_tick = cs_signal.ticks_of_ns = 0;
}

// A thread that lost its processor during its walk is sampled again as if it had not, because what
// counts is the CPU time it has used.
static void a_walk_without_a_processor_is_not_long(void **state) {
  (void)state;
  const uint64_t second = 1000000000, lost = 300000000;
  struct cs_cooldown *cooldown = &walkers[0].thread.cooldown;
  cs_clock_init();
  cs_signal.ns_of_tick = cs_clock_ticks_to_ns(1ull << 32);
  cs_signal.ticks_of_ns = (uint64_t)(((unsigned __int128)1 << 64) / cs_signal.ns_of_tick);
  uint64_t now = cs_tsc(), now_cpu = cs_thread_cpu_ns();
  cs_cooldown_begin(cooldown, now - cs_scale(lost, cs_signal.ticks_of_ns), now_cpu - 1000, 0);
  assert_true(cooldown->cost_ns < lost / 2);
  assert_true(cooldown->until_cpu > now_cpu);
  assert_true(cooldown->until_cpu < now_cpu + second);
  assert_true(cooldown->until < now + cs_scale(second, cs_signal.ticks_of_ns));
  cs_cooldown_begin(cooldown, now - cs_scale(lost, cs_signal.ticks_of_ns), 0,
                    0);  // unknown: all of it
  assert_true(cooldown->until > now + cs_scale(second, cs_signal.ticks_of_ns));
  // Nor where the CPU clock has run on, since the walk would have been cut long before.
  cs_cooldown_begin(cooldown, now - cs_scale(lost, cs_signal.ticks_of_ns), now_cpu - lost, 500000);
  assert_int_equal(cooldown->cost_ns, 1000000);
  *cooldown = (struct cs_cooldown){0};
  for (int i = 0; i < 10; i++)
    cs_cooldown_begin_event(cooldown, cs_tsc() - cs_scale(lost, cs_signal.ticks_of_ns),
                            cs_thread_cpu_ns() - 1000, 0);
  assert_false(cs_in_event_cooldown(cooldown, cs_tsc()));
  *cooldown = (struct cs_cooldown){0};
  cs_signal.ns_of_tick = cs_signal.ticks_of_ns = 0;
}

// Each event is about something else, so the walk is left out, but not the sample.
static void an_event_too_many_has_no_stack(void **state) {
  (void)state;
  struct cs_regs regs = {.known = CS_REGS_ALL};
  struct walker *w = &walkers[0];
  struct cs_cooldown cooldown = {0};
  unsigned whole = 0, bare = 0;
  cs_clock_init();
  cs_signal.ns_of_tick = cs_clock_ticks_to_ns(1ull << 32);
  cs_signal.ticks_of_ns = (uint64_t)(((unsigned __int128)1 << 64) / cs_signal.ns_of_tick);
  open_ring(1 << 20, MAX_FRAMES);
  become(w, 0);
  w->words[MAX_FRAMES * FRAME_WORDS - 1] = 0;
  regs.r[CS_IP] = method + AFTER_CALL;
  regs.r[CS_SP] = (uint64_t)(uintptr_t)w->words;
  struct cs_sampled from = {.world = &clr.world,
                            .thread = &w->thread,
                            .agent = w,
                            .regs = &regs,
                            .stack = &w->thread.stack};
  const uint64_t second = 1000000000;
  for (uint32_t i = 0; i < 1000; i++) {
    struct cs_sample_event event = {
        .tsc = cs_tsc(), .weight = i + 1, .mode = 3, .type = 7, .class = 9};
    if (i < 100) cooldown = (struct cs_cooldown){0};  // the walks themselves may be slow
    if (i == 100)                                     // one has taken a second of CPU time
      cs_cooldown_begin_event(&cooldown, cs_tsc() - cs_scale(second, cs_signal.ticks_of_ns),
                              cs_thread_cpu_ns() - second, 0);
    cs_sample_event(&ring, &from, &cooldown, &event);
    const struct cs_sample *s = cs_sample_ring_peek(&ring);
    assert_int_equal(s->weight, i + 1);
    assert_int_equal(s->type, 7);
    assert_int_equal(s->class, 9);
    assert_int_equal(s->frame_count, s->stop == CS_STOP_PUT_OFF ? 0 : MAX_FRAMES);
    if (s->stop == CS_STOP_PUT_OFF)
      bare++;
    else
      whole++;
    cs_sample_ring_pop(&ring, s);
  }
  assert_true(whole == 100 && bare == 900);
  assert_int_equal(ring.samples, 1000);
  cs_signal.ns_of_tick = cs_signal.ticks_of_ns = 0;
}

// The way to a collection's safe point is written down when the pause has ended.
static void a_thread_is_not_held_since_the_event_happened(void **state) {
  (void)state;
  struct cs_sampled from = {.world = &clr.world, .regs = &(struct cs_regs){.known = 0}};
  struct cs_cooldown cooldown = {0};
  open_ring(65536, 10);
  become(&walkers[0], 0);
  from.thread = &walkers[0].thread;
  from.stack = &walkers[0].thread.stack;
  uint64_t now = cs_tsc(), long_ago = now - UINT32_MAX / 2;
  struct cs_sample_event event = {.tsc = long_ago, .begin = now, .weight = 1, .mode = 5};
  cs_sample_event(&ring, &from, &cooldown, &event);
  const struct cs_sample *s = cs_sample_ring_peek(&ring);
  assert_true(s->tsc == long_ago);
  assert_in_range(s->held_ticks, 1, cs_tsc() - now);
}

// By the CPU clock: a thread that waits for a processor meanwhile does not run on.
static void how_long_a_thread_has_run_on_is_counted(void **state) {
  (void)state;
  struct walker *w = &walkers[0];
  open_ring(65536, 1000);
  become(w, 0);
  take(w, 10);  // it is not known when it was asked
  for (unsigned i = 0; i < CS_RAN_ON_COUNT; i++) assert_int_equal(ring.ran_on[i], 0);
  w->thread.asked_cpu_ns = cs_thread_cpu_ns() - 1;
  for (int i = 0; i < 10; i++) take(w, 10);
  uint64_t most = cs_thread_cpu_ns() - w->thread.asked_cpu_ns, counted = 0;
  for (unsigned i = 0; i < CS_RAN_ON_COUNT; i++) {
    counted += ring.ran_on[i];
    if (i > 0 && 512ull << i > most) assert_int_equal(ring.ran_on[i], 0);
  }
  assert_int_equal(counted, 10);
  w->thread.asked_cpu_ns = 1;  // long ago, for a thread that has run for more than 20 ms
  while (cs_thread_cpu_ns() < 20000000) continue;
  take(w, 10);
  assert_true(ring.ran_on[CS_RAN_ON_COUNT - 1] > 0);
}

static void losses_are_counted(void **state) {
  (void)state;
  open_ring(65536, 1000);
  become(&walkers[0], 0);
  for (unsigned i = 0; i < 1000; i++) take(&walkers[0], 100);
  assert_int_equal(ring.signals, 1000);
  assert_true(ring.lost > 0);
  assert_int_equal(ring.samples + ring.lost, 1000);
  unsigned seen = 0;
  uint64_t weight = 0;
  for (const struct cs_sample *s; (s = cs_sample_ring_peek(&ring)) != NULL; seen++) {
    check(s, 100);
    weight += s->weight;
    cs_sample_ring_pop(&ring, s);
  }
  assert_int_equal(seen, ring.samples);
  take(&walkers[0], 100);  // there is room again
  assert_int_equal(ring.samples, seen + 1);
  // It stands for those that were lost, too.
  assert_int_equal(weight + cs_sample_ring_peek(&ring)->weight, 1001 * WEIGHT);
}

static void signals_for_others_are_ignored(void **state) {
  (void)state;
  open_ring(65536, 1000);
  become(&walkers[0], 0);
  walkers[0].thread.sampling = 0;
  take(&walkers[0], 10);
  walkers[0].thread.sampling = 1;
  walkers[0].thread.tid++;
  take(&walkers[0], 10);
  walkers[0].thread.tid--;
  cs_store_release(&cs_signal.world, NULL);
  take(&walkers[0], 10);
  cs_store_release(&cs_signal.world, &clr.world);
  cs_store_release(&cs_signal.ring, NULL);
  take(&walkers[0], 10);
  assert_int_equal(ring.signals, 0);
  assert_null(cs_sample_ring_peek(&ring));
  assert_int_equal(cs_signal.epoch.active[0] + cs_signal.epoch.active[1], 0);
}

// ---- Several at a time ----

static uint32_t running;
// Most stacks are small; now and then one has to move, or is cut off by the ring's end.
static uint32_t frames_of(uint32_t index, uint32_t i) {
  uint32_t x = (i * 2654435761u + index * 40503u) >> 8;
  return x % 97 == 0 ? 200 + x % 1500 : 1 + x % 60;
}

static void *produce(void *arg) {
  uint32_t index = (uint32_t)(uintptr_t)arg;
  become(&walkers[index], index);
  for (uint32_t i = 0; i < ROUNDS; i++) {
    take(&walkers[index], frames_of(index, i));
    // Some losses are expected, but most records should arrive, even with a single processor.
    if (cs_sample_ring_used(&ring) > ring.capacity / 2) (void)sched_yield();
  }
  cs_add_seq(&running, (uint32_t)-1);
  return NULL;
}

static void every_committed_record_arrives_whole(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  uint64_t seen = 0, cut = 0;
  open_ring(1 << 18, 65536);
  running = THREADS;
  for (uintptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
  for (;;) {
    bool over = cs_load_acquire(&running) == 0;
    const struct cs_sample *s;
    while ((s = cs_sample_ring_peek(&ring)) != NULL) {
      if (s->stop == CS_STOP_BUFFER)
        cut++;
      else
        check(s, s->frame_count);
      cs_sample_ring_pop(&ring, s);
      seen++;
    }
    if (over) break;
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  print_message("%lu samples, %lu of them cut, %lu lost\n", (unsigned long)seen, (unsigned long)cut,
                (unsigned long)ring.lost);
  assert_int_equal(seen, ring.samples);
  assert_int_equal(ring.samples + ring.lost, (uint64_t)THREADS * ROUNDS);
  assert_int_equal(ring.signals, (uint64_t)THREADS * ROUNDS);
  assert_true(seen > 0);
  assert_int_equal(cs_sample_ring_used(&ring), 0);
  for (uint64_t i = 0; i < ring.capacity; i++) assert_int_equal(ring.bytes[i], 0);
}

// ---- Labels ----

static bool is_labelled(uint32_t frames, struct cs_label *label) {
  take(&walkers[0], frames);
  const struct cs_sample *s = cs_sample_ring_peek(&ring);
  assert_non_null(s);
  *label = s->label;
  bool has = cs_sample_has_label(s);
  cs_sample_ring_pop(&ring, s);
  return has;
}

// The holder of a lock is sampled only as long as it holds the lock.
static void a_holder_holds_the_lock(void **state) {
  (void)state;
  struct walker *w = &walkers[0];
  uint64_t owner;
  struct cs_hold hold = {
      .owner_at = (uint64_t)(uintptr_t)&owner, .weight = 1000, .class = 64, .mode = 8};
  struct cs_signal_cause cause = {cs_tsc(), CS_CAUSE_HOLDS, 0, &hold};
  open_ring(65536, 1000);
  become(w, 0);
  owner = w->thread.tid;
  hold.generation = clr.world.code_generation;
  take_because(w, 3, &cause);
  const struct cs_sample *s = cs_sample_ring_peek(&ring);
  assert_non_null(s);
  assert_int_equal(s->frame_count, 3);
  assert_int_equal(s->weight, 1000);
  assert_int_equal(s->mode, 8);
  assert_int_equal(s->class, 64);
  cs_sample_ring_pop(&ring, s);
  become(w, 0);       // not in its cooldown
  hold.generation++;  // the class may be gone
  take_because(w, 3, &cause);
  s = cs_sample_ring_peek(&ring);
  assert_int_equal(s->class, 0);
  cs_sample_ring_pop(&ring, s);
  assert_int_equal(ring.released, 0);
  become(w, 0);
  owner++;
  take_because(w, 3, &cause);
  assert_null(cs_sample_ring_peek(&ring));
  assert_int_equal(ring.released, 1000);
  assert_int_equal(ring.signals, 2);
  hold.owner_at = 8;  // unreadable
  take_because(w, 3, &cause);
  assert_int_equal(ring.released, 2000);
}

static void a_label_is_of_its_thread_and_recording(void **state) {
  (void)state;
  struct cs_label label;
  open_ring(1 << 20, MAX_FRAMES);
  become(&walkers[0], 0);
  struct cs_label_slot slot = {.sequence = 2,
                               .recording = 7,
                               .label = {.trace = {1, 2}, .span = {3}, .endpoint = 4},
                               .tid = walkers[0].thread.tid};
  cs_signal.labels = 7;
  assert_false(is_labelled(3, &label));  // it has no slot
  walkers[0].thread.label = &slot;
  // Deep stacks are moved to larger records.
  for (uint32_t frames = 1; frames < MAX_FRAMES - 10; frames += 299) {
    assert_true(is_labelled(frames, &label));
    assert_memory_equal(&label, &slot.label, sizeof label);
  }
  slot.sequence = 3;  // being written
  assert_false(is_labelled(3, &label));
  slot.sequence = 4;
  slot.tid++;
  assert_false(is_labelled(3, &label));
  slot.tid--;
  slot.recording = 6;
  assert_false(is_labelled(3, &label));
  cs_signal.labels = 6;
  assert_true(is_labelled(3, &label));
  memset(&slot.label, 0, sizeof slot.label);
  assert_false(is_labelled(3, &label));
  slot.label.span[7] = 1;
  cs_signal.labels = 0;  // no labels are wanted
  assert_false(is_labelled(3, &label));
}

struct writer {
  struct cs_label_slot slot;
  uint32_t stop;
};

// Does what src/agent/labels/ClrsnapLabels.cs does. In a complete label the four words are equal.
static void *change_label(void *data) {
  struct writer *w = data;
  for (uint64_t n = 1; cs_load_relaxed(&w->stop) == 0; n++) {
    uint32_t sequence = w->slot.sequence;
    uint64_t *words = (uint64_t *)(void *)&w->slot.label;
    cs_store_release(&w->slot.sequence, sequence | 1);
    for (int i = 0; i < 4; i++) cs_store_release(&words[i], n);
    cs_store_release(&w->slot.sequence, (sequence | 1) + 1);
  }
  return NULL;
}

static void a_label_is_read_whole(void **state) {
  (void)state;
  static struct writer w = {.slot = {.recording = 1, .tid = 5}};
  struct cs_label label;
  pthread_t thread;
  uint32_t got = 0;
  assert_int_equal(pthread_create(&thread, NULL, change_label, &w), 0);
  for (uint64_t tries = 0; got < 100000 && tries < 50000000; tries++) {
    // The writer may have lost its processor in the middle of a label.
    if (tries % 4096 == 0) (void)sched_yield();
    if (!cs_label_read(&w.slot, 5, 1, &label)) continue;
    got++;
    assert_memory_equal(label.trace, label.trace + 8, 8);
    assert_memory_equal(label.trace, label.span, 8);
    assert_memory_equal(label.trace, &label.endpoint, 8);
  }
  cs_store_release(&w.stop, 1u);
  (void)pthread_join(thread, NULL);
  assert_true(got > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_sample_is_what_the_walk_found, setup, teardown),
      cmocka_unit_test_setup_teardown(unused_space_is_given_back, setup, teardown),
      cmocka_unit_test_setup_teardown(deep_stacks_are_cut_where_the_limit_is, setup, teardown),
      cmocka_unit_test_setup_teardown(a_stack_that_does_not_fit_says_so, setup, teardown),
      cmocka_unit_test_setup_teardown(a_thread_is_left_alone_after_a_long_sample, setup, teardown),
      cmocka_unit_test_setup_teardown(a_walk_without_a_processor_is_not_long, setup, teardown),
      cmocka_unit_test_setup_teardown(an_event_too_many_has_no_stack, setup, teardown),
      cmocka_unit_test_setup_teardown(a_thread_is_not_held_since_the_event_happened, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(a_holder_holds_the_lock, setup, teardown),
      cmocka_unit_test_setup_teardown(how_long_a_thread_has_run_on_is_counted, setup, teardown),
      cmocka_unit_test_setup_teardown(losses_are_counted, setup, teardown),
      cmocka_unit_test_setup_teardown(signals_for_others_are_ignored, setup, teardown),
      cmocka_unit_test_setup_teardown(every_committed_record_arrives_whole, setup, teardown),
      cmocka_unit_test_setup_teardown(a_label_is_of_its_thread_and_recording, setup, teardown),
      cmocka_unit_test(a_label_is_read_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
