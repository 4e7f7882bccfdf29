// SPDX-License-Identifier: MIT
// Formats and their parts: escaping, strings, the call tree, hold times, and records of a wrong
// size.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/otlp.h"
#include "recording/recording.h"
#include "util/json.h"
#include "wire/decode.h"

static void assert_text(const char *data, size_t len, const char *want) {
  char *text = NULL;
  size_t size = 0;
  struct cs_json_writer j = {.out = open_memstream(&text, &size)};
  cs_json_bytes(&j, NULL, data, len);
  (void)fclose(j.out);
  assert_string_equal(text, want);
  free(text);
}

static void json_is_safe_in_a_script(void **state) {
  (void)state;
  assert_text("plain", 5, "\"plain\"");
  assert_text("</script><!--&", 14, "\"\\u003c/script\\u003e\\u003c!--\\u0026\"");
  assert_text("a\"b\\c\n\0d", 8, "\"a\\u0022b\\u005cc\\u000a\\u0000d\"");
  assert_text("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x94\xA5", 9,
              "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x94\xA5\"");
  assert_text("\xE2\x80\xA8", 3, "\"\\u2028\"");
  assert_text("\xC2\x9B\xE2\x80\xAE\x7F", 6, "\"\\u009b\\u202e\\u007f\"");
}

static void a_service_is_called_as_its_assembly(void **state) {
  (void)state;
  static const char *const names[][2] = {
      {"dotnet /srv/Shop.Web.dll --port 80", "Shop.Web"},
      {"/usr/bin/dotnet exec --depsfile a.deps.json Shop.dll other.dll", "Shop"},
      {"./publish/Shop.Web --urls http://*", "Shop.Web"},
      {"dotnet /my programs/Shop.dll", "Shop"},
      {"dotnet .dll", "dotnet"},
      {"", "unknown_service"},
      {"/", "unknown_service"},
      {"/a/\xFFx", "\\xffx"},
  };
  for (size_t i = 0; i < CS_COUNT(names); i++) {
    char name[64];
    cs_service_name(names[i][0], name, sizeof name);
    assert_string_equal(name, names[i][1]);
  }
  char longest[300], name[64];
  memset(longest, '\xFF', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  cs_service_name(longest, name, sizeof name);
  assert_true(strlen(name) > 0 && strlen(name) < sizeof name && strlen(name) % 4 == 0);
}

static void invalid_utf8_is_replaced(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t replaced;
  } cases[] = {{"\x80", 1},         {"\xC3", 1},
               {"\xC0\x80", 2},     {"\xE2\x82", 2},
               {"\xED\xA0\x80", 3}, {"\xF4\x90\x80\x80", 4},
               {"\xFF\xFE", 2},     {"\xF8\x88\x80\x80\x80", 5}};
  for (size_t i = 0; i < CS_COUNT(cases); i++) {
    char want[64] = "\"";
    for (size_t n = 0; n < cases[i].replaced; n++) strcat(want, "\xEF\xBF\xBD");
    assert_text(cases[i].bytes, strlen(cases[i].bytes), strcat(want, "\""));
  }
}

static void strings_are_interned(void **state) {
  (void)state;
  struct cs_strings s = {0};
  char name[32];
  for (uint32_t round = 0; round < 2; round++) {
    for (uint32_t i = 0; i < 5000; i++) {
      int len = snprintf(name, sizeof name, "name %u", i);
      assert_int_equal(cs_strings_add(&s, name, (size_t)len), i);
    }
  }
  size_t len;
  assert_string_equal(cs_strings_get(&s, 4321, &len), "name 4321");
  assert_int_equal(len, 9);
  cs_strings_free(&s);
}

static void tree_has_one_node_per_path(void **state) {
  (void)state;
  struct cs_tree tree;
  cs_tree_init(&tree);
  uint32_t a = cs_tree_child(&tree, 0, 7), b = cs_tree_child(&tree, a, 7);
  assert_int_equal(cs_tree_child(&tree, 0, 7), a);
  assert_int_equal(cs_tree_child(&tree, a, 7), b);
  assert_int_not_equal(a, b);
  for (uint32_t i = 0; i < 100000; i++) (void)cs_tree_child(&tree, b, i);
  assert_int_equal(tree.count, 100003);
  for (uint32_t i = 1; i < tree.count; i++) assert_true(tree.nodes[i].parent < i);
  cs_tree_free(&tree);
}

static void nodes_without_samples_are_dropped(void **state) {
  (void)state;
  struct cs_tree tree;
  uint32_t moved[8];
  cs_tree_init(&tree);
  uint32_t a = cs_tree_child(&tree, 0, 1), empty = cs_tree_child(&tree, a, 2);
  uint32_t below_empty = cs_tree_child(&tree, empty, 3), b = cs_tree_child(&tree, a, 4);
  uint32_t c = cs_tree_child(&tree, b, 5);
  tree.nodes[c].samples = 7;
  cs_tree_prune(&tree, moved);
  assert_int_equal(tree.count, 4);
  assert_int_equal(moved[0], 0);
  assert_int_equal(moved[empty], 0);
  assert_int_equal(moved[below_empty], 0);
  assert_int_equal(tree.nodes[moved[c]].samples, 7);
  assert_int_equal(tree.nodes[moved[c]].parent, moved[b]);
  assert_int_equal(tree.nodes[moved[b]].parent, moved[a]);
  // Existing nodes are found again; missing ones are made.
  assert_int_equal(cs_tree_child(&tree, moved[a], 4), moved[b]);
  assert_int_equal(cs_tree_child(&tree, moved[a], 2), 4);
  cs_tree_free(&tree);
}

static void hold_times_are_right_to_a_64th(void **state) {
  (void)state;
  static struct cs_held held;
  assert_int_equal(cs_held_percentile(&held, 0.5), 0);
  for (uint32_t ns = 1; ns <= 100000; ns++) cs_held_add(&held, ns);
  static const double fractions[] = {0.01, 0.5, 0.9, 0.99, 0.999};
  for (size_t i = 0; i < CS_COUNT(fractions); i++) {
    double exact = fractions[i] * 100000, got = (double)cs_held_percentile(&held, fractions[i]);
    assert_true(got >= exact && got <= exact * (1 + 1.0 / 64) + 1);
  }
  assert_int_equal(held.max_ns, 100000);
  cs_held_add(&held, UINT32_MAX);
  assert_int_equal(cs_held_percentile(&held, 1.0), UINT32_MAX);
}

// A record that is cut at any length that a ring would let through is either refused or read, but
// never beyond its end.
static void cut_records_are_refused(void **state) {
  (void)state;
  struct cs_wire_function head = {3, CS_WIRE_FN_METHOD, 0};
  uint8_t whole[64];
  size_t used = sizeof(struct cs_wire_record);
  memcpy(whole + used, &head, sizeof head);
  used += sizeof head;
  for (int i = 0; i < CS_FN_TEXTS; i++) {
    memcpy(whole + used,
           "\x03\x00"
           "abc",
           5);
    used += 5;
  }
  for (size_t size = sizeof(struct cs_wire_record); size <= used; size++) {
    // A block of exactly that size, so that a sanitizer sees a read beyond it.
    uint8_t *record = malloc(size);
    memcpy(record, whole, size);
    struct cs_wire_record r = {(uint32_t)size, CS_WIRE_FUNCTION, 0};
    memcpy(record, &r, sizeof r);
    struct cs_wire_function function;
    struct cs_text text[CS_FN_TEXTS];
    assert_int_equal(cs_decode_function((void *)record, &function, text), size == used);
    if (size == used) assert_memory_equal(text[CS_FN_SIGNATURE].data, "abc", 3);
    free(record);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(json_is_safe_in_a_script),
      cmocka_unit_test(invalid_utf8_is_replaced),
      cmocka_unit_test(strings_are_interned),
      cmocka_unit_test(tree_has_one_node_per_path),
      cmocka_unit_test(nodes_without_samples_are_dropped),
      cmocka_unit_test(hold_times_are_right_to_a_64th),
      cmocka_unit_test(a_service_is_called_as_its_assembly),
      cmocka_unit_test(cut_records_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
