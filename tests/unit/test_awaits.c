// SPDX-License-Identifier: MIT
// Who awaits, read from a heap that is made by hand: objects are arrays of words, their first one a
// method table that is as made up. Every way that a chain can end, and what may stand in the frame
// of a box beside the box; a heap that is torn, moves meanwhile, or goes round in circles. The
// stack is walked for real, over code of three methods.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "signal/awaits.h"
#include "signal/sample.h"
#include "support/fake_clr.h"
#include "unwind/sites.h"

enum {
  AFTER_CALL = 16,
  PARENT = 16,        // in a method table
  CANONICAL = 24,     // the same
  CONTINUATION = 16,  // in a Task
  MEMBER = 24,        // in an object of another class that leads on
  LEAF_WORDS = 5,     // its frame: 4 slots and the return address
  BOX_WORDS = 6,      // 4 slots, rbx, the return address
  HEAP_WORDS = 1 << 12,
};

static struct fake_clr clr;
static struct cs_sites sites;
static struct cs_awaits awaits;
static struct cs_thread thread;
static uint64_t leaf_method, box_method, heap[HEAP_WORDS], clr_thread[4];
static uint32_t heap_used;
static uint64_t stack_words[64];
static uint64_t *const leaf_frame = stack_words + 8, *const box_frame = leaf_frame + LEAF_WORDS;
static struct cs_regs regs;
static uint64_t object_class, task_class;  // method tables

// ---- The heap ----

static uint64_t addr(const void *p) {
  return (uint64_t)(uintptr_t)p;
}
static uint64_t *at(uint64_t address) {
  return (uint64_t *)(uintptr_t)address;
}

static uint64_t alloc(uint32_t words) {
  uint64_t *object = &heap[heap_used];
  heap_used += words;
  assert_true(heap_used <= HEAP_WORDS);
  return addr(object);
}

static uint64_t make_class(uint64_t parent) {
  uint64_t class = alloc(8);
  at(class)[PARENT / 8] = parent;
  return class;
}

// One that is shared code's: its canonical class is another one.
static uint64_t make_instantiation(uint64_t parent, uint64_t canonical) {
  uint64_t class = make_class(parent);
  at(class)[CANONICAL / 8] = canonical | 1;
  return class;
}

static uint64_t make_object(uint64_t class) {
  uint64_t object = alloc(8);
  at(object)[0] = class;
  return object;
}

static void lead(uint64_t from, uint32_t offset, uint64_t to) {
  at(from)[offset / 8] = to;
}

static void know(uint64_t class, uint32_t offset, enum cs_await_kind kind) {
  uint32_t i = cs_await_slot(class, CS_AWAIT_TYPES);
  while (awaits.types[i] != 0 && CS_AWAIT_TYPE_CLASS(awaits.types[i]) != class)
    i = (i + 1) & (CS_AWAIT_TYPES - 1);
  awaits.types[i] = CS_AWAIT_TYPE(class, offset, kind);
}

static uint64_t make_box_class(void) {
  uint64_t class = make_class(task_class);
  know(class, CONTINUATION, CS_AWAIT_BOX);
  return class;
}

// `count` boxes of classes of their own, each awaited by the next one.
static void make_chain(uint64_t *objects, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) objects[i] = make_object(make_box_class());
  for (uint32_t i = 0; i + 1 < count; i++) lead(objects[i], CONTINUATION, objects[i + 1]);
}

static uint64_t class_of(uint64_t object) {
  return *at(object);
}

// ---- The stack, and memory that can be torn ----

static struct cs_await_site *add_site(uint64_t ip, uint64_t class) {
  uint32_t i = cs_await_slot(ip, CS_AWAIT_SITES);
  while (awaits.sites[i].ip != 0 && awaits.sites[i].ip != ip) i = (i + 1) & (CS_AWAIT_SITES - 1);
  awaits.sites[i] = (struct cs_await_site){ip, class, CS_AWAIT_PLACES};
  return &awaits.sites[i];
}

static int setup(void **state) {
  (void)state;
  static uint8_t code[64];
  static const uint8_t leaf_info[] = {1, 4, 1, 0, 4, 0x32, 0, 0};    // sub rsp, 0x20
  static const uint8_t box_info[] = {1, 5, 2, 0, 5, 0x32, 1, 0x30};  // push rbx; sub rsp, 0x20
  memset(code, 0x90, sizeof code);
  code[AFTER_CALL - 5] = 0xE8;
  memset(heap, 0, sizeof heap);
  memset(stack_words, 0, sizeof stack_words);
  memset(&awaits, 0, sizeof awaits);
  memset(&sites, 0, sizeof sites);
  memset(&thread, 0, sizeof thread);
  heap_used = 0;
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
  object_class = make_class(0);
  task_class = make_class(object_class);
  awaits.parent = PARENT;
  awaits.canonical = CANONICAL;
  awaits.continuation = CONTINUATION;
  awaits.task = task_class;
  return 0;
}
static int teardown(void **state) {
  (void)state;
  fake_clr_free(&clr);
  return 0;
}

static uint64_t torn;  // a word that cannot be read
static uint64_t watched;
static void (*on_watched)(void);

static bool torn_read(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  (void)mem;
  if (address == torn) return false;
  if (address == watched && on_watched != NULL) on_watched();
  memcpy(dst, at(address), len);
  return true;
}

static void read_by_hand(uint64_t torn_word) {
  clr.world.mem.read = torn_read;
  torn = torn_word;
  watched = 0;
}

static struct cs_await_chain find(void) {
  uint64_t frames[] = {CS_FRAME_WORD(leaf_method + AFTER_CALL, CS_CODE_JIT, true),
                       CS_FRAME_WORD(box_method + AFTER_CALL, CS_CODE_JIT, false),
                       CS_FRAME_WORD(leaf_method + AFTER_CALL, CS_CODE_JIT, false)};
  struct cs_sampled from = {
      .world = &clr.world, .thread = &thread, .regs = &regs, .stack = &thread.stack};
  struct cs_await_chain chain;
  memset(&chain, 0xA5, sizeof chain);
  cs_awaits_find(&awaits, &from, frames, CS_COUNT(frames), &chain);
  return chain;
}

static void check(const struct cs_await_chain *chain, enum cs_await_state want,
                  const uint64_t *objects, uint32_t count) {
  assert_int_equal(chain->state, want);
  assert_int_equal(chain->count, count);
  for (uint32_t i = 0; i < count; i++)
    if (chain->words[i] != class_of(objects[i])) fail_msg("awaiter %u is another one", i);
}

static void find_and_check(enum cs_await_state want, const uint64_t *objects, uint32_t count) {
  struct cs_await_chain chain = find();
  check(&chain, want, objects, count);
}

// The chain of a box that the frame has in its rbx.
static struct cs_await_site *enter(uint64_t box) {
  regs.r[CS_RBX] = box;
  return add_site(box_method + AFTER_CALL, class_of(box));
}

// ---- Chains ----

static void a_chain_is_followed_to_who_is_awaited_by_nobody(void **state) {
  (void)state;
  uint64_t boxes[5];
  make_chain(boxes, 5);
  enter(boxes[0]);
  struct cs_await_chain chain = find();
  check(&chain, CS_AWAITS_COMPLETE, boxes, 5);
  assert_int_equal(chain.at, 1);
  // A thread that a collection does not wait for reads with care, and the same.
  clr_thread[0] = 0;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 5);
  read_by_hand(0);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 5);
}

static void without_a_box_on_the_stack_nothing_is_looked_for(void **state) {
  (void)state;
  uint64_t boxes[2];
  make_chain(boxes, 2);
  regs.r[CS_RBX] = boxes[0];
  find_and_check(CS_AWAITS_NONE, NULL, 0);
  // The leaf's own ip is no return address.
  add_site(leaf_method + AFTER_CALL + 1, class_of(boxes[0]));
  find_and_check(CS_AWAITS_NONE, NULL, 0);
  enter(boxes[0]);
  clr.world.mem.guard_works = false;
  find_and_check(CS_AWAITS_NONE, NULL, 0);
}

static void what_is_nobody_is_passed_over(void **state) {
  (void)state;
  uint64_t boxes[2], delegate = make_object(make_class(object_class));
  uint64_t promise = make_object(make_class(task_class));
  make_chain(boxes, 2);
  know(class_of(delegate), MEMBER, CS_AWAIT_LINK);
  know(class_of(promise), CONTINUATION, CS_AWAIT_LINK);
  lead(boxes[0], CONTINUATION, delegate);
  lead(delegate, MEMBER, promise);
  lead(promise, CONTINUATION, boxes[1]);
  enter(boxes[0]);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
}

static void what_leads_nowhere_ends_it(void **state) {
  (void)state;
  uint64_t boxes[2], end = make_object(make_class(object_class));
  make_chain(boxes, 2);
  know(class_of(end), 0, CS_AWAIT_END);
  lead(boxes[1], CONTINUATION, end);
  lead(end, MEMBER, boxes[0]);
  enter(boxes[0]);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
}

static void several_awaiters_are_none(void **state) {
  (void)state;
  uint64_t boxes[2], list = make_object(make_class(object_class));
  make_chain(boxes, 2);
  know(class_of(list), 0, CS_AWAIT_SEVERAL);
  lead(boxes[1], CONTINUATION, list);
  enter(boxes[0]);
  find_and_check(CS_AWAITS_SEVERAL, boxes, 2);
}

static void a_class_that_is_not_known_is_told(void **state) {
  (void)state;
  uint64_t objects[3];
  make_chain(objects, 2);
  objects[2] = make_object(make_class(object_class));
  lead(objects[1], CONTINUATION, objects[2]);
  enter(objects[0]);
  find_and_check(CS_AWAITS_UNKNOWN, objects, 3);
}

static void a_task_is_followed_before_its_class_is_known(void **state) {
  (void)state;
  uint64_t boxes[2], task = make_object(make_class(make_class(task_class)));
  make_chain(boxes, 2);
  lead(boxes[0], CONTINUATION, task);
  lead(task, CONTINUATION, boxes[1]);
  enter(boxes[0]);
  struct cs_await_chain chain = find();
  assert_int_equal(chain.state, CS_AWAITS_COMPLETE);
  assert_int_equal(chain.count, 3);
  assert_int_equal(chain.words[1], class_of(task) | CS_AWAIT_WORD_NEW);
  // Nor does it go by a Task whose own class nobody has told.
  awaits.task = 0;
  chain = find();
  assert_int_equal(chain.state, CS_AWAITS_UNKNOWN);
  assert_int_equal(chain.count, 2);
  assert_int_equal(chain.words[1], class_of(task));
}

static void a_long_chain_is_cut(void **state) {
  (void)state;
  uint64_t boxes[CS_AWAITS_MOST + 1], unknown = make_object(make_class(object_class));
  make_chain(boxes, CS_AWAITS_MOST + 1);
  enter(boxes[0]);
  find_and_check(CS_AWAITS_CUT, boxes, CS_AWAITS_MOST);
  // As many as there is room for, and a class that is not known: that has room of its own.
  lead(boxes[CS_AWAITS_MOST - 1], CONTINUATION, 0);
  find_and_check(CS_AWAITS_COMPLETE, boxes, CS_AWAITS_MOST);
  lead(boxes[CS_AWAITS_MOST - 1], CONTINUATION, unknown);
  boxes[CS_AWAITS_MOST] = unknown;
  find_and_check(CS_AWAITS_UNKNOWN, boxes, CS_AWAITS_MOST + 1);
}

static void a_circle_ends(void **state) {
  (void)state;
  uint64_t boxes[3], wanted[CS_AWAITS_MOST], link = make_object(make_class(object_class));
  make_chain(boxes, 3);
  lead(boxes[2], CONTINUATION, boxes[0]);
  enter(boxes[0]);
  for (uint32_t i = 0; i < CS_AWAITS_MOST; i++) wanted[i] = boxes[i % 3];
  find_and_check(CS_AWAITS_CUT, wanted, CS_AWAITS_MOST);
  // One without a box in it.
  know(class_of(link), MEMBER, CS_AWAIT_LINK);
  lead(boxes[0], CONTINUATION, link);
  lead(link, MEMBER, link);
  find_and_check(CS_AWAITS_CUT, boxes, 1);
}

// ---- A heap that is not as it should be ----

static void a_torn_heap_has_no_chain_beyond(void **state) {
  (void)state;
  uint64_t boxes[3];
  make_chain(boxes, 3);
  enter(boxes[0]);
  read_by_hand(boxes[1]);  // its class
  find_and_check(CS_AWAITS_STOPPED, boxes, 1);
  read_by_hand(boxes[1] + CONTINUATION);
  find_and_check(CS_AWAITS_STOPPED, boxes, 2);
  // Of memory that is not there, in this process itself.
  clr.world.mem.read = NULL;
  clr_thread[0] = 0;
  lead(boxes[1], CONTINUATION, 0x7FFFFFFFE000);
  find_and_check(CS_AWAITS_STOPPED, boxes, 2);
}

static void a_torn_base_class_is_no_task(void **state) {
  (void)state;
  uint64_t objects[2];
  make_chain(objects, 1);
  objects[1] = make_object(make_class(make_class(task_class)));
  lead(objects[0], CONTINUATION, objects[1]);
  enter(objects[0]);
  read_by_hand(class_of(objects[1]) + PARENT);
  find_and_check(CS_AWAITS_UNKNOWN, objects, 2);
}

static void begin_to_stop(void) {
  awaits.stops = 3;
}
static void stop_and_go_on(void) {
  awaits.stops = 4;
}

static void what_was_read_while_objects_moved_is_thrown_away(void **state) {
  (void)state;
  uint64_t boxes[3];
  make_chain(boxes, 3);
  struct cs_await_site *site = enter(boxes[0]);
  awaits.stops = 3;
  find_and_check(CS_AWAITS_STOPPED, NULL, 0);
  void (*const meanwhile[])(void) = {begin_to_stop, stop_and_go_on};
  for (size_t i = 0; i < CS_COUNT(meanwhile); i++) {
    awaits.stops = 2;
    read_by_hand(0);
    watched = boxes[1];
    on_watched = meanwhile[i];
    find_and_check(CS_AWAITS_STOPPED, NULL, 0);
    // Nor is anything learnt from that.
    assert_int_equal(site->places, CS_AWAIT_PLACES);
  }
  on_watched = NULL;
  awaits.stops = 4;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
}

static void whether_it_stood_still_at_the_beginning_is_told_by_a_thread_that_runs(void **state) {
  (void)state;
  uint64_t boxes[2];
  make_chain(boxes, 2);
  enter(boxes[0]);
  awaits.stops = 1;
  clr_thread[0] = 0;
  find_and_check(CS_AWAITS_STOPPED, NULL, 0);
  assert_int_equal(awaits.stops, 1);
  clr_thread[0] = 1ull << 32;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  assert_int_equal(awaits.stops, 2);
}

// ---- Which value of its frame the box is ----

static void a_value_that_is_another_classs_is_not_the_box(void **state) {
  (void)state;
  uint64_t boxes[2], others[2];
  make_chain(boxes, 2);
  make_chain(others, 2);
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
  make_chain(boxes, 3);
  other = make_object(class_of(boxes[0]));
  box_frame[2] = other;
  lead(other, CONTINUATION, boxes[2]);
  enter(boxes[0]);
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  // In two places, but the same.
  box_frame[2] = boxes[0];
  find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
  // Once a sample has shown a place without, what lies there does not count any more.
  box_frame[2] = 0;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
  box_frame[2] = other;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
  // And what is not in its place is nowhere.
  regs.r[CS_RBX] = 0;
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static void a_box_in_a_slot_is_found(void **state) {
  (void)state;
  uint64_t boxes[2];
  make_chain(boxes, 2);
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
  make_chain(boxes, 2);
  other = make_object(class_of(boxes[0]));
  struct cs_await_site *site = enter(boxes[0]);
  box_frame[0] = boxes[0];
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  assert_int_equal(__builtin_popcountll(site->places), 2);
  box_frame[2] = other;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  box_frame[0] = other;
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

// Something on the stack itself may look like a box.
static void the_stack_has_no_objects(void **state) {
  (void)state;
  uint64_t boxes[2];
  make_chain(boxes, 2);
  struct cs_await_site *site = enter(boxes[0]);
  stack_words[50] = class_of(boxes[0]);
  regs.r[CS_RBX] = addr(&stack_words[50]);
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  site->places = 1;
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

// What the frame has saved is its caller's, and so is a register that it has not saved.
static void a_callers_value_is_not_the_box(void **state) {
  (void)state;
  uint64_t boxes[2];
  make_chain(boxes, 2);
  enter(boxes[0]);
  regs.r[CS_RBX] = 0;
  box_frame[4] = boxes[0];  // where rbx is saved
  regs.r[CS_R12] = boxes[0];
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static void a_register_that_is_not_known_is_not_looked_at(void **state) {
  (void)state;
  uint64_t boxes[2];
  make_chain(boxes, 2);
  struct cs_await_site *site = enter(boxes[0]);
  regs.known &= ~CS_REG_BIT(CS_RBX);
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  site->places = 1;  // rbx alone
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static void shared_code_goes_by_the_canonical_class(void **state) {
  (void)state;
  uint64_t boxes[2], canonical = make_class(task_class);
  boxes[0] = make_object(make_instantiation(task_class, canonical));
  boxes[1] = make_object(make_box_class());
  know(class_of(boxes[0]), CONTINUATION, CS_AWAIT_BOX);
  lead(boxes[0], CONTINUATION, boxes[1]);
  enter(boxes[0])->class = canonical;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  // Not by another one's, nor by what is no method table.
  at(class_of(boxes[0]))[CANONICAL / 8] = make_class(task_class) | 1;
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  at(class_of(boxes[0]))[CANONICAL / 8] = canonical;
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static void where_a_box_was_inlined_any_task_may_be_it(void **state) {
  (void)state;
  uint64_t boxes[2], promise = make_object(make_class(task_class));
  make_chain(boxes, 2);
  know(class_of(promise), CONTINUATION, CS_AWAIT_LINK);
  enter(boxes[0])->class = CS_AWAIT_ANY_BOX;
  box_frame[0] = promise;
  box_frame[1] = make_object(object_class);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  box_frame[2] = make_object(make_class(make_class(task_class)));
  add_site(box_method + AFTER_CALL, CS_AWAIT_ANY_BOX);
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
}

static void a_site_that_is_given_to_another_one_is_left_alone(void **state) {
  (void)state;
  uint64_t boxes[2];
  make_chain(boxes, 2);
  struct cs_await_site *site = enter(boxes[0]);
  leaf_frame[LEAF_WORDS - 1] = box_method + AFTER_CALL + 1;  // what is walked is not what was
  find_and_check(CS_AWAITS_AMBIGUOUS, NULL, 0);
  leaf_frame[LEAF_WORDS - 1] = box_method + AFTER_CALL;
  site->ip = 0;
  find_and_check(CS_AWAITS_NONE, NULL, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_chain_is_followed_to_who_is_awaited_by_nobody),
      TEST(without_a_box_on_the_stack_nothing_is_looked_for),
      TEST(what_is_nobody_is_passed_over),
      TEST(what_leads_nowhere_ends_it),
      TEST(several_awaiters_are_none),
      TEST(a_class_that_is_not_known_is_told),
      TEST(a_task_is_followed_before_its_class_is_known),
      TEST(a_long_chain_is_cut),
      TEST(a_circle_ends),
      TEST(a_torn_heap_has_no_chain_beyond),
      TEST(a_torn_base_class_is_no_task),
      TEST(what_was_read_while_objects_moved_is_thrown_away),
      TEST(whether_it_stood_still_at_the_beginning_is_told_by_a_thread_that_runs),
      TEST(a_value_that_is_another_classs_is_not_the_box),
      TEST(two_boxes_of_the_class_are_ambiguous),
      TEST(a_box_in_a_slot_is_found),
      TEST(a_place_that_has_had_none_stays_out),
      TEST(the_stack_has_no_objects),
      TEST(a_callers_value_is_not_the_box),
      TEST(a_register_that_is_not_known_is_not_looked_at),
      TEST(shared_code_goes_by_the_canonical_class),
      TEST(where_a_box_was_inlined_any_task_may_be_it),
      TEST(a_site_that_is_given_to_another_one_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
