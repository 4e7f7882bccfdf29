// SPDX-License-Identifier: MIT
// The consumer against a producer that writes anything: whatever the ring and its header hold,
// reading ends, stays within bounds, and yields records that can be written as a page.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"
#include "formats/writers.h"
#include "naming/resolve.h"
#include "wire/consumer.h"

#define RING 65536u

static uint64_t seed;

static uint64_t random64(void) {  // xorshift: the same on every machine
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

static struct cs_consumer open_ring(void) {
  struct cs_consumer c;
  struct cs_error err;
  struct cs_consumer_opts opts = {
      .capacity = RING, .modes = CS_WIRE_MODE_CPU, .hz = 499, .max_depth = 64};
  assert_true(cs_consumer_create(&c, &opts, &err));
  return c;
}

static uint8_t *ring_of(struct cs_consumer *c) {
  return (uint8_t *)c->header + CS_WIRE_HEADER_BYTES;
}

static void drain(struct cs_consumer *c, struct cs_recording *rec) {
  const struct cs_wire_record *r;
  size_t records = 0;
  while ((r = cs_consumer_next(c)) != NULL) {
    assert_true(r->size >= sizeof *r && r->size <= RING);
    cs_recording_add(rec, r);
    assert_true(++records <= RING / sizeof *r);  // every record moves the tail
  }
  assert_true(c->tail == c->header->tail);
}

static void write_profile(const struct cs_recording *rec) {
  struct cs_profile profile;
  (void)cs_resolve(rec, CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU),
                   &(struct cs_resolve_opts){.native = true}, &profile);
  profile.facts.program = "\xFF<fuzz>";
  profile.facts.mode = CS_WIRE_MODE_CPU;
  FILE *out = fopen("/dev/null", "w");
  assert_non_null(out);
  assert_true(cs_write_collapsed(&(struct cs_profile_set){&profile, 1}, out));
  assert_true(cs_write_html(&(struct cs_profile_set){&profile, 1}, out));
  cs_write_top(&profile, 10, "", out);
  (void)fclose(out);
  cs_profile_free(&profile);
}

// A record that is nearly right: a good head, a payload of small numbers and some wild ones.
static void write_nearly(struct cs_consumer *c) {
  uint64_t head = c->header->head, at = head & (RING - 1);
  uint64_t size = 8 + random64() % 40 * 8;
  if (size > RING - at) size = RING - at;
  uint8_t *record = ring_of(c) + at;
  for (uint64_t i = 8; i < size; i++) {
    record[i] = (uint8_t)(random64() % 8 == 0 ? random64() : random64() % 4);
  }
  struct cs_wire_record r = {(uint32_t)size, (uint16_t)(random64() % 12), 0};
  if (random64() % 500 == 0) r.size = (uint32_t)random64();
  memcpy(record, &r, sizeof r);
  c->header->head = head + size;
}

static void nearly_right_records(void **state) {
  (void)state;
  struct cs_consumer c = open_ring();
  static struct cs_recording rec;
  cs_recording_init(&rec);
  seed = 1;
  for (int i = 0; i < 200000; i++) {
    write_nearly(&c);
    if (i % 50 == 49) drain(&c, &rec);
  }
  assert_true(c.broken_records > 0 && rec.broken > 0 && rec.taken > 0);
  write_profile(&rec);
  cs_recording_free(&rec);
  cs_consumer_destroy(&c);
}

static void put(struct cs_consumer *c, enum cs_wire_kind kind, const void *data, size_t size) {
  uint64_t at = c->header->head & (RING - 1), whole = sizeof(struct cs_wire_record) + size;
  struct cs_wire_record r = {(uint32_t)whole, (uint16_t)kind, 0};
  memcpy(ring_of(c) + at, &r, sizeof r);
  memcpy(ring_of(c) + at + sizeof r, data, size);
  c->header->head += whole;
}

static void put_sample(struct cs_consumer *c, uint32_t thread, enum cs_wire_mode mode,
                       uint64_t ip) {
  struct {
    struct cs_wire_sample head;
    uint64_t ip;
  } sample = {{.time_ns = 1,
               .weight = 10,
               .thread = thread,
               .stop = CS_STOP_BASE,
               .mode = (uint16_t)mode,
               .frame_count = 1},
              ip};
  put(c, CS_WIRE_SAMPLE, &sample, sizeof sample);
}

// A repeat record repeats the thread's own last sample of wall mode; nothing is invented for a
// thread that has none.
static void again(void **state) {
  (void)state;
  struct cs_consumer c = open_ring();
  static struct cs_recording rec;
  cs_recording_init(&rec);
  rec.keep_samples = true;
  put(&c, CS_WIRE_REPEAT, &(struct cs_wire_repeat){5, 7, 1, 0}, sizeof(struct cs_wire_repeat));
  put_sample(&c, 1, CS_WIRE_MODE_WALL, 1ull << 32);
  put_sample(&c, 2, CS_WIRE_MODE_WALL, 2ull << 32);
  put_sample(&c, 1, CS_WIRE_MODE_CPU, 3ull << 32);
  put(&c, CS_WIRE_REPEAT, &(struct cs_wire_repeat){20, 19, 1, 0}, sizeof(struct cs_wire_repeat));
  put(&c, CS_WIRE_REPEAT, &(struct cs_wire_repeat){30, 10, 1, 0}, sizeof(struct cs_wire_repeat));
  put(&c, CS_WIRE_REPEAT, &(uint64_t){0}, sizeof(uint64_t));
  drain(&c, &rec);
  assert_int_equal(rec.full, 1);
  assert_int_equal(rec.broken, 1);
  assert_int_equal(rec.sample_count, 5);
  assert_int_equal(rec.samples[3].leaf, rec.samples[0].leaf);
  assert_int_equal(rec.tree.nodes[rec.samples[0].leaf].samples, 3);
  assert_int_equal(rec.tree.nodes[rec.samples[0].leaf].weight, 39);
  assert_int_equal(rec.samples[4].time_ns, 30);
  assert_int_equal(rec.sums[CS_WIRE_MODE_WALL].asleep, 4);
  assert_int_equal(rec.sums[CS_WIRE_MODE_WALL].weight, 49);
  cs_recording_free(&rec);
  cs_consumer_destroy(&c);
}

static void noise(void **state) {
  (void)state;
  struct cs_consumer c = open_ring();
  static struct cs_recording rec;
  cs_recording_init(&rec);
  seed = 2;
  for (int i = 0; i < 300; i++) {
    uint8_t *ring = ring_of(&c);
    for (size_t n = 0; n < RING; n += 8) {
      uint64_t word = random64();
      memcpy(ring + n, &word, 8);
    }
    // Heads that are plausible, odd, before the tail, or far ahead of it.
    uint64_t by = i % 4 == 0   ? random64()
                  : i % 4 == 1 ? random64() % RING
                               : random64() % RING & ~7u;
    c.header->head += i % 4 == 2 ? -by : by;
    c.header->capacity = random64();
    c.header->agent_state = (uint32_t)random64();
    c.header->agent_pid = (uint32_t)random64();
    drain(&c, &rec);
    (void)cs_consumer_agent_state(&c);
  }
  write_profile(&rec);
  cs_recording_free(&rec);
  cs_consumer_destroy(&c);
}

static void message_is_one_line(void **state) {
  (void)state;
  struct cs_consumer c = open_ring();
  char text[sizeof c.header->message];
  memset(c.header->message, 'x', sizeof c.header->message);  // not terminated
  c.header->message[3] = '\n';
  cs_consumer_message(&c, text, sizeof text);
  assert_int_equal(strlen(text), sizeof text - 1);
  assert_memory_equal(text, "xxx xx", 6);
  cs_consumer_destroy(&c);
}

// A producer that pads faster than the consumer reads. It is a thread, since the ring is shared
// memory. It keeps on for many rounds of the ring, not for ever.
static struct {
  struct cs_consumer *consumer;
  uint64_t first;  // where the call began
  bool over;
} race;

static void *pad_ahead(void *context) {
  struct cs_wire_header *header = race.consumer->header;
  while (!cs_load_relaxed(&race.over)) {
    uint64_t tail = cs_load_acquire(&header->tail);
    if (tail - cs_load_acquire(&race.first) < 64 * RING)
      cs_store_release(&header->head, tail + RING);
  }
  return context;
}

// Calls in which the head has not moved meanwhile, as on a single processor, show nothing.
static void endless_padding_ends(void **state) {
  enum { RACED = 20, PATIENCE_S = 120 };
  (void)state;
  struct cs_consumer c = open_ring();
  pthread_t thread;
  struct cs_wire_record pad = {sizeof pad, CS_WIRE_PAD, 0};
  for (size_t at = 0; at < RING; at += sizeof pad) memcpy(ring_of(&c) + at, &pad, sizeof pad);
  race.consumer = &c;
  assert_int_equal(pthread_create(&thread, NULL, pad_ahead, NULL), 0);
  uint64_t most = 0, until = cs_clock_now_ns() + PATIENCE_S * 1000000000ull;
  for (int raced = 0; raced < RACED && cs_clock_now_ns() < until;) {
    cs_store_release(&race.first, c.tail);
    assert_null(cs_consumer_next(&c));
    uint64_t read = c.tail - race.first;
    if (read > RING) raced++;
    if (read > most) most = read;
  }
  cs_store_relaxed(&race.over, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(most, RING + sizeof pad);  // it was ended, after one round of the ring
  cs_consumer_destroy(&c);
}

static void file_is_ours_alone_and_goes(void **state) {
  (void)state;
  struct cs_consumer c = open_ring();
  struct stat st;
  assert_int_equal(stat(c.path, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0600);
  assert_int_equal(st.st_blocks * 512 >= RING, 1);  // its memory is allocated already
  cs_consumer_hide(&c);
  assert_int_equal(stat(c.path, &st), -1);
  cs_consumer_destroy(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nearly_right_records),
      cmocka_unit_test(again),
      cmocka_unit_test(noise),
      cmocka_unit_test(message_is_one_line),
      cmocka_unit_test(endless_padding_ends),
      cmocka_unit_test(file_is_ours_alone_and_goes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
