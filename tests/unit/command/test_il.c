// SPDX-License-Identifier: MIT
// Maps from native to IL offsets: what the runtime's encoding means, and what is refused. The maps
// are packed by hand here; tests/live/stack/il.sh compares with the runtime's own.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/nibbles.h"
#include "remote/il.h"

enum { SAME = 2, CALL = 1, DELTA_BITS = 9, IL_BITS = 7, EPILOG = 0, PROLOG = 1, NONE = 2, IL = 3 };

struct entry {
  uint32_t source, delta, il;  // il: EPILOG, PROLOG, NONE, or IL + the offset
};

static void put_bits(uint8_t *bytes, size_t *bit, uint32_t value, unsigned count) {
  for (unsigned i = 0; i < count; i++, (*bit)++)
    bytes[*bit / 8] = (uint8_t)(bytes[*bit / 8] | (value >> i & 1u) << *bit % 8);
}

// Numbers below 64: one or two nibbles, the higher three bits first.
static void put_number(uint8_t *bytes, size_t *nibble, uint32_t value) {
  size_t bit = *nibble * 4;
  if (value >= 8) put_bits(bytes, &bit, 8 | value >> 3, 4);
  put_bits(bytes, &bit, value & 7, 4);
  *nibble = bit / 4;
}

static size_t pack(uint8_t *bytes, size_t cap, const struct entry *entries, uint32_t count) {
  size_t nibble = 0;
  memset(bytes, 0, cap);
  put_number(bytes, &nibble, count);
  put_number(bytes, &nibble, DELTA_BITS - 1);
  put_number(bytes, &nibble, IL_BITS - 1);
  size_t bit = (nibble + 1) / 2 * 8;
  for (uint32_t i = 0; i < count; i++) {
    put_bits(bytes, &bit, entries[i].source, 2);
    put_bits(bytes, &bit, entries[i].delta, DELTA_BITS);
    put_bits(bytes, &bit, entries[i].il, IL_BITS);
  }
  return (bit + 7) / 8;
}

static void expect(const uint8_t *bytes, size_t size, uint32_t offset, uint32_t want) {
  uint32_t il = 12345;
  if (!cs_il_of_bounds(bytes, size, offset, &il)) fail_msg("nothing at 0x%x", offset);
  if (il != want) fail_msg("0x%x at 0x%x, not 0x%x", il, offset, want);
}
static void expect_none(const uint8_t *bytes, size_t size, uint32_t offset) {
  uint32_t il;
  if (cs_il_of_bounds(bytes, size, offset, &il)) fail_msg("0x%x at 0x%x", il, offset);
}

// ---- What a map contains ----

static void test_ranges(void **state) {
  (void)state;
  static const struct entry map[] = {
      {SAME, 4, PROLOG}, {SAME, 6, IL + 0}, {SAME, 0, IL + 5},    {SAME, 300, NONE},
      {SAME, 1, IL + 9}, {CALL, 2, IL + 7}, {SAME, 2, IL + 0x40}, {SAME, 10, EPILOG},
  };
  uint8_t b[64];
  size_t size = pack(b, sizeof b, map, CS_COUNT(map));
  expect_none(b, size, 3);  // the map begins at 4
  expect(b, size, 4, CS_IL_PROLOG);
  expect(b, size, 9, CS_IL_PROLOG);
  expect(b, size, 10, 5);  // of two entries that begin here, the first has no bytes
  expect(b, size, 309, 5);
  expect(b, size, 310, CS_IL_NO_MAPPING);
  expect(b, size, 311, 9);
  expect(b, size, 314, 9);  // a call site begins no range
  expect(b, size, 315, 0x40);
  expect(b, size, 325, CS_IL_EPILOG);
  expect(b, size, 100000, CS_IL_EPILOG);  // up to the code's end, which the map does not give
}

// Ranges are the runtime's: an IL offset that is repeated at once begins no new one.
static void test_repeats(void **state) {
  (void)state;
  static const struct entry map[] = {
      {SAME, 0, IL + 1}, {SAME, 8, IL + 1}, {SAME, 8, IL + 2}, {CALL, 2, IL + 3}, {SAME, 2, IL + 2},
      {SAME, 4, IL + 1}, {CALL, 4, IL + 1}, {CALL, 1, IL + 1}, {SAME, 1, IL + 1},
  };
  uint8_t b[64];
  size_t size = pack(b, sizeof b, map, CS_COUNT(map));
  expect(b, size, 8, 1);
  expect(b, size, 16, 2);
  expect(b, size, 23, 2);
  expect(b, size, 24, 1);
  expect(b, size, 40, 1);
}

// Call sites at the end of a map end the range before them.
static void test_last_calls(void **state) {
  (void)state;
  static const struct entry map[] = {{SAME, 0, IL + 1}, {CALL, 8, IL + 3}, {CALL, 4, IL + 5}};
  uint8_t b[64];
  size_t size = pack(b, sizeof b, map, CS_COUNT(map));
  expect(b, size, 8, 1);
  expect(b, size, 11, 1);
  expect_none(b, size, 12);
  size = pack(b, sizeof b, map + 1, 2);
  expect_none(b, size, 9);  // only call sites
}

// ---- What is refused ----

static void test_sizes(void **state) {
  (void)state;
  static const struct entry map[] = {{SAME, 4, PROLOG}, {SAME, 6, IL + 0}, {SAME, 8, IL + 5}};
  uint8_t b[64], exact[64];
  size_t size = pack(b, sizeof b, map, CS_COUNT(map));
  for (size_t cut = 0; cut < size; cut++) {
    memcpy(exact, b, cut);
    expect_none(exact, cut, 10);
  }
  expect(b, size, 10, 0);
  expect(b, size + 9, 10, 0);  // zeros may follow
  b[size + 8] = 1;
  expect_none(b, size + 9, 10);
  pack(b, sizeof b, map, 0);
  expect_none(b, size, 10);  // no entries
}

static void test_numbers(void **state) {
  (void)state;
  static const uint8_t examples[][3] = {{0x07}, {0x09}, {0x7F}, {0x89, 0x01}, {0x89, 0x18}};
  static const uint32_t values[] = {7, 8, 63, 65, 513};
  uint32_t value;
  for (size_t i = 0; i < CS_COUNT(values); i++) {
    struct cs_nibbles n = {examples[i], sizeof examples[i], 0};
    assert_true(cs_nibbles_u32(&n, &value));
    assert_int_equal(value, values[i]);
  }
  static const uint8_t endless[] = {0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88};
  static const uint8_t large[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F};
  static const uint8_t largest[] = {0xFB, 0xFF, 0xFF, 0xFF, 0xFF, 0x07};
  struct cs_nibbles a = {endless, sizeof endless, 0}, b = {large, sizeof large, 0};
  struct cs_nibbles c = {largest, sizeof largest, 0};
  assert_false(cs_nibbles_u32(&a, &value));
  assert_false(cs_nibbles_u32(&b, &value));
  assert_true(cs_nibbles_u32(&c, &value));
  assert_int_equal(value, UINT32_MAX);
}

// Widths of more than 32 bits, and native offsets that leave 32 bits.
static void test_widths(void **state) {
  (void)state;
  uint8_t b[64] = {0};
  size_t nibble = 0;
  put_number(b, &nibble, 1);
  put_number(b, &nibble, 32);
  put_number(b, &nibble, 6);
  expect_none(b, 8, 0);
  memset(b, 0, sizeof b);
  nibble = 0;
  put_number(b, &nibble, 2);
  put_number(b, &nibble, 31);
  put_number(b, &nibble, 0);
  size_t bit = (nibble + 1) / 2 * 8;
  for (int i = 0; i < 2; i++) {
    put_bits(b, &bit, SAME, 2);
    put_bits(b, &bit, UINT32_MAX, 32);
    put_bits(b, &bit, 1, 1);
  }
  expect_none(b, (bit + 7) / 8, UINT32_MAX);
}

// Whatever the bytes are, nothing else is read, and reading ends in time.
static void test_any_bytes(void **state) {
  (void)state;
  uint32_t seed = 20261121, il;
  for (unsigned i = 0; i < 200000; i++) {
    uint8_t b[24];
    for (size_t k = 0; k < sizeof b; k++)
      b[k] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
    size_t size = b[23] % sizeof b;
    uint8_t *own = test_malloc(size + 1);  // its end is watched
    memcpy(own, b, size);
    (void)cs_il_of_bounds(own, size, b[22], &il);
    test_free(own);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ranges),     cmocka_unit_test(test_repeats),
      cmocka_unit_test(test_last_calls), cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_numbers),    cmocka_unit_test(test_widths),
      cmocka_unit_test(test_any_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
