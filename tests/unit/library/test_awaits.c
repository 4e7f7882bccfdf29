// SPDX-License-Identifier: MIT
// The await chain of a stack: which frame belongs to a box or to a Task that runs, and which of the
// frame's values is that object; and collections that happen meanwhile. The heap is made by hand;
// the walk is a real one, over the code of two methods. (Chains: test_await_chain.c)
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "signal/await_box.h"
#include "signal/awaits.h"
#include "signal/sample.h"
#include "support/fake_clr.h"
#include "support/fake_heap.h"
#include "unwind/sites.h"

enum {
  LEAF_WORDS = 5,  // its frame: 4 slots and the return address
  BOX_WORDS = 6,   // 4 slots, rbx, the return address
};

static struct fake_clr clr;
static struct cs_sites sites;
static struct fake_heap heap;
static struct cs_thread thread;
static uint64_t leaf_method, box_method, clr_thread[4];
static uint64_t stack_words[64];
static uint64_t *const leaf_frame = stack_words + 8, *const box_frame = leaf_frame + LEAF_WORDS;
static struct cs_regs regs;

// ---- The stack, and memory that can be torn ----

static uint64_t addr(const void *p) {
  return (uint64_t)(uintptr_t)p;
}

static struct cs_await_site *add_site(uint64_t ip, uint64_t class) {
  uint32_t i = cs_await_slot(ip, CS_AWAIT_SITES);
  struct cs_await_site *sites_of = heap.awaits.sites;
  while (sites_of[i].ip != 0 && sites_of[i].ip != ip) i = (i + 1) & (CS_AWAIT_SITES - 1);
  sites_of[i] = (struct cs_await_site){ip, class, CS_AWAIT_PLACES, 0};
  return &sites_of[i];
}

static int setup(void **state) {
  (void)state;
  static uint8_t code[64];
  static const uint8_t leaf_info[] = {1, 4, 1, 0, 4, 0x32, 0, 0};    // sub rsp, 0x20
  static const uint8_t box_info[] = {1, 5, 2, 0, 5, 0x32, 1, 0x30};  // push rbx; sub rsp, 0x20
  memset(code, 0x90, sizeof code);
  code[AFTER_CALL - 5] = 0xE8;
  memset(stack_words, 0, sizeof stack_words);
  memset(&sites, 0, sizeof sites);
  memset(&thread, 0, sizeof thread);
  fake_heap_init(&heap);
  fake_clr_init(&clr);
  memcpy(code, "\x48\x83\xEC\x20", 4);
  struct fake_function leaf = {code, sizeof code, leaf_info, sizeof leaf_info};
  leaf_method = fake_clr_add_method(&clr, &leaf, 1, 0x1234, 0);
  memcpy(code, "\x53\x48\x83\xEC\x20", 5);
  struct fake_function box = {code, sizeof code, box_info, sizeof box_info};
  box_method = fake_clr_add_method(&clr, &box, 1, 0x5678, 0);
  clr.world.sites = &sites;
  clr_thread[0] = 1ull << 32;  // m_fPreemptiveGCDisabled
  clr_thread[1] = CS_END_OF_CHAIN;
  thread.clr_thread = addr(clr_thread);
  thread.stack = (struct cs_stack){.lo = addr(stack_words), .hi = addr(stack_words + 64)};
  leaf_frame[LEAF_WORDS - 1] = box_method + AFTER_CALL;
  box_frame[BOX_WORDS - 1] = leaf_method + AFTER_CALL;
  regs = (struct cs_regs){.known = CS_REGS_ALL};
  regs.r[CS_RIP] = leaf_method + AFTER_CALL;
  regs.r[CS_RSP] = addr(leaf_frame);
  return 0;
}
static int teardown(void **state) {
  (void)state;
  fake_clr_free(&clr);
  return 0;
}

static uint64_t watched;  // a word, and what is called when it is read
static void (*on_watched)(void);

static bool torn_read(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  (void)mem;
  if (address == watched && on_watched != NULL) on_watched();
  memcpy(dst, (const void *)(uintptr_t)address, len);
  return true;
}

static void read_by_hand(uint64_t word) {
  clr.world.mem.read = torn_read;
  watched = word;
}

static bool at_work, copied;
static uint32_t copied_at;

static struct cs_await_chain find_in(const uint64_t *frames, uint32_t count) {
  struct cs_sampled from = {.world = &clr.world,
                            .thread = &thread,
                            .regs = &regs,
                            .stack = &thread.stack,
                            .at_work = at_work,
                            .copied = copied,
                            .stops = copied_at};
  struct cs_await_chain chain;
  memset(&chain, 0xA5, sizeof chain);
  cs_awaits_find(&heap.awaits, &from, frames, count, &chain);
  return chain;
}

static struct cs_await_chain find(void) {
  uint64_t frames[] = {CS_FRAME_WORD(leaf_method + AFTER_CALL, CS_CODE_JIT, true),
                       CS_FRAME_WORD(box_method + AFTER_CALL, CS_CODE_JIT, false),
                       CS_FRAME_WORD(leaf_method + AFTER_CALL, CS_CODE_JIT, false)};
  return find_in(frames, CS_COUNT(frames));
}

static void find_and_check(enum cs_await_state want, const uint64_t *objects, uint32_t count) {
  struct cs_await_chain chain = find();
  fake_check_chain(&chain, want, objects, count);
}

// Puts a box into the frame's rbx, so that its chain is the one to find.
static struct cs_await_site *enter(uint64_t box) {
  regs.r[CS_RBX] = box;
  return add_site(box_method + AFTER_CALL, fake_class_of(box));
}

// ---- All of it ----

static void a_chain_is_followed_to_who_is_awaited_by_nobody(void **state) {
  (void)state;
  uint64_t boxes[5];
  fake_chain(&heap, boxes, 5);
  enter(boxes[0]);
  struct cs_await_chain chain = find();
  fake_check_chain(&chain, CS_AWAITS_COMPLETE, boxes, 5);
  assert_int_equal(chain.at, 1);
  // A thread that a collection does not wait for reads with guarded reads, and finds the same.
  clr_thread[0] = 0;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 5);
  read_by_hand(0);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 5);
}

static void without_a_box_on_the_stack_nothing_is_looked_for(void **state) {
  (void)state;
  uint64_t boxes[2];
  fake_chain(&heap, boxes, 2);
  regs.r[CS_RBX] = boxes[0];
  find_and_check(CS_AWAITS_NONE, NULL, 0);
  // The leaf's own ip is not a return address.
  add_site(leaf_method + AFTER_CALL + 1, fake_class_of(boxes[0]));
  find_and_check(CS_AWAITS_NONE, NULL, 0);
  enter(boxes[0]);
  clr.world.mem.guard_works = false;
  find_and_check(CS_AWAITS_NONE, NULL, 0);
}

static void begin_to_stop(void) {
  heap.awaits.stops = 3;
}
static void stop_and_go_on(void) {
  heap.awaits.stops = 4;
}

static void what_was_read_while_objects_moved_is_thrown_away(void **state) {
  (void)state;
  uint64_t boxes[3];
  fake_chain(&heap, boxes, 3);
  struct cs_await_site *site = enter(boxes[0]);
  heap.awaits.stops = 3;
  find_and_check(CS_AWAITS_STOPPED, NULL, 0);
  void (*const meanwhile[])(void) = {begin_to_stop, stop_and_go_on};
  for (size_t i = 0; i < CS_COUNT(meanwhile); i++) {
    heap.awaits.stops = 2;
    read_by_hand(boxes[1]);
    on_watched = meanwhile[i];
    find_and_check(CS_AWAITS_STOPPED, NULL, 0);
    // Nothing is learnt from that, either.
    assert_int_equal(site->places, CS_AWAIT_PLACES);
  }
  on_watched = NULL;
  heap.awaits.stops = 4;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
}

// A collection updates the stack, but not a copy that was taken before or meanwhile.
static void a_copy_that_is_older_than_a_stop_is_not_believed(void **state) {
  (void)state;
  uint64_t boxes[3];
  fake_chain(&heap, boxes, 3);
  enter(boxes[0]);
  heap.awaits.stops = 4;
  copied = true;
  for (copied_at = 0; copied_at < 6; copied_at++) {
    if (copied_at == 4)
      find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
    else
      find_and_check(CS_AWAITS_STOPPED, NULL, 0);
  }
  copied = false;
}

static void whether_it_stood_still_at_the_beginning_is_told_by_a_thread_that_runs(void **state) {
  (void)state;
  uint64_t boxes[2];
  fake_chain(&heap, boxes, 2);
  enter(boxes[0]);
  heap.awaits.stops = 1;
  clr_thread[0] = 0;
  find_and_check(CS_AWAITS_STOPPED, NULL, 0);
  assert_int_equal(heap.awaits.stops, 1);
  clr_thread[0] = 1ull << 32;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  assert_int_equal(heap.awaits.stops, 2);
}

// A thread reports events from native code, and an allocation while it is in cooperative mode.
static void or_by_one_that_allocates(void **state) {
  (void)state;
  uint64_t boxes[2];
  uint64_t frames[] = {CS_FRAME_WORD(leaf_method + AFTER_CALL, CS_CODE_NATIVE, true),
                       CS_FRAME_WORD(box_method + AFTER_CALL, CS_CODE_JIT, false)};
  fake_chain(&heap, boxes, 2);
  enter(boxes[0]);
  heap.awaits.stops = 1;
  struct cs_await_chain chain = find_in(frames, 2);
  fake_check_chain(&chain, CS_AWAITS_STOPPED, NULL, 0);
  at_work = true;
  clr_thread[0] = 0;
  chain = find_in(frames, 2);
  fake_check_chain(&chain, CS_AWAITS_STOPPED, NULL, 0);
  clr_thread[0] = 1ull << 32;
  chain = find_in(frames, 2);
  at_work = false;
  fake_check_chain(&chain, CS_AWAITS_COMPLETE, boxes, 2);
  assert_int_equal(heap.awaits.stops, 2);
}

// ---- Which value of its frame the box is ----

static void a_value_that_is_another_classs_is_not_the_box(void **state) {
  (void)state;
  uint64_t boxes[2], others[2];
  fake_chain(&heap, boxes, 2);
  fake_chain(&heap, others, 2);
  box_frame[0] = others[0];
  box_frame[1] = boxes[0] + 4;  // not aligned
  box_frame[2] = 8;             // no address
  box_frame[3] = addr(&stack_words[40]);
  enter(boxes[0]);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
}

static void two_boxes_of_the_class_are_ambiguous(void **state) {
  (void)state;
  uint64_t boxes[3], other;
  fake_chain(&heap, boxes, 3);
  other = fake_object(&heap, fake_class_of(boxes[0]));
  box_frame[2] = other;
  fake_set(other, FAKE_CONTINUATION, boxes[2]);
  enter(boxes[0]);
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  // The same box in two places is not ambiguous.
  box_frame[2] = boxes[0];
  find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
  // Once a sample has shown a place without the box, what lies there no longer counts.
  box_frame[2] = 0;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
  box_frame[2] = other;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
  // A box that is not in its known place is not found.
  regs.r[CS_RBX] = 0;
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static void a_box_in_a_slot_is_found(void **state) {
  (void)state;
  uint64_t boxes[2];
  fake_chain(&heap, boxes, 2);
  struct cs_await_site *site = enter(boxes[0]);
  regs.r[CS_RBX] = 0;
  box_frame[3] = boxes[0];
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  assert_int_equal(__builtin_popcountll(site->places), 1);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  box_frame[3] = 0;
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static void a_place_that_has_had_none_stays_out(void **state) {
  (void)state;
  uint64_t boxes[2], other;
  fake_chain(&heap, boxes, 2);
  other = fake_object(&heap, fake_class_of(boxes[0]));
  struct cs_await_site *site = enter(boxes[0]);
  box_frame[0] = boxes[0];
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  assert_int_equal(__builtin_popcountll(site->places), 2);
  box_frame[2] = other;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  box_frame[0] = other;
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

// A word on the stack itself may look like a box.
static void the_stack_has_no_objects(void **state) {
  (void)state;
  uint64_t boxes[2];
  fake_chain(&heap, boxes, 2);
  struct cs_await_site *site = enter(boxes[0]);
  stack_words[50] = fake_class_of(boxes[0]);
  regs.r[CS_RBX] = addr(&stack_words[50]);
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  site->places = 1;
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

// What the frame has saved belongs to its caller, and so does a register that it has not saved.
static void a_callers_value_is_not_the_box(void **state) {
  (void)state;
  uint64_t boxes[2];
  fake_chain(&heap, boxes, 2);
  enter(boxes[0]);
  regs.r[CS_RBX] = 0;
  box_frame[4] = boxes[0];  // where rbx is saved
  regs.r[CS_R12] = boxes[0];
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static void a_register_that_is_not_known_is_not_looked_at(void **state) {
  (void)state;
  uint64_t boxes[2];
  fake_chain(&heap, boxes, 2);
  struct cs_await_site *site = enter(boxes[0]);
  regs.known &= ~CS_REG_BIT(CS_RBX);
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  site->places = 1;  // only rbx
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static void shared_code_goes_by_the_canonical_class(void **state) {
  (void)state;
  uint64_t boxes[2], canonical = fake_class(&heap, heap.task_class);
  boxes[0] = fake_object(&heap, fake_instantiation(&heap, heap.task_class, canonical));
  boxes[1] = fake_object(&heap, fake_box_class(&heap));
  fake_know(&heap, fake_class_of(boxes[0]), FAKE_CONTINUATION, CS_AWAIT_BOX);
  fake_set(boxes[0], FAKE_CONTINUATION, boxes[1]);
  enter(boxes[0])->class = canonical;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  // Neither another class's canonical table nor a word that is not a method table will do.
  fake_set(fake_class_of(boxes[0]), FAKE_CANONICAL, fake_class(&heap, heap.task_class) | 1);
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  fake_set(fake_class_of(boxes[0]), FAKE_CANONICAL, canonical);
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static unsigned guarded_reads;

static bool counted_read(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  guarded_reads++;
  return torn_read(mem, address, dst, len);
}

// Returns how many guarded reads it takes to find the chain.
static unsigned find_and_count(const uint64_t *objects, uint32_t count) {
  guarded_reads = 0;
  find_and_check(CS_AWAITS_COMPLETE, objects, count);
  return guarded_reads;
}

static void a_place_that_has_had_none_is_not_read(void **state) {
  (void)state;
  uint64_t boxes[2], others[2];
  fake_chain(&heap, boxes, 2);
  fake_chain(&heap, others, 2);
  read_by_hand(0);
  clr.world.mem.read_guarded = counted_read;
  enter(boxes[0]);
  box_frame[0] = others[0];
  box_frame[2] = others[1];
  unsigned first = find_and_count(boxes, 2);
  assert_int_equal(find_and_count(boxes, 2), first - 2);
}

// What is known of the class of the last box at this place is not read again.
static void a_class_that_was_found_here_before_will_do(void **state) {
  (void)state;
  uint64_t boxes[2], canonical = fake_class(&heap, heap.task_class);
  boxes[0] = fake_object(&heap, fake_instantiation(&heap, heap.task_class, canonical));
  boxes[1] = fake_object(&heap, fake_box_class(&heap));
  fake_know(&heap, fake_class_of(boxes[0]), FAKE_CONTINUATION, CS_AWAIT_BOX);
  fake_set(boxes[0], FAKE_CONTINUATION, boxes[1]);
  read_by_hand(0);
  clr.world.mem.read_guarded = counted_read;
  struct cs_await_site *site = enter(boxes[0]);
  site->class = canonical;
  unsigned first = find_and_count(boxes, 2);
  site->last_class = fake_class_of(boxes[0]);
  assert_int_equal(find_and_count(boxes, 2), first - 1);
  // With several values, each is still read: two may be of the class.
  site->places = CS_AWAIT_PLACES;
  box_frame[1] = fake_object(&heap, fake_instantiation(&heap, heap.task_class, canonical));
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  // Another class is read, too.
  box_frame[1] = 0;
  site->last_class = fake_class_of(boxes[1]);
  assert_int_equal(find_and_count(boxes, 2), first);
}

static void a_class_that_is_derived_from_the_boxs_will_do(void **state) {
  (void)state;
  uint64_t boxes[2], canonical = fake_class(&heap, heap.task_class), own = fake_box_class(&heap);
  for (int shared = 0; shared <= 1; shared++) {
    uint64_t base = shared ? fake_instantiation(&heap, heap.task_class, canonical) : own;
    fake_chain(&heap, boxes, 2);
    fake_set(fake_class_of(boxes[0]), FAKE_PARENT, base);
    enter(boxes[0])->class = shared ? canonical : own;
    find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
    fake_set(fake_class_of(boxes[0]), FAKE_PARENT, fake_class(&heap, base));
    find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  }
}

static void where_a_box_was_inlined_any_task_may_be_it(void **state) {
  (void)state;
  uint64_t boxes[2], promise = fake_object(&heap, fake_class(&heap, heap.task_class));
  fake_chain(&heap, boxes, 2);
  fake_know(&heap, fake_class_of(promise), FAKE_CONTINUATION, CS_AWAIT_LINK);
  enter(boxes[0])->class = CS_AWAIT_ANY_BOX;
  box_frame[0] = promise;
  box_frame[1] = fake_object(&heap, heap.object_class);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  box_frame[2] = fake_object(&heap, fake_class(&heap, fake_class(&heap, heap.task_class)));
  add_site(box_method + AFTER_CALL, CS_AWAIT_ANY_BOX);
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static void a_site_that_is_given_to_another_one_is_left_alone(void **state) {
  (void)state;
  uint64_t boxes[2];
  fake_chain(&heap, boxes, 2);
  struct cs_await_site *site = enter(boxes[0]);
  leaf_frame[LEAF_WORDS - 1] = box_method + AFTER_CALL + 1;  // the stack is not what it was
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  leaf_frame[LEAF_WORDS - 1] = box_method + AFTER_CALL;
  site->ip = 0;
  find_and_check(CS_AWAITS_NONE, NULL, 0);
}

// ---- Tasks that run ----

// The frame's rbx holds the task; the frame below is the dispatcher's.
static struct cs_await_site *run(uint64_t task) {
  regs.r[CS_RBX] = task;
  add_site(leaf_method + AFTER_CALL, CS_AWAIT_DISPATCHES);
  return add_site(box_method + AFTER_CALL, CS_AWAIT_TASK_RUNS);
}

static void a_task_that_runs_leads_to_who_awaits_it(void **state) {
  (void)state;
  uint64_t boxes[2], task = fake_object(&heap, fake_class(&heap, heap.task_class));
  fake_chain(&heap, boxes, 2);
  fake_set(task, FAKE_CONTINUATION, boxes[0]);
  run(task);
  box_frame[0] = fake_object(&heap, fake_class(&heap, heap.object_class));
  // The chain is the same whatever is known of the task's class.
  for (enum cs_await_kind kind = CS_AWAIT_END; kind <= CS_AWAIT_LINK; kind++) {
    struct cs_await_chain chain = find();
    assert_int_equal(chain.state, CS_AWAITS_COMPLETE);
    assert_int_equal(chain.count, 3);
    assert_int_equal(chain.at, 1);
    assert_int_equal(chain.words[0], fake_class_of(task) | CS_AWAIT_WORD_RUNS);
    for (int i = 0; i < 2; i++) assert_int_equal(chain.words[i + 1], fake_class_of(boxes[i]));
    fake_know(&heap, fake_class_of(task), FAKE_CONTINUATION, kind);
  }
}

static void two_tasks_in_its_frame_are_ambiguous(void **state) {
  (void)state;
  uint64_t task = fake_object(&heap, fake_class(&heap, heap.task_class));
  run(task);
  box_frame[1] = fake_object(&heap, heap.task_class);
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  // No object is taken for a Task while the class Task is unknown.
  heap.awaits.task = 0;
  box_frame[1] = 0;
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static void a_task_that_was_run_on_the_spot_does_not_count(void **state) {
  (void)state;
  uint64_t boxes[2], task = fake_object(&heap, fake_class(&heap, heap.task_class));
  fake_chain(&heap, boxes, 2);
  run(task);
  add_site(leaf_method + AFTER_CALL, 0)->ip = 0;
  find_and_check(CS_AWAITS_NONE, NULL, 0);
  // A box below the Task does count, and so does a box above both.
  add_site(leaf_method + AFTER_CALL, fake_class_of(boxes[0]));
  struct cs_await_chain chain = find();
  assert_int_equal(chain.at, 2);
  run(boxes[0]);
  add_site(box_method + AFTER_CALL, fake_class_of(boxes[0]));
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
}

static void a_dispatcher_far_below_has_not_run_it(void **state) {
  (void)state;
  uint64_t between = CS_FRAME_WORD(leaf_method + AFTER_CALL + 4, CS_CODE_JIT, false);
  uint64_t frames[3 + CS_AWAIT_DISPATCH_FRAMES] = {
      CS_FRAME_WORD(leaf_method + AFTER_CALL, CS_CODE_JIT, true),
      CS_FRAME_WORD(box_method + AFTER_CALL, CS_CODE_JIT, false)};
  uint64_t dispatcher = CS_FRAME_WORD(leaf_method + AFTER_CALL, CS_CODE_R2R, false);
  run(fake_object(&heap, heap.task_class));
  for (uint32_t i = 2; i < CS_COUNT(frames); i++) {
    for (uint32_t k = 2; k < i; k++) frames[k] = between;
    frames[i] = dispatcher;
    struct cs_await_chain chain = find_in(frames, i + 1);
    assert_int_equal(chain.state, i < CS_COUNT(frames) - 1 ? CS_AWAITS_COMPLETE : CS_AWAITS_NONE);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_chain_is_followed_to_who_is_awaited_by_nobody),
      TEST(without_a_box_on_the_stack_nothing_is_looked_for),
      TEST(what_was_read_while_objects_moved_is_thrown_away),
      TEST(a_copy_that_is_older_than_a_stop_is_not_believed),
      TEST(whether_it_stood_still_at_the_beginning_is_told_by_a_thread_that_runs),
      TEST(or_by_one_that_allocates),
      TEST(a_value_that_is_another_classs_is_not_the_box),
      TEST(two_boxes_of_the_class_are_ambiguous),
      TEST(a_box_in_a_slot_is_found),
      TEST(a_place_that_has_had_none_stays_out),
      TEST(the_stack_has_no_objects),
      TEST(a_callers_value_is_not_the_box),
      TEST(a_register_that_is_not_known_is_not_looked_at),
      TEST(shared_code_goes_by_the_canonical_class),
      TEST(a_place_that_has_had_none_is_not_read),
      TEST(a_class_that_was_found_here_before_will_do),
      TEST(a_class_that_is_derived_from_the_boxs_will_do),
      TEST(where_a_box_was_inlined_any_task_may_be_it),
      TEST(a_site_that_is_given_to_another_one_is_left_alone),
      TEST(a_task_that_runs_leads_to_who_awaits_it),
      TEST(two_tasks_in_its_frame_are_ambiguous),
      TEST(a_task_that_was_run_on_the_spot_does_not_count),
      TEST(a_dispatcher_far_below_has_not_run_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
