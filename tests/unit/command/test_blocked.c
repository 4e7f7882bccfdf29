// SPDX-License-Identifier: MIT
// Threads that ran with their signals blocked: which ones are named, and how the sum is said.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/blocked.h"

#define MS 1000000u

static void add(struct cs_profile *p, const char *thread, const char *cut, uint64_t ms) {
  uint32_t node = cs_tree_child(&p->tree, 0, cs_profile_thread(p, thread, 1));
  node = cs_tree_child(&p->tree, node, cs_profile_frame(p, cut, "", CS_KIND_CUT));
  p->tree.nodes[node].samples += 2;
  p->tree.nodes[node].weight += ms * MS;
}

static void expect_text(struct cs_profile *p, const char *expected) {
  char *text = NULL;
  size_t len;
  FILE *out = open_memstream(&text, &len);
  p->facts.mode = CS_WIRE_MODE_CPU;
  cs_blocked_find(p);
  cs_put_blocked(out, &p->facts);
  (void)fclose(out);
  assert_string_equal(text, expected);
  free(text);
}

static void those_with_the_most_are_named(void **state) {
  struct cs_profile p;
  (void)state;
  cs_profile_init(&p);
  add(&p, "b", "[cut: blocked]", 20);
  add(&p, "not", "[cut: asleep]", 100);
  add(&p, "e", "[cut: blocked]", 5);
  add(&p, "a", "[cut: blocked]", 30);
  add(&p, "f", "[cut: blocked]", 4);
  add(&p, "", "[cut: blocked]", 10);
  add(&p, "c", "[cut: blocked]", 15);
  expect_text(&p,
              "84.00 ms without stacks: threads ran with their signals blocked (a 30.00 ms, b "
              "20.00 ms, c 15.00 ms, a thread without a name 10.00 ms, and 2 more threads)");
  assert_int_equal(p.facts.blocked.samples, 12);
  cs_profile_free(&p);
}

static void one_is_named(void **state) {
  struct cs_profile p;
  (void)state;
  cs_profile_init(&p);
  add(&p, "worker", "[cut: blocked]", 20);
  expect_text(&p,
              "20.00 ms without stacks: threads ran with their signals blocked (worker 20.00 ms)");
  cs_profile_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(those_with_the_most_are_named),
      cmocka_unit_test(one_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
