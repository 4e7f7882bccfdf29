// SPDX-License-Identifier: MIT
// Signature blobs: known ones from the C# compiler, and thousands of malformed ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "clr_names/sig.h"

static void token(void *data, mdToken tk, const struct cs_type_args *args,
                  struct cs_text_out *out) {
  (void)data;
  char name[] = {'R', (char)('0' + (tk & 7)), '\0'};
  if (tk >> 24 == 0x02) name[0] = 'D';
  if (tk >> 24 == 0x1B) name[0] = 'S';
  cs_text_add(out, name);
  for (unsigned i = 0; args != NULL && i < args->count; i++) {
    cs_text_add_char(out, i == 0 ? '<' : ',');
    cs_text_add(out, args->text[i]);
  }
  if (args != NULL) cs_text_add_char(out, '>');
}
static void variable(void *data, bool of_method, uint32_t index, struct cs_text_out *out) {
  (void)data;
  cs_text_add_char(out, of_method ? 'M' : 'T');
  cs_text_add_uint(out, index);
}
static void handle(void *data, uint64_t h, struct cs_text_out *out) {
  (void)data;
  cs_text_add_char(out, 'H');
  cs_text_add_uint(out, (uint32_t)h);
}
static const struct cs_sig_names names = {NULL, token, variable, handle};

static bool decode(const char *bytes, size_t len, char *text, size_t cap) {
  struct cs_text_out out = cs_text_begin(text, cap);
  return cs_sig_method((const uint8_t *)bytes, len, &names, &out);
}
#define EXPECT(want, bytes)                                          \
  do {                                                               \
    char text[256];                                                  \
    assert_true(decode(bytes, sizeof bytes - 1, text, sizeof text)); \
    assert_string_equal(text, want);                                 \
  } while (0)
#define EXPECT_RESULT(want, bytes)                                                      \
  do {                                                                                  \
    char text[256];                                                                     \
    struct cs_text_out out = cs_text_begin(text, sizeof text);                          \
    assert_true(cs_sig_result((const uint8_t *)bytes, sizeof bytes - 1, &names, &out)); \
    assert_string_equal(text, want);                                                    \
  } while (0)
#define REFUSE(bytes)                                                 \
  do {                                                                \
    char text[256];                                                   \
    assert_false(decode(bytes, sizeof bytes - 1, text, sizeof text)); \
  } while (0)

static void signatures_of_compilers(void **state) {
  (void)state;
  EXPECT("()", "\x00\x00\x01");  // static void M()
  EXPECT("()", "\x20\x00\x08");  // int M()
  EXPECT_RESULT("int", "\x20\x00\x08");
  EXPECT_RESULT("string", "\x10\x02\x01\x0e\x08");  // static string M<A, B>(int)
  EXPECT("(int, string, object)", "\x00\x03\x01\x08\x0e\x1c");
  EXPECT("(bool, char, sbyte, byte, short, ushort, uint, long, ulong, float, double, nint, nuint)",
         "\x00\x0d\x01\x02\x03\x04\x05\x06\x07\x09\x0a\x0b\x0c\x0d\x18\x19");
  EXPECT("(string[], int[,], int*, ref long)",
         "\x00\x04\x01\x1d\x0e\x14\x08\x02\x00\x00\x0f\x08\x10\x0a");
  EXPECT("(int[][,,])", "\x00\x01\x01\x14\x1d\x08\x03\x02\x05\x06\x01\x00");  // sizes and bounds
  EXPECT("(D1, R2, S3)", "\x00\x03\x01\x11\x04\x12\x09\x12\x0e");
  EXPECT("(R1<int,D2<T0>>, T1, M0)",
         "\x30\x01\x03\x01\x15\x12\x05\x02\x08\x15\x11\x08\x01\x13\x00\x13\x01\x1e\x00");
  EXPECT("(ref int)", "\x00\x01\x01\x1f\x05\x10\x08");  // in int: modreq(InAttribute) ref
  EXPECT("(delegate*(int), void*)", "\x00\x02\x01\x1b\x00\x01\x01\x08\x0f\x01");
  EXPECT("(int, __arglist, double)", "\x05\x02\x01\x08\x41\x0d");
  EXPECT("(TypedReference)", "\x00\x01\x01\x16");
  EXPECT("(D0)", "\x00\x01\x01\x11\xc0\x01\x00\x00");  // a token of four bytes
  EXPECT("(R0)", "\x00\x01\x01\x12\x80\x81");          // and of two
  EXPECT("(H42, int)",
         "\x00\x02\x01\x21\x2a\x00\x00\x00\x00\x00\x00\x00\x22\x01"
         "\x01\x02\x03\x04\x05\x06\x07\x08\x08");
}

static void broken_ones_are_refused(void **state) {
  (void)state;
  REFUSE("");
  REFUSE("\x00");
  REFUSE("\x00\x02\x01\x08");                  // one parameter is missing
  REFUSE("\x06\x08");                          // a field
  REFUSE("\x08\x00\x08");                      // a property
  REFUSE("\x00\x01\x01\x7f");                  // no such element
  REFUSE("\x00\x01\x01\x12");                  // no token
  REFUSE("\x00\x01\x01\x12\x07");              // a token of no table
  REFUSE("\x00\x01\x01\x12\xe0\x00\x00\x00");  // no compressed integer
  REFUSE("\x00\x01\x01\x15\x08\x05\x01\x08");  // int<...>
  REFUSE("\x00\x01\x01\x15\x12\x05\x00");      // no arguments
  REFUSE("\x00\x01\x01\x14\x08\x00\x00\x00");  // rank 0
  REFUSE("\x00\x01\x01\x14\x08\x01\x05\x01");  // more sizes than ranks
  REFUSE("\x00\x01\x01\x21\x2a\x00\x00");      // half a pointer
  REFUSE("\x00\xdf\xff\xff\xff\x01");          // 536 million parameters
  char deep[2000];
  memset(deep, 0x1d, sizeof deep);  // an array of arrays of arrays ...
  memcpy(deep, "\x00\x01\x01", 3);
  char text[64];
  assert_false(decode(deep, sizeof deep, text, sizeof text));
  assert_false(cs_sig_type(NULL, 0, &names, &(struct cs_text_out){text, sizeof text, 0, false, 0}));
}

static void texts_are_cut_between_characters(void **state) {
  (void)state;
  char buffer[8];
  struct cs_text_out out = cs_text_begin(buffer, sizeof buffer);
  cs_text_add(&out, "abcdef\xC3\xA9");
  assert_string_equal(buffer, "abcdef");
  assert_true(out.cut);
  cs_text_add(&out, "x");  // no gap
  assert_string_equal(buffer, "abcdef");
  out = cs_text_begin(buffer, sizeof buffer);
  cs_text_add_utf16(&out, (const WCHAR[]){'a', 0xE9, 0x4E2D, 'b', 'c'}, 5);
  assert_string_equal(buffer,
                      "a\xC3\xA9\xE4\xB8\xAD"
                      "b");
  assert_true(out.cut);
  EXPECT("(int, string)", "\x00\x02\x01\x08\x0e");
}

// Two names that differ only in what does not fit are two names.
static void a_text_that_is_cut_has_a_mark(void **state) {
  (void)state;
  enum { SIZE = 48, KEPT = SIZE - 1 - 10 };
  char texts[4][SIZE], same[SIZE];
  for (int i = 0; i < 4; i++) {
    struct cs_text_out out = cs_text_begin(texts[i], SIZE);
    cs_text_add(&out, "Dictionary<System.Collections.Generic.List");
    cs_text_add(&out, i % 2 == 0 ? "<string>,int>" : "<string>,long>");
    if (i >= 2) cs_text_add_utf16(&out, u".Enumerator", 11);
    assert_true(out.cut);
    assert_int_equal(out.len, strlen(texts[i]));
    assert_int_equal(out.len, SIZE - 1);
    assert_memory_equal(texts[i], "Dictionary<System.Collections.Generic.List", KEPT);
    assert_memory_equal(texts[i] + KEPT, "…~", 4);
    for (int other = 0; other < i; other++) assert_string_not_equal(texts[i], texts[other]);
  }
  struct cs_text_out out = cs_text_begin(same, SIZE);
  cs_text_add(&out, "Dictionary<System.Collections.Generic.List<string>,int>");
  assert_string_equal(same, texts[0]);
}

// Every read stays inside the blob, which ends just before an unreadable page, and the text never
// exceeds its buffer.
static void mutations_do_no_harm(void **state) {
  (void)state;
  static const char seed[] =
      "\x30\x01\x06\x15\x12\x05\x02\x08\x1d\x0e\x15\x11\x08\x01\x13\x00\x14\x08\x02\x01\x03\x00\x10"
      "\x1f\x05\x0a\x1b\x00\x01\x01\x08\x21\x2a\x00\x00\x00\x00\x00\x00\x00\x0f\x1e\x00\x12\x80"
      "\x81";
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uint8_t *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(pages != MAP_FAILED);
  assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
  uint32_t random = 12345, fine = 0;
  for (unsigned round = 0; round < 300000; round++) {
    random = random * 1664525u + 1013904223u;
    size_t len = 1 + (random >> 8) % (sizeof seed - 1);
    uint8_t *blob = pages + page - len;
    memcpy(blob, seed, len);
    for (unsigned i = 0; i < (random >> 28); i++) {
      random = random * 1664525u + 1013904223u;
      blob[(random >> 16) % len] = (uint8_t)(random >> 4);
    }
    char text[65];
    memset(text, 'Z', sizeof text);
    struct cs_text_out out = cs_text_begin(text, 64);
    if (cs_sig_method(blob, len, &names, &out)) fine++;
    assert_true(out.len < 64 && text[out.len] == '\0' && text[64] == 'Z');
  }
  assert_true(fine > 100);
  assert_int_equal(munmap(pages, 2 * page), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signatures_of_compilers),
      cmocka_unit_test(broken_ones_are_refused),
      cmocka_unit_test(texts_are_cut_between_characters),
      cmocka_unit_test(a_text_that_is_cut_has_a_mark),
      cmocka_unit_test(mutations_do_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
