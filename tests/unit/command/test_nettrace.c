// SPDX-License-Identifier: MIT
// The event stream's reader: streams that are whole, come byte by byte, are cut anywhere, and have
// one byte changed.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "process/nettrace.h"

static uint8_t stream[4096];
static size_t used;
static char seen[256];

static void put(const void *data, size_t size) {
  memcpy(stream + used, data, size);
  used += size;
}
static void put_u8(uint8_t value) {
  put(&value, 1);
}
static void put_u32(uint32_t value) {
  put(&value, sizeof value);
}
static void put_utf16(const char *text) {
  do {
    uint16_t unit = (uint8_t)*text;
    put(&unit, sizeof unit);
  } while (*text++ != '\0');
}

static void begin_object(const char *name) {
  put("\5\5\1", 3);
  put_u32(4);
  put_u32(4);
  put_u32((uint32_t)strlen(name));
  put(name, strlen(name));
  put_u8(6);
}

// Returns where the block's size is to be written once it is known.
static size_t begin_block(const char *name, uint16_t flags) {
  uint16_t head = 20;
  begin_object(name);
  size_t at = used;
  put_u32(0);
  while (used % 4 != 0) put_u8(0);
  put(&head, 2);
  put(&flags, 2);
  put("0123456789abcdef", 16);
  return at;
}
static void end_block(size_t at) {
  size_t begin = (at + 4 + 3) / 4 * 4;
  uint32_t size = (uint32_t)(used - begin);
  memcpy(stream + at, &size, sizeof size);
  put_u8(6);
}

// Puts one kind of event with the number `id`: a metadata event whose head has every part that a
// head can have.
static void put_kind(uint32_t id, const char *provider, const char *event) {
  size_t size_at;
  put_u8(0xFF);
  put("\1", 1);                                 // kind
  put("\1\xE5\x8E\x26\1", 5);                   // sequence, thread of more than one byte, processor
  put("\x80\1\2\x83\1", 5);                     // thread, stack, time
  put("0123456789abcdef0123456789abcdef", 32);  // activities
  size_at = used;
  put_u8(0);
  size_t begin = used;
  put_u32(id);
  put_utf16(provider);
  put_u32(0xFFFFFFFF);
  put_utf16(event);
  put_u32(0);  // further bytes
  stream[size_at] = (uint8_t)(used - begin);
  assert_true(used - begin < 0x80);
}

// An event of the same kind and size as the previous one has neither in its head.
static void put_event(int kind, const char *payload, bool size) {
  put_u8((uint8_t)((kind > 0 ? 1 : 0) | (size ? 0x80 : 0)));
  if (kind > 0) put_u8((uint8_t)kind);
  put_u8(0);  // time
  if (size) put_u8((uint8_t)strlen(payload));
  put(payload, strlen(payload));
}

static void make_stream(void) {
  used = 0;
  put("Nettrace\x14\0\0\0!FastSerialization.1", 32);
  begin_object("Trace");
  put("0123456789abcdef0123456789abcdef0123456789abcdef", 48);
  put_u8(6);
  size_t at = begin_block("MetadataBlock", 1);
  put_kind(7, "Provider", "Wanted");
  put_kind(8, "Provider", "Other");
  put_kind(9, "Else", "Wanted");
  end_block(at);
  at = begin_block("StackBlock", 0);
  put("?????", 5);
  end_block(at);
  at = begin_block("EventBlock", 1);
  put_event(7, "one", true);
  put_event(0, "two", false);
  put_event(8, "xxx", false);
  put_event(9, "zzzz", true);
  put_event(7, "three", true);
  end_block(at);
  put_u8(1);
}

static void found(void *context, const uint8_t *payload, size_t size) {
  (void)context;
  size_t len = strlen(seen);
  if (len + size + 2 > sizeof seen) return;
  memcpy(seen + len, payload, size);
  (void)strcpy(seen + len + size, ";");
}

// Feeds the stream in chunks of `chunk` bytes, the last of which may be shorter.
static bool feed(size_t size, size_t chunk, bool *ended) {
  struct cs_nettrace reader = {.provider = "Provider", .event = "Wanted", .found = found};
  struct cs_error err = {""};
  bool good = true;
  memset(seen, 0, sizeof seen);
  for (size_t at = 0; good && at < size; at += chunk)
    good = cs_nettrace_feed(&reader, stream + at, size - at < chunk ? size - at : chunk, &err);
  assert_true(good == (err.text[0] == '\0'));
  *ended = reader.ended;
  cs_nettrace_free(&reader);
  return good;
}

static void events_are_found(void **state) {
  (void)state;
  bool ended;
  make_stream();
  for (size_t chunk = 1; chunk < used + 10; chunk++) {
    assert_true(feed(used, chunk, &ended));
    assert_true(ended);
    assert_string_equal(seen, "one;two;three;");
  }
}

static void a_cut_stream_is_waited_for(void **state) {
  (void)state;
  bool ended;
  make_stream();
  for (size_t size = 0; size < used; size++) {
    assert_true(feed(size, size + 1, &ended));
    assert_false(ended);
    assert_true(seen[0] == '\0' || strcmp(seen, "one;two;three;") == 0);
  }
}

static void broken_streams_do_no_harm(void **state) {
  (void)state;
  bool ended;
  unsigned refused = 0;
  make_stream();
  for (size_t i = 0; i < used; i++) {
    for (unsigned bit = 0; bit < 8; bit++) {
      stream[i] ^= (uint8_t)(1u << bit);
      refused += !feed(used, 64, &ended);
      stream[i] ^= (uint8_t)(1u << bit);
    }
  }
  assert_true(refused > 300);
}

static void texts(void **state) {
  (void)state;
  char text[4];
  used = 0;
  put_utf16("abcdef");
  put_utf16("x");
  struct cs_bytes s = {stream, used};
  assert_true(cs_nettrace_text(&s, text, sizeof text));
  assert_string_equal(text, "abc");
  assert_true(cs_nettrace_text(&s, text, sizeof text));
  assert_string_equal(text, "x");
  assert_false(cs_nettrace_text(&s, text, sizeof text));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(events_are_found),
      cmocka_unit_test(a_cut_stream_is_waited_for),
      cmocka_unit_test(broken_streams_do_no_harm),
      cmocka_unit_test(texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
