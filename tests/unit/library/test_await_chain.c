// SPDX-License-Identifier: MIT
// Await chains in a heap made by hand: every way in which one can continue and end; and a heap that
// is torn, is circular, or changes while it is read.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "signal/await_chain.h"
#include "support/fake_heap.h"

static struct fake_heap heap;
static struct cs_mem self, by_hand;
static struct cs_await_reader reader;
static uint64_t first;

static uint64_t torn;     // a word that cannot be read
static uint64_t watched;  // on_watched() is called at its nth read
static int reads_until;
static void (*on_watched)(void);

static bool read_by_hand_of(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  (void)mem;
  if (address == torn) return false;
  if (address == watched && --reads_until == 0) on_watched();
  memcpy(dst, (const void *)(uintptr_t)address, len);
  return true;
}

static void read_by_hand(uint64_t torn_word) {
  by_hand.read = read_by_hand_of;
  reader.mem = &by_hand;
  torn = torn_word;
}

static void when_read(uint64_t word, int nth, void (*what)(void)) {
  read_by_hand(0);
  watched = word;
  reads_until = nth;
  on_watched = what;
}

static int setup(void **state) {
  (void)state;
  fake_heap_init(&heap);
  cs_mem_init_self(&self);
  reader = (struct cs_await_reader){&self, false};
  torn = watched = 0;
  return 0;
}

static struct cs_await_chain find(void) {
  struct cs_await_chain chain;
  memset(&chain, 0xA5, sizeof chain);
  chain.state = cs_await_follow(&heap.awaits, &reader, first, false, &chain);
  return chain;
}

static void find_and_check(enum cs_await_state want, const uint64_t *objects, uint32_t count) {
  struct cs_await_chain chain = find();
  fake_check_chain(&chain, want, objects, count);
}

enum { HOLDER = 8, CALLS = 16, STATE = 24, COMPLETED = 35 };

// A box that is awaited by `awaiter` through a source, which is in the box or is an object of its
// own.
struct source {
  uint64_t box, at, delegate, target;
};

static void set_source(struct source *s, uint64_t awaiter) {
  fake_set(s->at, CALLS, awaiter != 0 ? s->delegate : 0);
  fake_set(s->at, STATE, awaiter);
  fake_set(s->at, COMPLETED, 0xFFFFFFFF00FFFFFFull);  // all bits but those of that byte
}

static void know_source(uint64_t class, uint32_t holder) {
  union {
    struct cs_await_source source;
    uint64_t word;
  } at = {.source = {(uint16_t)holder, CALLS, STATE, COMPLETED}};
  heap.awaits.sources[fake_know(&heap, class, 0, CS_AWAIT_SOURCE)] = at.word;
}

static struct source make_source(bool held, uint64_t awaiter) {
  struct source s = {.target = fake_object(&heap, fake_class(&heap, heap.object_class))};
  s.box = fake_object(&heap, fake_class(&heap, held ? heap.task_class : heap.object_class));
  s.at = held ? fake_object(&heap, fake_class(&heap, heap.object_class)) : s.box;
  s.delegate = fake_object(&heap, fake_class(&heap, heap.object_class));
  fake_set(s.delegate, FAKE_TARGET, s.target);
  if (held) fake_set(s.box, HOLDER, s.at);
  know_source(fake_class_of(s.box), held ? HOLDER : 0);
  fake_know(&heap, fake_class_of(s.target), 0, CS_AWAIT_RESUMER);
  set_source(&s, awaiter);
  return s;
}

// ---- Tasks ----

static void what_is_nobody_is_passed_over(void **state) {
  (void)state;
  uint64_t boxes[2], delegate = fake_object(&heap, fake_class(&heap, heap.object_class));
  uint64_t promise = fake_object(&heap, fake_class(&heap, heap.task_class));
  fake_chain(&heap, boxes, 2);
  fake_know(&heap, fake_class_of(delegate), FAKE_MEMBER, CS_AWAIT_LINK);
  fake_know(&heap, fake_class_of(promise), FAKE_CONTINUATION, CS_AWAIT_LINK);
  fake_set(boxes[0], FAKE_CONTINUATION, delegate);
  fake_set(delegate, FAKE_MEMBER, promise);
  fake_set(promise, FAKE_CONTINUATION, boxes[1]);
  first = boxes[0];
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
}

static void what_leads_nowhere_ends_it(void **state) {
  (void)state;
  uint64_t boxes[2], end = fake_object(&heap, fake_class(&heap, heap.object_class));
  fake_chain(&heap, boxes, 2);
  fake_know(&heap, fake_class_of(end), 0, CS_AWAIT_END);
  fake_set(boxes[1], FAKE_CONTINUATION, end);
  fake_set(end, FAKE_MEMBER, boxes[0]);
  first = boxes[0];
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
}

enum { ITEMS = 8, SIZE = 20, ELEMENTS = 16 };

static uint64_t make_list(uint32_t size) {
  union {
    struct cs_await_source list;
    uint64_t word;
  } at = {.list = {.holder = ITEMS, .state = SIZE}};
  uint64_t list = fake_object(&heap, fake_class(&heap, heap.object_class));
  uint64_t array = fake_object(&heap, fake_class(&heap, heap.object_class));
  fake_set(list, ITEMS, array);
  fake_set(list, SIZE, (uint64_t)size << 32 | 0xFFFFFFFF);
  heap.awaits.elements = ELEMENTS;
  heap.awaits.sources[fake_know(&heap, fake_class_of(list), 0, CS_AWAIT_LIST)] = at.word;
  return list;
}
static uint64_t array_of(uint64_t list) {
  return *(uint64_t *)(uintptr_t)(list + ITEMS);
}

static void several_awaiters_are_none(void **state) {
  (void)state;
  uint64_t boxes[4], list = make_list(3);
  fake_chain(&heap, boxes, 4);
  fake_set(boxes[1], FAKE_CONTINUATION, list);
  fake_set(array_of(list), ELEMENTS, boxes[2]);
  fake_set(array_of(list), ELEMENTS + 16, boxes[3]);
  first = boxes[0];
  find_and_check(CS_AWAITS_SEVERAL, boxes, 2);
  fake_set(list, SIZE, 17ull << 32);  // more entries than are looked at
  find_and_check(CS_AWAITS_SEVERAL, boxes, 2);
  fake_set(list, SIZE, 1ull << 32);
  heap.awaits.sources[fake_know(&heap, fake_class_of(list), 0, CS_AWAIT_LIST)] = 0;
  find_and_check(CS_AWAITS_SEVERAL, boxes, 2);
}

// A delegate's target may be a list, too, but a list of anything.
static void only_a_tasks_list_is_of_those_who_await(void **state) {
  (void)state;
  uint64_t boxes[3], list = make_list(1), delegate = fake_object(&heap, fake_class(&heap, 0));
  fake_chain(&heap, boxes, 3);
  fake_set(array_of(list), ELEMENTS, boxes[2]);
  first = boxes[0];
  fake_set(boxes[1], FAKE_CONTINUATION, delegate);
  fake_set(delegate, FAKE_MEMBER, list);
  fake_know(&heap, fake_class_of(delegate), FAKE_MEMBER, CS_AWAIT_LINK);
  find_and_check(CS_AWAITS_SEVERAL, boxes, 2);
  fake_know(&heap, fake_class_of(delegate), FAKE_MEMBER, CS_AWAIT_PROMISE);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
  // Nor one in a list, nor what a source calls.
  struct source s = make_source(false, list);
  fake_set(boxes[1], FAKE_CONTINUATION, s.box);
  uint64_t with_source[] = {boxes[0], boxes[1], s.box};
  find_and_check(CS_AWAITS_SEVERAL, with_source, 3);
}

static void who_has_given_up_does_not_count(void **state) {
  (void)state;
  uint64_t boxes[3], list = make_list(3);
  fake_chain(&heap, boxes, 3);
  fake_set(boxes[1], FAKE_CONTINUATION, list);
  first = boxes[0];
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  for (uint32_t i = 0; i < 3; i++) {
    fake_set(array_of(list), ELEMENTS + i * 8, boxes[2]);
    find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
    fake_set(array_of(list), ELEMENTS + i * 8, 0);
  }
  fake_set(array_of(list), ELEMENTS + 24, boxes[2]);  // an unused slot
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  uint64_t words[] = {list + SIZE / 8 * 8, list + ITEMS, array_of(list) + ELEMENTS};
  for (size_t i = 0; i < CS_COUNT(words); i++) {
    read_by_hand(words[i]);
    find_and_check(CS_AWAITS_STOPPED, boxes, 2);
  }
}

static uint64_t changing_list, newcomer;
static void be_awaited_by_another(void) {
  fake_set(array_of(changing_list), ELEMENTS + 8, newcomer);
}

static void a_list_that_changes_meanwhile_is_not_gone_by(void **state) {
  (void)state;
  uint64_t boxes[3];
  changing_list = make_list(2);
  fake_chain(&heap, boxes, 3);
  fake_chain(&heap, &newcomer, 1);
  fake_set(boxes[1], FAKE_CONTINUATION, changing_list);
  fake_set(array_of(changing_list), ELEMENTS, boxes[2]);
  first = boxes[0];
  when_read(boxes[2], 1, be_awaited_by_another);
  find_and_check(CS_AWAITS_STOPPED, NULL, 0);
}

static void a_class_that_is_not_known_is_told(void **state) {
  (void)state;
  uint64_t objects[3];
  fake_chain(&heap, objects, 2);
  objects[2] = fake_object(&heap, fake_class(&heap, heap.object_class));
  fake_set(objects[1], FAKE_CONTINUATION, objects[2]);
  first = objects[0];
  find_and_check(CS_AWAITS_UNKNOWN, objects, 3);
}

static void a_task_is_followed_before_its_class_is_known(void **state) {
  (void)state;
  uint64_t boxes[2],
      task = fake_object(&heap, fake_class(&heap, fake_class(&heap, heap.task_class)));
  fake_chain(&heap, boxes, 2);
  fake_set(boxes[0], FAKE_CONTINUATION, task);
  fake_set(task, FAKE_CONTINUATION, boxes[1]);
  first = boxes[0];
  struct cs_await_chain chain = find();
  assert_int_equal(chain.state, CS_AWAITS_COMPLETE);
  assert_int_equal(chain.count, 3);
  assert_int_equal(chain.words[1], fake_class_of(task) | CS_AWAIT_WORD_NEW);
  // No chain continues through a Task while the class Task itself is unknown.
  heap.awaits.task = 0;
  chain = find();
  assert_int_equal(chain.state, CS_AWAITS_UNKNOWN);
  assert_int_equal(chain.count, 2);
  assert_int_equal(chain.words[1], fake_class_of(task));
}

static void a_long_chain_is_cut(void **state) {
  (void)state;
  uint64_t boxes[CS_AWAITS_MOST + 1],
      unknown = fake_object(&heap, fake_class(&heap, heap.object_class));
  fake_chain(&heap, boxes, CS_AWAITS_MOST + 1);
  first = boxes[0];
  find_and_check(CS_AWAITS_CUT, boxes, CS_AWAITS_MOST);
  // The chain has as many objects as fit, then also one of an unknown class, which has room of its
  // own.
  fake_set(boxes[CS_AWAITS_MOST - 1], FAKE_CONTINUATION, 0);
  find_and_check(CS_AWAITS_COMPLETE, boxes, CS_AWAITS_MOST);
  fake_set(boxes[CS_AWAITS_MOST - 1], FAKE_CONTINUATION, unknown);
  boxes[CS_AWAITS_MOST] = unknown;
  find_and_check(CS_AWAITS_UNKNOWN, boxes, CS_AWAITS_MOST + 1);
}

static void a_circle_ends(void **state) {
  (void)state;
  uint64_t boxes[3], wanted[CS_AWAITS_MOST],
      link = fake_object(&heap, fake_class(&heap, heap.object_class));
  fake_chain(&heap, boxes, 3);
  fake_set(boxes[2], FAKE_CONTINUATION, boxes[0]);
  first = boxes[0];
  for (uint32_t i = 0; i < CS_AWAITS_MOST; i++) wanted[i] = boxes[i % 3];
  find_and_check(CS_AWAITS_CUT, wanted, CS_AWAITS_MOST);
  // A link without a box in it.
  fake_know(&heap, fake_class_of(link), FAKE_MEMBER, CS_AWAIT_LINK);
  fake_set(boxes[0], FAKE_CONTINUATION, link);
  fake_set(link, FAKE_MEMBER, link);
  find_and_check(CS_AWAITS_CUT, boxes, 1);
}

// ---- A heap that is not as it should be ----

static void a_torn_heap_has_no_chain_beyond(void **state) {
  (void)state;
  uint64_t boxes[3];
  fake_chain(&heap, boxes, 3);
  first = boxes[0];
  read_by_hand(boxes[1]);  // its class
  find_and_check(CS_AWAITS_STOPPED, boxes, 1);
  read_by_hand(boxes[1] + FAKE_CONTINUATION);
  find_and_check(CS_AWAITS_STOPPED, boxes, 2);
  // Memory that does not exist, read in this process.
  reader.mem = &self;
  reader.guarded = true;
  fake_set(boxes[1], FAKE_CONTINUATION, 0x7FFFFFFFE000);
  find_and_check(CS_AWAITS_STOPPED, boxes, 2);
}

static void a_torn_base_class_is_no_task(void **state) {
  (void)state;
  uint64_t objects[2];
  fake_chain(&heap, objects, 1);
  objects[1] = fake_object(&heap, fake_class(&heap, fake_class(&heap, heap.task_class)));
  fake_set(objects[0], FAKE_CONTINUATION, objects[1]);
  first = objects[0];
  read_by_hand(fake_class_of(objects[1]) + FAKE_PARENT);
  find_and_check(CS_AWAITS_UNKNOWN, objects, 2);
}

// ---- Sources ----

static void a_source_leads_on(void **state) {
  (void)state;
  for (int held = 0; held <= 1; held++) {
    uint64_t boxes[3];
    fake_chain(&heap, boxes + 1, 2);
    struct source s = make_source(held != 0, boxes[1]);
    first = boxes[0] = s.box;
    reader = (struct cs_await_reader){&self, false};
    find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
    reader.guarded = true;
    find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
    // The source as part of a chain.
    fake_chain(&heap, boxes, 1);
    boxes[1] = s.box;
    fake_set(boxes[0], FAKE_CONTINUATION, s.box);
    first = boxes[0];
    set_source(&s, boxes[2]);
    find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
  }
}

static void a_source_that_nobody_awaits_ends_it(void **state) {
  (void)state;
  uint64_t boxes[2];
  fake_chain(&heap, boxes + 1, 1);
  struct source s = make_source(true, boxes[1]);
  first = boxes[0] = s.box;
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  fake_set(s.at, CALLS, 0);  // its state is set first
  find_and_check(CS_AWAITS_COMPLETE, boxes, 1);
  fake_set(s.at, CALLS, s.delegate);
  fake_set(s.at, COMPLETED, 1ull << 24);  // it has made its call already
  find_and_check(CS_AWAITS_COMPLETE, boxes, 1);
  fake_set(s.at, COMPLETED, 0);
  fake_set(s.at, STATE, 0);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 1);
  set_source(&s, boxes[1]);
  fake_set(s.box, HOLDER, 0);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 1);
}

// An object that is called back through a delegate of the program's own does not await.
static void only_what_resumes_leads_to_who_awaits(void **state) {
  (void)state;
  uint64_t boxes[2], other = fake_class(&heap, heap.object_class);
  fake_chain(&heap, boxes + 1, 1);
  struct source s = make_source(false, boxes[1]);
  first = boxes[0] = s.box;
  fake_set(s.target, 0, other);
  uint64_t told[] = {s.box, s.target};
  find_and_check(CS_AWAITS_UNKNOWN, told, 2);
  for (enum cs_await_kind kind = CS_AWAIT_END; kind <= CS_AWAIT_SOURCE; kind++) {
    fake_know(&heap, other, FAKE_MEMBER, kind);
    find_and_check(CS_AWAITS_COMPLETE, boxes, 1);
  }
  fake_know(&heap, other, FAKE_MEMBER, CS_AWAIT_RESUMER);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
  fake_set(s.delegate, FAKE_TARGET, 0);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 1);
  // The delegate's target itself does not await, either.
  fake_set(boxes[1], FAKE_CONTINUATION, s.target);
  fake_set(s.target, FAKE_MEMBER, boxes[1]);
  fake_set(s.delegate, FAKE_TARGET, s.target);
  find_and_check(CS_AWAITS_COMPLETE, boxes, 2);
}

static void a_torn_source_has_no_chain_beyond(void **state) {
  (void)state;
  uint64_t boxes[2];
  fake_chain(&heap, boxes + 1, 1);
  struct source s = make_source(true, boxes[1]);
  first = boxes[0] = s.box;
  uint64_t words[] = {
      s.box + HOLDER,           s.at + CALLS, s.at + STATE, s.at + COMPLETED / 8 * 8,
      s.delegate + FAKE_TARGET, s.target};
  for (size_t i = 0; i < CS_COUNT(words); i++) {
    read_by_hand(words[i]);
    find_and_check(CS_AWAITS_STOPPED, boxes, 1);
  }
}

// Two pooled boxes; the second is reused by another chain while the first is being read.
static struct source low, high;
static uint64_t mine, others;

static void use_again(void) {
  set_source(&high, others);
  set_source(&low, 0);
}
static void complete_and_use_again(void) {
  use_again();
  set_source(&low, others);
}
static void be_given_to_another(void) {
  set_source(&high, others);
}
static void forget_types(void) {
  uint32_t slot;
  (void)cs_await_type(&heap.awaits, fake_class_of(low.box), &slot);
  heap.awaits.types[slot] = 0;
}
static void be_awaited_by_several(void) {
  fake_know(&heap, fake_class_of(mine), 0, CS_AWAIT_LIST);
}

static void what_is_used_again_meanwhile_is_thrown_away(void **state) {
  (void)state;
  static const struct {
    void (*happens)(void);
    bool late;  // at the second read instead of the first
  } what[] = {{use_again, false},
              {complete_and_use_again, false},
              {be_given_to_another, true},
              {forget_types, false},
              {be_awaited_by_several, true}};
  for (size_t i = 0; i < CS_COUNT(what); i++) {
    uint64_t boxes[3];
    fake_chain(&heap, &mine, 1);
    fake_chain(&heap, &others, 1);
    high = make_source(false, mine);
    low = make_source(false, high.box);
    first = boxes[0] = low.box;
    boxes[1] = high.box;
    boxes[2] = mine;
    find_and_check(CS_AWAITS_COMPLETE, boxes, 3);
    // The event comes between the two boxes: what is read next is another chain's awaiter, so that
    // the chain as it was read never existed.
    when_read(high.box + CALLS, what[i].late ? 2 : 1, what[i].happens);
    find_and_check(CS_AWAITS_STOPPED, NULL, 0);
    reader.mem = &self;
  }
}

static void sources_go_round_in_circles_no_longer_than_others(void **state) {
  (void)state;
  struct cs_await_chain chain;
  low = make_source(false, 0);
  set_source(&low, low.box);
  first = low.box;
  chain = find();
  assert_int_equal(chain.state, CS_AWAITS_CUT);
  assert_int_equal(chain.count, CS_AWAITS_MOST);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, setup)
  const struct CMUnitTest tests[] = {
      TEST(what_is_nobody_is_passed_over),
      TEST(what_leads_nowhere_ends_it),
      TEST(several_awaiters_are_none),
      TEST(only_a_tasks_list_is_of_those_who_await),
      TEST(who_has_given_up_does_not_count),
      TEST(a_list_that_changes_meanwhile_is_not_gone_by),
      TEST(a_class_that_is_not_known_is_told),
      TEST(a_task_is_followed_before_its_class_is_known),
      TEST(a_long_chain_is_cut),
      TEST(a_circle_ends),
      TEST(a_torn_heap_has_no_chain_beyond),
      TEST(a_torn_base_class_is_no_task),
      TEST(a_source_leads_on),
      TEST(a_source_that_nobody_awaits_ends_it),
      TEST(only_what_resumes_leads_to_who_awaits),
      TEST(a_torn_source_has_no_chain_beyond),
      TEST(what_is_used_again_meanwhile_is_thrown_away),
      TEST(sources_go_round_in_circles_no_longer_than_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
