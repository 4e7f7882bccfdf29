// SPDX-License-Identifier: MIT
// Where threads were that held up suspensions, and for how long, of a profile of gc mode.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/blockers.h"

// Frames from the root on, each a kind's letter and a name: u of the user, n native, t an event's
// type.
static void add(struct cs_profile *p, uint64_t weight, const char *const frames[]) {
  uint32_t node = cs_tree_child(&p->tree, 0, cs_profile_thread(p, "T", 1));
  for (; *frames != NULL; frames++) {
    enum cs_profile_kind kind = **frames == 'u'   ? CS_KIND_USER
                                : **frames == 'n' ? CS_KIND_NATIVE
                                                  : CS_KIND_TYPE;
    uint32_t frame = cs_profile_frame(p, *frames + 1, "module", kind);
    const char *line = strstr(*frames, " (A.cs:");
    if (line != NULL) {
      char *method = strndup(*frames + 1, (size_t)(line - *frames - 1));
      cs_profile_line(p, frame, method, "/src/A.cs", (uint32_t)strtoul(line + 7, NULL, 10));
      free(method);
    }
    node = cs_tree_child(&p->tree, node, frame);
  }
  p->tree.nodes[node].weight += weight;
  p->facts.weight += weight;
}
#define ADD(p, weight, ...) add(p, weight, (const char *const[]){__VA_ARGS__, NULL})

static void assert_text(const struct cs_profile *p, const struct cs_blocker *blocker, unsigned most,
                        const char *want) {
  char text[256] = "";
  FILE *out = fmemopen(text, sizeof text, "w");
  cs_blocker_put_place(p, blocker, most, out);
  (void)fputs(": ", out);
  cs_blocker_put_time(blocker, out);
  (void)fclose(out);
  assert_string_equal(text, want);
}

static void blockers_are_by_method(void **state) {
  struct cs_profile p;
  struct cs_blockers found;
  (void)state;
  cs_profile_init(&p);
  p.facts.mode = CS_WIRE_MODE_GC;
  ADD(&p, 7000000, "uMain", "t[way to the safe point: GC gen 0, small objects, blocking]");
  ADD(&p, 9000000, "uMain", "t[GC gen 0, small objects, blocking]");
  ADD(&p, 20000000, "uMain", "uMatrix.Multiply (A.cs:41)", "nmemset", "t[holds up GC]");
  ADD(&p, 10000000, "uMain", "uMatrix.Multiply (A.cs:43)", "t[holds up GC: not scheduled]");
  ADD(&p, 1000000, "uMain", "uMatrix.Multiply (A.cs:41)", "t[holds up GC: page fault]");
  ADD(&p, 40000000, "nstart", "nread", "t[holds up a stop of the runtime: system call]");
  cs_blockers_find(&found, &p);
  assert_int_equal(found.way_ns, 78000000);
  assert_int_equal(found.held_ns, 71000000);
  assert_int_equal(found.count, 2);
  assert_text(&p, &found.at[0], 80, "read: 40.00 ms, 40.00 ms of that in system calls");
  assert_text(&p, &found.at[1], 80,
              "Matrix.Multiply (A.cs:41): 31.00 ms, 10.00 ms of that not scheduled");
  assert_text(&p, &found.at[1], 8,
              "...Multiply (A.cs:41): 31.00 ms, 10.00 ms of that not scheduled");
  cs_blockers_free(&found);
  p.facts.mode = CS_WIRE_MODE_CPU;  // nothing else has them
  cs_blockers_find(&found, &p);
  assert_int_equal(found.way_ns + found.held_ns + found.count, 0);
  cs_blockers_free(&found);
  cs_profile_free(&p);
}

static void holders_are_by_method(void **state) {
  struct cs_profile p;
  char text[256] = "";
  (void)state;
  cs_profile_init(&p);
  p.facts.mode = CS_WIRE_MODE_HOLDERS;
  ADD(&p, 40000000, "uMain", "uAudit.Write (A.cs:40)", "nfsync", "t[holds System.Object]");
  ADD(&p, 52000000, "uMain", "uAudit.Write (A.cs:42)", "t[holds System.Object]");
  ADD(&p, 4000000, "uCart.Load (A.cs:12)", "t[holds Shop.Cart]");
  ADD(&p, 4000000, "t[nobody held the lock: the waiting thread did not run yet]");
  FILE *out = fmemopen(text, sizeof text, "w");
  cs_holders_put(&p, 80, out);
  (void)fclose(out);
  assert_string_equal(text, "100.00 ms, held by Audit.Write (A.cs:42) 92 %");
  cs_profile_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blockers_are_by_method),
      cmocka_unit_test(holders_are_by_method),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
