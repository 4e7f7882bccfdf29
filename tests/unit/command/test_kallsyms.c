// SPDX-License-Identifier: MIT
// Names from /proc/kallsyms: addresses that have one, addresses that have none, and a file that
// hides its addresses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "metadata/kallsyms.h"

static struct cs_kallsyms *read_text(const char *text) {
  char path[] = "/tmp/test_kallsyms.XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  (void)close(fd);
  struct cs_kallsyms *k = cs_kallsyms_read_from(path);
  (void)unlink(path);
  return k;
}

static void check(const struct cs_kallsyms *k, uint64_t address, const char *name) {
  const char *found = cs_kallsyms_find(k, address);
  if (name == NULL)
    assert_null(found);
  else
    assert_string_equal(found, name);
}

static void an_address_has_the_function_that_holds_it(void **state) {
  (void)state;
  struct cs_kallsyms *k = read_text(
      "ffffffffc0400000 t in_a_module\t[some_module]\n"
      "ffffffff81000000 T _stext\n"
      "ffffffff81000000 T _text\n"
      "ffffffff81000040 t local_one\n"
      "ffffffff81000080 W weak_one\n"
      "ffffffff810000c0 D some_data\n"
      "0000000000000000 A fixed_percpu_data\n"
      "garbage\n");
  check(k, 0xffffffff81000000, "_stext");
  check(k, 0xffffffff8100003f, "_stext");
  check(k, 0xffffffff81000040, "local_one");
  check(k, 0xffffffff810000bf, "weak_one");
  check(k, 0xffffffff810000c0, NULL);  // data is no function
  check(k, 0xffffffff80ffffff, NULL);  // before all of them
  check(k, 0xffffffffc0400010, "in_a_module");
  check(k, 0xffffffffc0900000, NULL);  // far after it: code that the file does not list
  assert_string_equal(cs_kallsyms_refused(k), "");
  cs_kallsyms_free(k);
}

static void addresses_that_are_hidden_give_no_names(void **state) {
  (void)state;
  struct cs_kallsyms *k = read_text("0000000000000000 T _stext\n0000000000000000 T vfs_read\n");
  check(k, 0xffffffff81000000, NULL);
  assert_non_null(strstr(cs_kallsyms_refused(k), "kernel.kptr_restrict"));
  cs_kallsyms_free(k);
  k = cs_kallsyms_read_from("/nowhere/kallsyms");
  check(k, 0xffffffff81000000, NULL);
  assert_non_null(strstr(cs_kallsyms_refused(k), "cannot be read"));
  cs_kallsyms_free(k);
  cs_kallsyms_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_address_has_the_function_that_holds_it),
      cmocka_unit_test(addresses_that_are_hidden_give_no_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
