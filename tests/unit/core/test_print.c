// SPDX-License-Identifier: MIT
// What reaches a terminal: formats in the way of printf, and arguments that a terminal does not
// obey.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>

#include "base/base.h"
#include "base/print.h"

__attribute__((format(printf, 1, 2))) static char *printed(const char *format, ...) {
  char *text = NULL;
  size_t size = 0;
  va_list args;
  FILE *out = open_memstream(&text, &size);
  va_start(args, format);
  cs_vprint(out, format, args);
  va_end(args);
  (void)fclose(out);
  return text;
}

#define assert_printed(want, ...)     \
  do {                                \
    char *got = printed(__VA_ARGS__); \
    assert_string_equal(got, want);   \
    free(got);                        \
  } while (0)

// libc is the oracle.
#define assert_as_printf(...)                       \
  do {                                              \
    char want[512];                                 \
    (void)snprintf(want, sizeof want, __VA_ARGS__); \
    assert_printed(want, __VA_ARGS__);              \
  } while (0)

static void formats_are_those_of_printf(void **state) {
  (void)state;
  assert_as_printf("a\tb\n100 %%, %d %i %u", -3, INT32_MIN, UINT32_MAX);
  assert_as_printf("%5d|%-5d|%05d|%+d|% d|%.3d|%8.3d|%-8.3d|", 7, 7, 7, 7, 7, 7, 7, 7);
  assert_as_printf("%x %X %#x %08x %o %#o", 0xabcu, 0xabcu, 0xabcu, 0xabcu, 8u, 8u);
  assert_as_printf("%ld %lu %lld %llu %zu %zd %jd %ju %td", LONG_MIN, ULONG_MAX, INT64_C(-5) + 0ll,
                   5ull, SIZE_MAX, (ssize_t)-1, INTMAX_MIN, UINTMAX_MAX, (ptrdiff_t)-9);
  assert_as_printf("%" PRId64 " %" PRIu64 " %016" PRIx64, INT64_MIN, UINT64_MAX, UINT64_C(0xabc));
  assert_as_printf("%hhd %hhu %hd %hu", (signed char)-1, (unsigned char)255, (short)-2,
                   (unsigned short)65535);
  assert_as_printf("%f %.1f %6.2f|%-8.3f|%+9.2f %e %.3g %g", 1.5, 2.25, 3.14159, 2.5, -0.25, 1e9,
                   12345.678, 1e-7);
  assert_as_printf("%s|%10s|%-10s|%.2s|%*s|%-*s|%.*s|%*s|", "text", "right", "left", "cut", 6, "w",
                   6, "w", 3, "precise", -6, "w");
  assert_as_printf("%c%5c|%-5c|", 'x', 'y', 'z');
  assert_as_printf("%p", (void *)0x1234);
  errno = ENOENT;
  assert_printed("x: No such file or directory", "%s: %m", "x");
}

static void arguments_are_harmless(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"\x1b]0;owned\a", "\\x1b]0;owned\\x07"},
      {"\x9b"
       "31m",
       "\\x9b31m"},  // C1 as a byte
      {"\xC2\x9b"
       "31m",
       "\\u009b31m"},  // and in UTF-8
      {"a\nb\rc\td\x7f", "a\\x0ab\\x0dc\\x09d\\x7f"},
      {"\xE2\x80\xAE"
       "evil",
       "\\u202eevil"},  // right to left
      {"\xE2\x81\xA6"
       "x\xE2\x81\xA9",
       "\\u2066x\\u2069"},
      {"\xE2\x80\xA8\xE2\x80\xA9", "\\u2028\\u2029"},
      {"\xC0\x9b", "\\xc0\\x9b"},           // overlong
      {"\xED\xA0\x80", "\\xed\\xa0\\x80"},  // half of a pair
      {"\xF3\xA0\x81\x81", "\\U000e0041"},  // never visible
      {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x94\xA5 <T>`1", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x94\xA5 <T>`1"},
  };
  for (size_t i = 0; i < CS_COUNT(cases); i++) assert_printed(cases[i][1], "%s", cases[i][0]);
  assert_printed("[  \\x1b]\n", "[%6s]\n", "\x1b");
  assert_printed("[\\x1b  ]", "[%-6s]", "\x1b");
  assert_printed("\\x1b", "%c", '\x1b');
}

static void whatever_it_is_no_byte_of_it_is_obeyed(void **state) {
  (void)state;
  uint32_t seed = 1;
  for (int round = 0; round < 20000; round++) {
    char bytes[64];
    size_t len = 0;
    while (len < sizeof bytes - 1) {
      seed = seed * 1664525u + 1013904223u;
      bytes[len++] = (char)(seed >> 24) != '\0' ? (char)(seed >> 24) : '\x1b';
    }
    bytes[len] = '\0';
    char *got = printed("%s", bytes);
    bool valid;
    uint32_t c;
    for (size_t i = 0, size = strlen(got); i < size;) {
      i += cs_utf8_next(got + i, size - i, &c, &valid);
      assert_true(valid);
      assert_false(cs_is_unprintable(c));
    }
    free(got);
  }
}

static void what_is_long_is_cut(void **state) {
  (void)state;
  size_t len = 1u << 20;
  char *text = malloc(len + 1);
  memset(text, 'x', len);
  text[len] = '\0';
  memcpy(text + CS_PRINT_MOST - 1, "\xE2\x82\xAC", 3);  // the cut would be within a character
  char *got = printed("%s", text);
  assert_int_equal(strlen(got), CS_PRINT_MOST - 1 + 3);
  assert_string_equal(got + CS_PRINT_MOST - 3, "xx...");
  free(got);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formats_are_those_of_printf),
      cmocka_unit_test(arguments_are_harmless),
      cmocka_unit_test(whatever_it_is_no_byte_of_it_is_obeyed),
      cmocka_unit_test(what_is_long_is_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
