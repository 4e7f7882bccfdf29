// SPDX-License-Identifier: MIT
// The recording file: what is read is what was written; a file that ends anywhere yields what comes
// before its end; and a file that lies yields nothing but a sentence.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "formats/format.h"
#include "naming/naming.h"
#include "naming/resolve.h"
#include "recording/pool_waits.h"
#include "recording/recfile.h"
#include "session/summary.h"
#include "support/wire_record.h"

static char directory[] = "/tmp/clrsnap-recfile-XXXXXX";
static char path[64];
static uint8_t *whole;  // the file
static size_t whole_size, expected_size;
static char *expected;     // every format's output from the live recording
static bool every_format;  // otherwise one at a time, which is quicker
static uint64_t random_state = 1;

static uint64_t random64(void) {
  return cs_random_next(&random_state);
}

// ---- a recording, as the agent would send it ----
static struct cs_recording live;
static struct cs_recfile file;

static void end_flagged(enum cs_wire_kind kind, uint16_t flags) {
  const struct cs_wire_record *r = complete(kind, flags);
  cs_recording_add(&live, r);
  cs_recfile_add(&file, &live, r);
}

// A record that makes no sense does not come from a file.
static void drop(enum cs_wire_kind kind) {
  cs_recording_add(&live, complete(kind, 0));
}

static void end(enum cs_wire_kind kind) {
  end_flagged(kind, 0);
}

static void send_names(void) {
  begin();
  put(&(struct cs_wire_start){1750000000000000000u, 4321, 499, CS_WIRE_MODE_WALL, 0},
      sizeof(struct cs_wire_start));
  put_text("10.0.12");
  end(CS_WIRE_START);
  begin();
  put(&(struct cs_wire_thread){1, 77}, sizeof(struct cs_wire_thread));
  put_text("Generisch-\xC3\x9C");
  end(CS_WIRE_THREAD);
  for (uint32_t id = 0; id < 20; id++) {
    char name[16];
    (void)snprintf(name, sizeof name, "Method%u", id);
    begin();
    put(&(struct cs_wire_il_map){id, 1, 0}, sizeof(struct cs_wire_il_map));
    put(&(struct cs_wire_il_range){0, 0, 100}, sizeof(struct cs_wire_il_range));
    end(CS_WIRE_IL_MAP);
    if (id % 3 == 0) {
      begin();
      put(&(struct cs_wire_inlines){id, 3, 2, 0}, sizeof(struct cs_wire_inlines));
      for (uint32_t n = 0; n < 3; n++)
        put(&(struct cs_wire_inline_node){id + n, n / 2, 3 * n},
            sizeof(struct cs_wire_inline_node));
      put(&(struct cs_wire_inline_mapping){5, 2, 7}, sizeof(struct cs_wire_inline_mapping));
      put(&(struct cs_wire_inline_mapping){60, 1, 0}, sizeof(struct cs_wire_inline_mapping));
      end(CS_WIRE_INLINES);
    }
    begin();
    put(&(struct cs_wire_function){id, CS_WIRE_FN_METHOD, 0x06000001 + id},
        sizeof(struct cs_wire_function));
    put_text(id % 2 ? "/tmp/app.dll" : "/tmp/System.Linq.dll");
    put_text("Shop");
    put_text("Cart<T>");
    put_text(name);
    put_text("(int)");
    end(CS_WIRE_FUNCTION);
  }
  begin();
  put(&(struct cs_wire_image){.id = 3, .begin = 0x1000, .end = 0x9000, .bias = 0x1000},
      sizeof(struct cs_wire_image));
  put_text("/nowhere/libnative.so");
  end(CS_WIRE_IMAGE);
  begin();
  put(&(struct cs_wire_image){.id = 4,
                              .flags = CS_WIRE_IMAGE_RUNTIME,
                              .begin = 0x10000,
                              .end = 0x90000,
                              .bias = 0x10000},
      sizeof(struct cs_wire_image));
  put_text("/nowhere/Shop");
  end(CS_WIRE_IMAGE);
}

static void send_sample(uint64_t time, uint32_t thread, enum cs_stop stop, uint32_t depth) {
  begin();
  put(&(struct cs_wire_sample){.time_ns = time,
                               .weight = 1000 + time % 7,
                               .thread = thread,
                               .held_ns = (uint32_t)time % 3 * 100,
                               .stop = (uint16_t)stop,
                               .mode = (uint16_t)(1 + time % (CS_WIRE_MODES - 1)),
                               .frame_count = depth},
      sizeof(struct cs_wire_sample));
  for (uint32_t i = 0; i < depth; i++) {
    uint64_t kind = random64() % 8;
    uint64_t frame = kind == 0   ? 2ull << 62 | 0x1234
                     : kind == 1 ? 1ull << 62 | (3ull + i % 2) << 40 | random64() % 64
                                 : (random64() % 20) << 32 | CS_WIRE_MANAGED_EXACT | 12;
    put(&frame, sizeof frame);
  }
  // Many samples share a label, some labels have no span, and not every endpoint has a name.
  struct cs_label label = {{(uint8_t)(time / 1000000 % 5), 0xAB},
                           {(uint8_t)(time / 1000000 % 2)},
                           time / 1000000 % 3 * 7};
  put(&label, time % 3 != 0 ? sizeof label : 0);
  end_flagged(CS_WIRE_SAMPLE, time % 3 != 0 ? CS_WIRE_LABELLED : 0);
}

// The output of every format for a recording, or of one of them at a time: each must cope with
// whatever a file may say.
static char *profile_text(const struct cs_recording *rec, size_t *size) {
  static size_t turn;
  struct cs_profile profiles[CS_WIRE_MODES];
  struct cs_resolve_opts opts = {true, true, rec->lines, false, false, false};
  struct cs_profile_set all = {profiles, cs_resolve(rec, CS_WIRE_ALL_MODES, &opts, profiles)};
  char *text = NULL;
  FILE *out = open_memstream(&text, size);
  size_t count;
  const struct cs_format *formats = cs_formats(&count);
  for (size_t i = 0; i < count; i++) {
    if (formats[i].write == NULL || (!every_format && i != turn % count)) continue;
    for (size_t m = 0; m < all.count && formats[i].several == CS_MODES_ONE; m++)
      assert_true(formats[i].write(&(struct cs_profile_set){&profiles[m], 1}, out));
    if (formats[i].several != CS_MODES_ONE) assert_true(formats[i].write(&all, out));
  }
  turn++;
  cs_print_summary(&all, out);
  (void)fclose(out);
  for (size_t m = 0; m < all.count; m++) cs_profile_free(&profiles[m]);
  return text;
}

// Two of three threads are workers, of which one has slept when the pool was starved. Returns how
// many stacks wait.
static size_t send_waits(void) {
  for (uint32_t id = 2; id < 4; id++) {
    begin();
    put(&(struct cs_wire_thread){id, 77 + id}, sizeof(struct cs_wire_thread));
    put_text(".NET TP Worker");
    end(CS_WIRE_THREAD);
  }
  for (uint32_t id = 1; id < 4; id++) {
    begin();
    put(&(struct cs_wire_sample){.time_ns = 300000000,
                                 .weight = 1,
                                 .thread = id,
                                 .held_ns = id == 3 ? 100 : 0,
                                 .mode = CS_WIRE_MODE_WALL,
                                 .frame_count = 2},
        sizeof(struct cs_wire_sample));
    put(&(uint64_t){2ull << 32 | 12}, sizeof(uint64_t));
    put(&(uint64_t){1ull << 32 | 12}, sizeof(uint64_t));
    end(CS_WIRE_SAMPLE);
  }
  cs_pool_waits_add_scan(&live, &(struct cs_wire_starved){400000000, 212, 3, 0});
  cs_pool_waits_add_scan(&live,
                         &(struct cs_wire_starved){9400000000, 5, 3, 0});  // no sample is so late
  return live.pool_waits.count;
}

static void make_recording(void) {
  struct cs_error err;
  cs_recording_init(&live);
  live.lines = live.keep_samples = true;
  live.meta = (struct cs_rec_meta){cs_recording_text(&live, "dotnet shop.dll"), CS_WIRE_ALL_MODES,
                                   499, 0, 0};
  assert_true(cs_recfile_open(&file, path, &err));
  send_names();
  for (uint64_t i = 0; i < 300; i++) {
    send_sample(i * 1000000, (uint32_t)(1 + i % 3), i % 50 == 49 ? CS_STOP_BAD_SP : CS_STOP_BASE,
                (uint32_t)(random64() % 12));
    if (i % 10 == 0) cs_recfile_flush(&file, &live);
  }
  begin();
  put(&(struct cs_wire_stops){1234567, 27, 890}, sizeof(struct cs_wire_stops));
  end(CS_WIRE_STOPS);
  begin();
  put(&(struct cs_wire_put_off){4321, 21, 345678, 1, 3}, sizeof(struct cs_wire_put_off));
  end(CS_WIRE_PUT_OFF);
  begin();
  put(&(struct cs_wire_ticks){55, 66, 77, 88}, sizeof(struct cs_wire_ticks));
  end(CS_WIRE_TICKS);
  begin();
  put(&(struct cs_wire_lost_signals){77, 8800000000, 9, 0}, sizeof(struct cs_wire_lost_signals));
  end(CS_WIRE_LOST_SIGNALS);
  begin();
  put(&(struct cs_wire_small_stacks){12, 3}, sizeof(struct cs_wire_small_stacks));
  end(CS_WIRE_SMALL_STACKS);
  assert_int_equal(live.small_stacks.small, 12);
  begin();
  put(&(struct cs_wire_pool){.scans = 40,
                             .workers_sum = 900,
                             .most_queued = 212,
                             .most_queued_ns = 3100000000,
                             .least_workers = 4,
                             .most_workers = 40,
                             .starved = 31},
      sizeof(struct cs_wire_pool));
  end(CS_WIRE_POOL);
  assert_int_equal(live.pool.starved, 31);
  assert_int_equal(send_waits(), 1);
  assert_int_equal(live.stops.threads, 27);
  assert_int_equal(live.put_off.samples, 4321);
  begin();
  put(&(struct cs_wire_engine){.cpu_ns = 600000000,
                               .requested = CS_WIRE_ENGINE_AUTO,
                               .used = CS_WIRE_ENGINE_CLOCK,
                               .others = 3},
      sizeof(struct cs_wire_engine));
  put_text("perf: it is refused");
  put_text("the kernel");
  end(CS_WIRE_ENGINE);
  begin();
  put(&(struct cs_wire_engine){.used = CS_WIRE_ENGINES}, sizeof(struct cs_wire_engine));
  put_text("");
  put_text("");
  drop(CS_WIRE_ENGINE);  // makes no sense
  assert_int_equal(live.broken, 1);
  assert_int_equal(live.engine.others, 3);
  live.broken = 0;
  begin();
  put(&(struct cs_wire_events){CS_WIRE_MODE_WAIT, 0, 1000, 77000, 10},
      sizeof(struct cs_wire_events));
  end(CS_WIRE_EVENTS);
  assert_int_equal(live.events[CS_WIRE_MODE_WAIT].value, 77000);
  begin();
  put(&(struct cs_wire_end){.samples = 300, .lost_ring = 4, .runtime_suspensions = 2},
      sizeof(struct cs_wire_end));
  end(CS_WIRE_END);
  cs_recording_set_symbol(&live, live.frames[0], "a_symbol");
  cs_recording_set_place(&live, live.frames[1], cs_recording_text(&live, "/src/Cart.cs"), 42);
  live.line_facts = (struct cs_line_facts){.wanted = true, .places = 7, .missing = "app.dll"};
  live.totals = (struct cs_rec_totals){5000000000u, 1, 2, 3};
  live.finished = live.named = true;
  assert_true(cs_recfile_finish(&file, &live, &err));
  cs_recfile_close(&file);
}

static int set_up(void **state) {
  (void)state;
  if (mkdtemp(directory) == NULL) return 1;
  (void)snprintf(path, sizeof path, "%s/x.clrsnap", directory);
  make_recording();
  every_format = true;
  expected = profile_text(&live, &expected_size);
  FILE *in = fopen(path, "re");
  whole = malloc(1 << 20);
  whole_size = fread(whole, 1, 1 << 20, in);
  (void)fclose(in);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  (void)unlink(path);
  (void)rmdir(directory);
  cs_recording_free(&live);
  free(expected);
  free(whole);
  return 0;
}

// ---- reading ----
struct outcome {
  bool read;
  struct cs_error note, err;
  uint64_t samples;
  bool finished;
  char *text;
  size_t text_size;
};

static struct outcome read_bytes(const uint8_t *bytes, size_t size) {
  static struct cs_recording rec;
  struct outcome o = {0};
  char name[32];
  int fd = memfd_create("recording", MFD_CLOEXEC);
  assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
  (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  cs_recording_init(&rec);
  rec.keep_samples = true;
  o.read = cs_recfile_read(name, &rec, &o.note, &o.err);
  if (o.read) {
    cs_name_frames(&rec);
    o.samples = rec.taken;
    o.finished = rec.finished;
    o.text = profile_text(&rec, &o.text_size);
  } else {
    assert_true(strlen(o.err.text) > 10);
  }
  cs_recording_free(&rec);
  (void)close(fd);
  return o;
}

#define POOL \
  "4 to 40 workers (mean 22.5), at most 212 items queued (at 3.1 s); starved in 31 of 40 scans"

#define CAUSE                                                                                   \
  "the pool is starved: 1 of 3 workers waits in Cart<T>.Method2 at Shop.Cart<T>.Method1(int); " \
  "212 items queued (at 0.4 s)"

static void what_is_written_is_read(void **state) {
  (void)state;
  every_format = true;
  struct outcome o = read_bytes(whole, whole_size);
  assert_true(o.read && o.finished);
  assert_string_equal(o.note.text, "");
  assert_int_equal(o.text_size, expected_size);
  assert_memory_equal(o.text, expected, expected_size);
  assert_int_equal(o.samples, 303);
  assert_non_null(memmem(expected, expected_size, "(Cart.cs:42)", 12));
  assert_non_null(memmem(expected, expected_size, "[libnative.so]", 14));
  assert_non_null(memmem(expected, expected_size, "[Shop: runtime]", 15));
  assert_null(memmem(expected, expected_size, "[Shop]", 6));
  assert_non_null(memmem(o.text, o.text_size, POOL, strlen(POOL)));
  assert_non_null(memmem(o.text, o.text_size, CAUSE, strlen(CAUSE)));
  free(o.text);
}

// Cut at every length, a file gives a sentence, and the longer it is, the more samples it gives. A
// file that is shorter than before_second() does not say what was recorded, and has nothing to
// show.
static size_t before_second(void) {
  uint32_t first;
  memcpy(&first, whole + sizeof(struct cs_file_head), sizeof first);
  return sizeof(struct cs_file_head) + first;
}

static void any_beginning_is_read(void **state) {
  (void)state;
  every_format = false;
  uint64_t before = 0;
  for (size_t size = 0; size < whole_size; size += size < 600 ? 1 : 1 + random64() % 64) {
    struct outcome o = read_bytes(whole, size);
    assert_int_equal(o.read, size >= before_second());
    if (!o.read) continue;
    assert_false(o.finished);
    assert_true(strlen(o.note.text) > 10);
    assert_true(o.samples >= before);
    before = o.samples;
    free(o.text);
  }
  assert_int_equal(before, 303);
}

static void flipped_bits_are_found(void **state) {
  (void)state;
  every_format = false;
  uint8_t *copy = malloc(whole_size);
  for (int i = 0; i < 400; i++) {
    size_t at = 16 + random64() % (whole_size - 16);
    memcpy(copy, whole, whole_size);
    copy[at] ^= (uint8_t)(1u << random64() % 8);
    struct outcome o = read_bytes(copy, whole_size);
    assert_int_equal(o.read, at >= before_second());
    if (!o.read) continue;
    // A record was left out, and the sentence says so.
    assert_non_null(strstr(o.note.text, "byte"));
    assert_false(o.finished);
    free(o.text);
  }
  free(copy);
}

static void set_crc(uint8_t *at) {
  struct cs_file_record head;
  memcpy(&head, at, sizeof head);
  size_t skip = offsetof(struct cs_file_record, kind);
  head.crc = (uint32_t)crc32_z(0, at + skip, head.size - skip);
  memcpy(at, &head, sizeof head);
}

// Returns the record at or after a random one, but never the head.
static size_t pick_record(const uint8_t *bytes) {
  size_t target = random64() % whole_size, at = sizeof(struct cs_file_head);
  for (;;) {
    uint32_t size;
    memcpy(&size, bytes + at, sizeof size);
    if (at + size > target || at + size >= whole_size) return at;
    at += size;
  }
}

// Lies under a correct checksum, which a file that is made on purpose also has.
static void sound_lies_do_no_harm(void **state) {
  (void)state;
  every_format = false;
  uint8_t *copy = malloc(whole_size);
  for (int i = 0; i < 1200; i++) {
    memcpy(copy, whole, whole_size);
    size_t at = pick_record(copy);
    uint32_t size;
    memcpy(&size, copy + at, sizeof size);
    for (uint64_t n = 1 + random64() % 3; n > 0; n--) {
      size_t where = 8 + random64() % (size - 8);
      copy[at + where] = (uint8_t)(random64() % 3 == 0 ? random64() : random64() % 4 * 85);
    }
    set_crc(copy + at);
    free(read_bytes(copy, whole_size).text);
  }
  free(copy);
}

static void unknown_records_are_skipped(void **state) {
  (void)state;
  every_format = true;
  uint8_t *longer = malloc(whole_size + 64);
  size_t at = sizeof(struct cs_file_head), out;
  uint32_t size;
  for (int i = 0; i < 30; i++) {
    memcpy(&size, whole + at, sizeof size);
    at += size;
  }
  memcpy(longer, whole, at);
  struct cs_file_record head = {64, 0, 999, 0, 0};
  memset(longer + at, 0xAB, 64);
  memcpy(longer + at, &head, sizeof head);
  set_crc(longer + at);
  out = at + 64;
  memcpy(longer + out, whole + at, whole_size - at);
  struct outcome o = read_bytes(longer, whole_size + 64);
  assert_true(o.read && o.finished);
  assert_string_equal(o.note.text, "");
  assert_int_equal(o.text_size, expected_size);
  assert_memory_equal(o.text, expected, expected_size);
  free(o.text);
  free(longer);
}

// A chain of nodes, each below the previous one, that is deeper than any walk can be.
static void bottomless_stacks_are_refused(void **state) {
  (void)state;
  enum { DEPTH = 200000 };
  size_t payload = 8 + DEPTH * sizeof(struct cs_file_node), begin_at = before_second();
  size_t size = begin_at + 16 + payload;
  uint8_t *bytes = calloc(1, size);
  memcpy(bytes, whole, begin_at);
  struct cs_file_record head = {(uint32_t)(16 + payload), 0, CS_FILE_NODES, 0, 0};
  uint32_t numbers[2] = {1, DEPTH};
  memcpy(bytes + begin_at, &head, sizeof head);
  memcpy(bytes + begin_at + 16, numbers, sizeof numbers);
  for (uint32_t i = 0; i < DEPTH; i++) {
    struct cs_file_node node = {i, 0, i == 0 ? 1 : 7ull << 32};
    memcpy(bytes + begin_at + 24 + i * sizeof node, &node, sizeof node);
  }
  set_crc(bytes + begin_at);
  every_format = true;
  struct outcome o = read_bytes(bytes, size);
  assert_true(o.read);
  char place[64];
  (void)snprintf(place, sizeof place, "is damaged at byte %zu:", begin_at);
  assert_non_null(strstr(o.note.text, place));
  free(o.text);
  free(bytes);
}

static void other_files_are_refused(void **state) {
  (void)state;
  uint8_t head[sizeof(struct cs_file_head)];
  memcpy(head, whole, sizeof head);
  head[8] = CS_FILE_VERSION + 1;
  struct outcome o = read_bytes(head, sizeof head);
  assert_false(o.read);
  assert_non_null(strstr(o.err.text, "was written by a newer clrsnap (file version 11"));
  head[8] = CS_FILE_VERSION - 1;
  o = read_bytes(head, sizeof head);
  assert_false(o.read);
  assert_non_null(strstr(o.err.text, "was written by an older clrsnap (file version 9"));
  o = read_bytes((const uint8_t *)"<!DOCTYPE html><html>", 21);
  assert_false(o.read);
  assert_non_null(strstr(o.err.text, "is not a recording of clrsnap"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read),       cmocka_unit_test(any_beginning_is_read),
      cmocka_unit_test(flipped_bits_are_found),        cmocka_unit_test(sound_lies_do_no_harm),
      cmocka_unit_test(unknown_records_are_skipped),   cmocka_unit_test(other_files_are_refused),
      cmocka_unit_test(bottomless_stacks_are_refused),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
