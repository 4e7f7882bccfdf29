// SPDX-License-Identifier: MIT
// Chains of awaits: how objects that lead to each other become chains (async/graph.c), how equal
// ones are merged and printed (async/tree.c), and where a state machine's code takes a state
// (async/names.c).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async/async.h"

// ---- Objects of a test: a class from 'A' on is a method, one from 'a' on a Task ----

enum { MOST = 4096 };
static struct cs_async_object objects[MOST];
static struct cs_async_edge edges[MOST];
static struct cs_async_scan scan;

static void begin(void) {
  memset(objects, 0, sizeof objects);
  scan = (struct cs_async_scan){.objects = objects, .edges = edges};
}

static uint32_t put(char class, uint32_t next) {
  uint32_t i = (uint32_t)scan.count++;
  objects[i] = (struct cs_async_object){.address = 0x1000 + 0x40ull * i,
                                        .class = (uint32_t) class,
                                        .next = next,
                                        .has_state = class <= 'Z'};
  return i;
}
static void lead(uint32_t to, uint32_t from) {
  edges[scan.edge_count++] = (struct cs_async_edge){to, from};
}

static uint32_t name_it(void *data, const struct cs_async_object *object, const char *note) {
  char name[2] = {(char)object->class, '\0'};
  const char *module = object->class == 'F'   ? "/fw/System.F.dll"
                       : object->class <= 'Z' ? "/own.dll"
                                              : "";
  return cs_async_step(data, &(struct cs_async_step){.name = name, .note = note, .module = module});
}
static uint32_t name_task(void *data, const struct cs_async_object *object) {
  return name_it(data, object, "");
}
static uint32_t name_leaf(void *data, const struct cs_async_object *object) {
  (void)object;
  return cs_async_step(data, &(struct cs_async_step){.name = "[leaf]"});
}
static uint32_t name_thread(void *data) {
  return cs_async_step(data, &(struct cs_async_step){.name = "[thread]"});
}
static bool is_method(void *data, const struct cs_async_object *object) {
  (void)data;
  return object->class <= 'Z';
}

static struct cs_async async;
static void forget(void) {
  cs_async_tree_free(&async.tree);
  free(async.ends.items);
  cs_map_free(&async.ends.by_place);
  memset(&async, 0, sizeof async);
}

static void merge_at(uint64_t now_ns) {
  const struct cs_async_namer namer = {name_it,     name_task, name_leaf,
                                       name_thread, is_method, &async.tree};
  forget();
  async = (struct cs_async){.pid = 1, .taken_ns = now_ns};
  cs_async_merge(&scan, &namer, &async);
}
static void merge(void) {
  merge_at(0);
}

static void expect(const char *filter, const char *wanted) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  (void)cs_async_print(out, &async.tree, filter);
  assert_int_equal(fclose(out), 0);
  assert_string_equal(text, wanted);
  free(text);
}

static void equal_chains_are_one(void **state) {
  (void)state;
  begin();
  for (int i = 0; i < 300; i++) {
    uint32_t task = put('t', CS_ASYNC_NO_OBJECT);
    (void)put('A', put('B', task));
    if (i < 7) (void)put('C', put('t', CS_ASYNC_NO_OBJECT));
  }
  merge();
  expect("", "   300 x A > B > t\n     7 x C > t\n");
  expect("C", "     7 x C > t\n");
  expect("D", "");
  assert_int_equal(async.suspended, 607);
  assert_int_equal(async.operations, 307);
}

static void chains_fork_where_they_differ(void **state) {
  (void)state;
  begin();
  for (int i = 0; i < 5; i++) (void)put('A', put('B', put(i < 2 ? 't' : 'u', CS_ASYNC_NO_OBJECT)));
  merge();
  expect("", "     5 x A > B\n         3 x u\n         2 x t\n");
  expect("t", "     5 x A > B\n         3 x u\n         2 x t\n");
}

static void a_task_waits_for_several(void **state) {
  (void)state;
  begin();
  uint32_t all = put('w', CS_ASYNC_NO_OBJECT);
  (void)put('A', all);
  for (int i = 0; i < 3; i++) {
    uint32_t branch = put('B', put('t', CS_ASYNC_NO_OBJECT));
    lead(all, branch);
    lead(all, branch);  // the same fact twice is one
  }
  merge();
  expect("", "     1 x A > w\n         3 x B > t\n");
}

static void what_is_shared_is_one_object(void **state) {
  (void)state;
  begin();
  uint32_t shared = put('B', put('t', CS_ASYNC_NO_OBJECT));
  for (int i = 0; i < 4; i++) (void)put('A', shared);
  merge();
  expect("", "     4 x A > B [one and the same] > t [one and the same]\n");
  assert_int_equal(async.suspended, 5);
}

static void circles_come_first(void **state) {
  (void)state;
  begin();
  for (int i = 0; i < 9; i++) (void)put('A', put('t', CS_ASYNC_NO_OBJECT));
  // Entered at either end, both are the same circle.
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t first = put(i == 0 ? 'Q' : 'P', CS_ASYNC_NO_OBJECT);
    objects[first].next = put(i == 0 ? 'P' : 'Q', first);
  }
  // One that leads into a circle, which a Task is part of.
  uint32_t all = put('w', CS_ASYNC_NO_OBJECT), inner = put('R', all);
  lead(all, inner);
  (void)put('Z', inner);
  merge();
  expect("",
         "     2 x P > Q > P [again: they wait for each other]\n"
         "     1 x Z > R > w > R [again: they wait for each other]\n"
         "     9 x A > t\n");
}

// ---- Labels ----

static struct cs_label labels[CS_ASYNC_LABELS + 4];
// Two of one request, without and with its endpoint; one of another request; and one of a trace's
// other request in this process.
enum { EARLY = CS_ASYNC_LABELS, LATE, OTHER, TWIN };

static void begin_labels(void) {
  begin();
  memset(labels, 0, sizeof labels);
  labels[EARLY] = (struct cs_label){.trace = {1}, .span = {1}, .endpoint = 7ull << 32};
  labels[LATE] = (struct cs_label){.trace = {1}, .span = {2}, .endpoint = 7ull << 32 | 5};
  labels[OTHER] = (struct cs_label){.trace = {2}, .span = {1}, .endpoint = 8ull << 32 | 6};
  labels[TWIN] = (struct cs_label){.trace = {1}, .span = {3}, .endpoint = 9ull << 32 | 6};
  scan.labels = (struct cs_async_labels){.items = labels, .count = CS_COUNT(labels)};
}

// Of the operations that end at steps of that name and have that label.
static double operations(const char *step, uint32_t label) {
  double sum = 0;
  for (size_t i = 0; i < async.ends.count; i++) {
    const struct cs_async_end *end = &async.ends.items[i];
    const struct cs_async_tree *tree = &async.tree;
    if (end->label == label && strcmp(tree->steps[tree->nodes[end->node].step].name, step) == 0)
      sum += end->operations;
  }
  return sum;
}

static uint32_t put_labelled(char class, uint32_t label, uint32_t next) {
  uint32_t i = put(class, next);
  objects[i].label = label;
  return i;
}

// A server's own method, the request's before and after its endpoint was found, and what awaits.
static void an_operation_has_its_requests_label(void **state) {
  (void)state;
  begin_labels();
  uint32_t inner = put_labelled('C', LATE, put('t', CS_ASYNC_NO_OBJECT));
  (void)put_labelled('A', CS_ASYNC_NO_ACTIVITY, put_labelled('B', EARLY, inner));
  merge();
  assert_int_equal(async.ends.count, 1);
  assert_true(operations("t", LATE) == 1);
}

// What requests await together has the label of the one that began it.
static void a_shared_task_is_each_requests_own(void **state) {
  (void)state;
  static const uint32_t of[] = {LATE, OTHER, TWIN, CS_ASYNC_NO_LABEL, CS_ASYNC_CONTEXT_UNREAD};
  begin_labels();
  uint32_t shared = put_labelled('S', LATE, put('t', CS_ASYNC_NO_OBJECT));
  for (size_t i = 0; i < CS_COUNT(of); i++) (void)put_labelled('A', of[i], shared);
  merge();
  for (size_t i = 0; i < CS_COUNT(of); i++) assert_true(operations("t", of[i]) == 1);
}

// An operation is there once, however many things it awaits, and each of them has its own label
// where the operation has none.
static void an_operation_is_divided(void **state) {
  (void)state;
  begin_labels();
  uint32_t all = put('w', CS_ASYNC_NO_OBJECT);
  (void)put('A', all);
  lead(all, put_labelled('B', LATE, put('t', CS_ASYNC_NO_OBJECT)));
  lead(all, put_labelled('B', OTHER, put('t', CS_ASYNC_NO_OBJECT)));
  uint32_t more = put('w', CS_ASYNC_NO_OBJECT);
  lead(all, more);
  lead(all, put('u', CS_ASYNC_NO_OBJECT));
  lead(more, put_labelled('C', LATE, put('t', CS_ASYNC_NO_OBJECT)));
  lead(more, put('D', put('v', CS_ASYNC_NO_OBJECT)));
  merge();
  assert_true(operations("t", LATE) == 0.375);
  assert_true(operations("t", OTHER) == 0.25);
  assert_true(operations("u", CS_ASYNC_NO_ACTIVITY) == 0.25);
  assert_true(operations("v", CS_ASYNC_NO_ACTIVITY) == 0.125);
}

// Those come first of which most have lasted for long, each with its program's own methods; a chain
// has its outermost Activity's time.
static void what_is_old_is_said(void **state) {
  (void)state;
  const uint64_t now = 1000 * (uint64_t)CS_ASYNC_OLD_NS, second = 1000000000;
  begin();
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t inner = put('Q', put(i < 3 ? 't' : 'u', CS_ASYNC_NO_OBJECT));
    objects[inner].began_ns = now;
    uint32_t own = put('P', inner);
    objects[own].began_ns = now - (20 + i) * second;
    (void)put('F', own);  // a framework's
  }
  objects[put('Y', put('t', CS_ASYNC_NO_OBJECT))].began_ns = now - 9 * second;
  merge_at(now);
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  cs_async_print_old(out, &async.tree, "", now);
  cs_async_print_old(out, &async.tree, "Y", now);
  assert_int_equal(fclose(out), 0);
  assert_string_equal(text,
                      "3 Activities (requests) began more than 20 s ago and await: P > Q > t\n"
                      "1 Activity (request) began more than 23 s ago and awaits: P > Q > u\n");
  free(text);
}

// E, which waits for itself by way of a Task, also leads into a circle, and to what is in none: all
// that is one operation, wherever on the heap it begins.
static void a_circle_may_lead_to_more(void **state) {
  (void)state;
  static const char wanted[] =
      "     1 x E > w\n"
      "         1 x A > B > A [again: they wait for each other]\n"
      "         1 x E [again: they wait for each other]\n"
      "         1 x L > t\n";
  for (int i = 0; i < 2; i++) {
    begin();
    uint32_t all = put('w', CS_ASYNC_NO_OBJECT);
    if (i == 0) lead(all, put('E', all));
    uint32_t a = put('A', CS_ASYNC_NO_OBJECT);
    objects[a].next = put('B', a);
    lead(all, a);
    lead(all, put('L', put('t', CS_ASYNC_NO_OBJECT)));
    if (i == 1) lead(all, put('E', all));
    merge();
    expect("", wanted);
    assert_int_equal(async.suspended, 4);
    assert_int_equal(async.operations, 1);
  }
}

static void states_are_told(void **state) {
  (void)state;
  begin();
  uint32_t runs = put('R', CS_ASYNC_NO_OBJECT), yielded = put('Y', CS_ASYNC_NO_OBJECT);
  objects[runs].state = -1;
  objects[yielded].state = -4;
  (void)put('A', runs);
  (void)put('B', yielded);
  objects[put('C', CS_ASYNC_NO_OBJECT)].waited_for = true;
  objects[put('D', CS_ASYNC_NO_OBJECT)].state = -1;  // it runs, and nothing awaits it
  (void)put('t', CS_ASYNC_NO_OBJECT);                // a task that leads to no method
  merge();
  expect("",
         "     1 x A > R [runs]\n"
         "     1 x B > Y [has yielded a value]\n"
         "     1 x [thread] > C > [leaf]\n");
  assert_int_equal(async.suspended, 3);
}

// A ladder of forks that join again has more paths than can be walked.
static void work_is_bounded(void **state) {
  (void)state;
  enum { RUNGS = 60 };
  begin();
  uint32_t last = put('A', put('t', CS_ASYNC_NO_OBJECT));
  for (int i = 0; i < RUNGS; i++) {
    uint32_t left = put('l', CS_ASYNC_NO_OBJECT), right = put('r', CS_ASYNC_NO_OBJECT);
    uint32_t top = put('w', CS_ASYNC_NO_OBJECT);
    lead(left, last);
    lead(right, last);
    lead(top, left);
    lead(top, right);
    last = top;
  }
  (void)put('B', last);
  merge();
  assert_true(async.cut);
  assert_int_equal(async.operations, 1);
  begin();
  last = put('t', CS_ASYNC_NO_OBJECT);
  for (int i = 0; i < 1000; i++) last = put('A', last);
  merge();
  assert_true(async.cut);
  assert_int_equal(async.suspended, 1000);
  // What a chain was cut before is not taken for operations of its own.
  assert_int_equal(async.operations, 1);
  assert_int_equal(async.tree.nodes[async.tree.nodes[0].first_child].count, 1);
}

// The middle of a chain of more than 25 steps is left out.
static void long_chains_are_short_lines(void **state) {
  (void)state;
  for (int methods = 24; methods <= 25; methods++) {
    begin();
    uint32_t last = put('t', CS_ASYNC_NO_OBJECT);
    for (int i = 0; i < methods; i++) last = put((char)('Y' - i), last);
    merge();
    expect("",
           methods == 24
               ? "     1 x B > C > D > E > F > G > H > I > J > K > L > M > N > O > P > Q > R > S "
                 "> T > U > V > W > X > Y > t\n"
               : "     1 x A > B > C > D > E > F > G > H > I > J > K > L > M > N > O > P > Q > R "
                 "> S > T > [2 steps more] > W > X > Y > t\n");
  }
}

static void names_do_no_harm(void **state) {
  (void)state;
  struct cs_async_tree *tree = &async.tree;
  forget();
  const struct cs_async_step step = {.name = "A\x1b[2J", .file = "/src/a.cs", .line = 7};
  uint32_t node = cs_async_add(tree, cs_async_root(tree), cs_async_step(tree, &step), 1);
  (void)cs_async_add(tree, node, cs_async_step(tree, &step), 2);
  cs_async_sort(tree);
  expect("a.cs", "     1 x A\\x1b[2J (a.cs:7) > A\\x1b[2J (a.cs:7)\n");
}

static void a_state_has_one_place(void **state) {
  (void)state;
  // nop; this.state = local = 1; ...; this.state = local = 300; this.state = local = -1
  static const uint8_t code[] = {0x00, 0x02, 0x17, 0x25, 0x0A, 0x7D, 1,    0,    0,    4, 0x2A,
                                 0x02, 0x20, 0x2C, 1,    0,    0,    0x25, 0x0A, 0x7D, 1, 0,
                                 0,    4,    0x02, 0x15, 0x25, 0x0A, 0x7D, 1,    0,    0, 4};
  uint8_t twice[2 * sizeof code];
  uint32_t il = 0;
  assert_true(cs_async_find_state(code, sizeof code, 1, &il));
  assert_int_equal(il, 1);
  assert_true(cs_async_find_state(code, sizeof code, 300, &il));
  assert_int_equal(il, 11);
  assert_false(cs_async_find_state(code, sizeof code, 0, &il));
  assert_false(cs_async_find_state(code, sizeof code, -1, &il));
  assert_false(cs_async_find_state(code, 9, 1, &il));
  memcpy(twice, code, sizeof code);
  memcpy(twice + sizeof code, code, sizeof code);
  assert_false(cs_async_find_state(twice, sizeof twice, 1, &il));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_chains_are_one),
      cmocka_unit_test(chains_fork_where_they_differ),
      cmocka_unit_test(a_task_waits_for_several),
      cmocka_unit_test(what_is_shared_is_one_object),
      cmocka_unit_test(circles_come_first),
      cmocka_unit_test(an_operation_has_its_requests_label),
      cmocka_unit_test(a_shared_task_is_each_requests_own),
      cmocka_unit_test(an_operation_is_divided),
      cmocka_unit_test(what_is_old_is_said),
      cmocka_unit_test(a_circle_may_lead_to_more),
      cmocka_unit_test(states_are_told),
      cmocka_unit_test(work_is_bounded),
      cmocka_unit_test(names_do_no_harm),
      cmocka_unit_test(a_state_has_one_place),
      cmocka_unit_test(long_chains_are_short_lines),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  forget();
  return failed;
}
