// SPDX-License-Identifier: MIT
// Inlined methods: which frames the JIT's two maps place where; and records that are not trees.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "naming/inlined.h"

enum { HOT = 1, MIDDLE = 2, DEEP = 3, OTHER = 4 };
#define LOST CS_WIRE_IL_NO_MAPPING

static struct cs_recording rec;
static uint64_t record[512];
static size_t used;

static void put(const void *data, size_t size) {
  if (size > 0) memcpy((uint8_t *)record + used, data, size);
  used += size;
}

static void send(enum cs_wire_kind kind) {
  struct cs_wire_record head = {(uint32_t)((used + 7) / 8 * 8), (uint16_t)kind, 0};
  memcpy(record, &head, sizeof head);
  cs_recording_add(&rec, (const struct cs_wire_record *)(const void *)record);
}

static void begin(void) {
  memset(record, 0, sizeof record);
  used = sizeof(struct cs_wire_record);
}

static void send_il_map(const struct cs_wire_il_range *ranges, uint32_t count) {
  begin();
  put(&(struct cs_wire_il_map){HOT, count, 0}, sizeof(struct cs_wire_il_map));
  put(ranges, count * sizeof *ranges);
  send(CS_WIRE_IL_MAP);
}

static void send_inlines(const struct cs_wire_inline_node *nodes, uint32_t node_count,
                         const struct cs_wire_inline_mapping *mappings, uint32_t mapping_count) {
  begin();
  put(&(struct cs_wire_inlines){HOT, node_count, mapping_count, 0}, sizeof(struct cs_wire_inlines));
  put(nodes, node_count * sizeof *nodes);
  put(mappings, mapping_count * sizeof *mappings);
  send(CS_WIRE_INLINES);
}

// Hot calls Middle at IL 12, which has Deep inlined, and Other, whose call the JIT has lost.
static int setup(void **state) {
  static const struct cs_wire_il_range ranges[] = {
      {CS_WIRE_IL_PROLOG, 0, 4},
      {0, 4, 16},
      {12, 16, 60},
      {CS_WIRE_IL_NO_MAPPING, 60, 80},
      {CS_WIRE_IL_NO_MAPPING, 80, 88},
      {CS_WIRE_IL_NO_MAPPING, 88, 90},
      {1, 90, 99},
      {CS_WIRE_IL_EPILOG, 99, 105},
  };
  static const struct cs_wire_inline_node nodes[] = {
      {HOT, 0, LOST}, {MIDDLE, 0, LOST}, {DEEP, 1, LOST}, {OTHER, 0, LOST},
      {OTHER, 2, 33}, {DEEP, 4, 44},     {MIDDLE, 0, 55}};
  static const struct cs_wire_inline_mapping mappings[] = {
      {4, 0, 0},   {16, 1, 5}, {20, 2, 7}, {30, 2, CS_WIRE_IL_NO_MAPPING},
      {50, 3, 20}, {60, 3, 9}, {70, 3, 2}, {80, 5, 6},
      {86, 6, 8},  {96, 0, 1}, {98, 3, 3},
  };
  (void)state;
  cs_recording_init(&rec);
  rec.lines = true;
  send_il_map(ranges, CS_COUNT(ranges));
  send_inlines(nodes, CS_COUNT(nodes), mappings, CS_COUNT(mappings));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  cs_recording_free(&rec);
  return 0;
}

static uint64_t at(uint64_t function, uint64_t offset) {
  return function << 32 | CS_REC_PLACE | offset;
}
static uint64_t in(uint64_t function, uint64_t il) {
  return function << 32 | CS_REC_INLINED | CS_REC_PLACE | il;
}
static uint64_t somewhere_in(uint64_t function) {
  return function << 32 | CS_REC_INLINED;
}

static void is_shown_as(uint64_t frame, size_t count, const uint64_t *expected) {
  uint64_t chain[CS_INLINED_DEPTH];
  assert_int_equal(cs_inlined_at(&rec, frame, chain), count);
  for (size_t i = 0; i < count; i++) assert_true(chain[i] == expected[i]);
}
#define IS_SHOWN_AS(frame, ...) \
  is_shown_as(frame, CS_COUNT(((uint64_t[]){__VA_ARGS__})), (uint64_t[]){__VA_ARGS__})

static void the_outermost_is_at_its_call(void **state) {
  (void)state;
  IS_SHOWN_AS(at(HOT, 16), at(HOT, 16), in(MIDDLE, 5));
  IS_SHOWN_AS(at(HOT, 19), at(HOT, 16), in(MIDDLE, 5));
}

static void one_between_has_no_place(void **state) {
  (void)state;
  IS_SHOWN_AS(at(HOT, 20), at(HOT, 16), somewhere_in(MIDDLE), in(DEEP, 7));
  IS_SHOWN_AS(at(HOT, 30), at(HOT, 16), somewhere_in(MIDDLE), somewhere_in(DEEP));
}

// A known call has an IL offset, in the method itself as well.
static void known_calls_are_places(void **state) {
  (void)state;
  IS_SHOWN_AS(at(HOT, 83), at(HOT, 16), somewhere_in(MIDDLE), in(DEEP, 33), in(OTHER, 44),
              in(DEEP, 6));
  IS_SHOWN_AS(at(HOT, 87), at(HOT, CS_REC_AT_IL | 55), in(MIDDLE, 8));
}

// The map has 12 for Other's first piece, which is left from Middle, and nothing for the others.
static void a_call_that_was_lost_is_not_made_up(void **state) {
  (void)state;
  IS_SHOWN_AS(at(HOT, 55), (uint64_t)HOT << 32, in(OTHER, 20));
  IS_SHOWN_AS(at(HOT, 60), (uint64_t)HOT << 32, in(OTHER, 9));
  IS_SHOWN_AS(at(HOT, 79), (uint64_t)HOT << 32, in(OTHER, 2));
}

static void a_mapping_ends_where_the_other_map_goes_on(void **state) {
  (void)state;
  is_shown_as(at(HOT, 88), 0, NULL);  // the JIT's own code: no longer Other's
  is_shown_as(at(HOT, 90), 0, NULL);  // the method's own statement, of which the tree knows nothing
  is_shown_as(at(HOT, 97), 0, NULL);  // a mapping of the method itself
  is_shown_as(at(HOT, 100), 0, NULL);  // an epilog
}

static void nothing_is_where_nothing_is_known(void **state) {
  (void)state;
  is_shown_as(at(HOT, 2), 0, NULL);      // the prolog, before all mappings
  is_shown_as(at(HOT, 200), 0, NULL);    // in no range
  is_shown_as(at(MIDDLE, 20), 0, NULL);  // a method without a tree
  is_shown_as((uint64_t)HOT << 32, 0, NULL);
  is_shown_as(CS_REC_CUT | 3, 0, NULL);
}

// What makes no sense is counted and otherwise ignored.
static void what_is_no_tree_is_refused(void **state) {
  static const struct cs_wire_inline_node child_first[] = {{9, 0, 0}, {8, 2, 0}, {7, 0, 0}},
                                          own_parent[] = {{9, 0, 0}, {8, 1, 0}},
                                          fine[] = {{9, 0, 0}, {8, 0, 0}};
  static const struct cs_wire_inline_mapping no_node[] = {{4, 2, 0}},
                                             back[] = {{4, 1, 0}, {4, 0, 0}};
  (void)state;
  cs_recording_free(&rec);
  cs_recording_init(&rec);
  send_inlines(child_first, 3, NULL, 0);
  send_inlines(own_parent, 2, NULL, 0);
  send_inlines(fine, 2, no_node, 1);
  send_inlines(fine, 2, back, 2);
  begin();
  put(&(struct cs_wire_inlines){HOT, UINT32_MAX, UINT32_MAX, 0}, sizeof(struct cs_wire_inlines));
  send(CS_WIRE_INLINES);
  assert_int_equal(rec.broken, 5);
  assert_int_equal(rec.inlines_count, 0);
  send_inlines(fine, 2, back, 1);
  send_inlines(fine, 2, back, 1);  // each id is given only once
  assert_int_equal(rec.broken, 6);
  assert_int_equal(rec.inlines_count, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_outermost_is_at_its_call, setup, teardown),
      cmocka_unit_test_setup_teardown(one_between_has_no_place, setup, teardown),
      cmocka_unit_test_setup_teardown(known_calls_are_places, setup, teardown),
      cmocka_unit_test_setup_teardown(a_call_that_was_lost_is_not_made_up, setup, teardown),
      cmocka_unit_test_setup_teardown(a_mapping_ends_where_the_other_map_goes_on, setup, teardown),
      cmocka_unit_test_setup_teardown(nothing_is_where_nothing_is_known, setup, teardown),
      cmocka_unit_test_setup_teardown(what_is_no_tree_is_refused, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
