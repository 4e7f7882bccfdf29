// SPDX-License-Identifier: MIT
// The two ends of the recording's shared memory, tested against each other in one process.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sealed.h"
#include "wire/consumer.h"
#include "wire/decode.h"
#include "wire/producer.h"

static struct cs_consumer consumer;
static struct cs_producer producer;
static struct cs_error err;

static int setup(void **state) {
  (void)state;
  struct cs_consumer_opts opts = {
      .capacity = 65536, .modes = CS_WIRE_MODE_CPU, .hz = 997, .max_depth = 512};
  memset(&err, 0, sizeof err);
  return cs_consumer_create(&consumer, &opts, &err) ? 0 : -1;
}
static int teardown(void **state) {
  (void)state;
  cs_producer_close(&producer);
  cs_consumer_destroy(&consumer);
  return 0;
}
static void open_and_claim(void) {
  if (!cs_producer_open(&producer, consumer.path, &err)) fail_msg("%s", err.text);
  assert_true(cs_producer_claim(&producer));
}

static void assert_text(const struct cs_text *text, const char *want) {
  assert_int_equal(text->len, strlen(want));
  assert_memory_equal(text->data, want, text->len);
}

static void records_arrive(void **state) {
  (void)state;
  open_and_claim();
  assert_int_equal(cs_consumer_agent_pid(&consumer), getpid());
  cs_producer_set_state(&producer, CS_WIRE_AGENT_RECORDING);
  assert_int_equal(cs_consumer_agent_state(&consumer), CS_WIRE_AGENT_RECORDING);

  struct cs_wire_function f = {7, CS_WIRE_FN_METHOD, 0x06000001}, f2;
  const char *strings[] = {"app.dll", "Shop", "Cart<T>", "Add", NULL};
  struct cs_text text[CS_FN_TEXTS];
  assert_true(cs_producer_put(&producer, CS_WIRE_FUNCTION, &f, sizeof f, strings, 5));
  const struct cs_wire_record *r = cs_consumer_next(&consumer);
  assert_non_null(r);
  assert_true(cs_decode_function(r, &f2, text));
  assert_int_equal(f2.id, 7);
  for (int i = 0; i < 4; i++) assert_text(&text[i], strings[i]);
  assert_text(&text[4], "");

  struct cs_wire_sample s = {.time_ns = 5, .thread = 3, .stop = 1, .frame_count = 3}, s2;
  const uint64_t *frames;
  const struct cs_label label = {{1, 2, 3}, {4, 5}, 6}, *label2;
  for (const struct cs_label *with = NULL;; with = &label) {
    uint64_t *out = cs_producer_begin_sample(&producer, &s, with);
    assert_non_null(out);
    for (uint64_t i = 0; i < 3; i++) out[i] = i << 60 | i;
    assert_null(cs_consumer_next(&consumer));  // not yet
    cs_producer_commit_sample(&producer, &s, with);
    r = cs_consumer_next(&consumer);
    assert_non_null(r);
    assert_true(cs_decode_sample(r, &s2, &frames, &label2));
    assert_memory_equal(&s, &s2, sizeof s);
    for (uint64_t i = 0; i < 3; i++) assert_int_equal(frames[i], i << 60 | i);
    assert_true((label2 == NULL) == (with == NULL));
    if (with != NULL) break;
  }
  assert_memory_equal(label2, &label, sizeof label);
  // A label that its record has no room for.
  struct {
    struct cs_wire_record head;
    struct cs_wire_sample sample;
    uint64_t frames[3];
  } cut = {{sizeof cut, CS_WIRE_SAMPLE, CS_WIRE_LABELLED}, s, {0}};
  assert_false(cs_decode_sample(&cut.head, &s2, &frames, &label2));
}

// The ring wraps many times: every record that fits arrives, in order, and every other one is
// counted.
static void a_slow_consumer_loses_records_and_knows_it(void **state) {
  (void)state;
  open_and_claim();
  uint32_t random = 1, put = 0, refused = 0, got = 0;
  for (uint32_t i = 0; i < 50000; i++) {
    random = random * 1664525u + 1013904223u;
    char name[600];
    uint32_t len = (random >> 16) % sizeof name;
    memset(name, 'a' + (int)(put % 26), sizeof name);
    name[len == 0 ? 0 : len - 1] = '\0';
    const char *strings[] = {name};
    struct cs_wire_thread t = {put, len}, t2;
    if (cs_producer_put(&producer, CS_WIRE_THREAD, &t, sizeof t, strings, 1))
      put++;
    else
      refused++;
    struct cs_text text;
    const struct cs_wire_record *r;
    while ((random >> 8) % 37 == 0 && (r = cs_consumer_next(&consumer)) != NULL) {
      assert_true(cs_decode_thread(r, &t2, &text));
      assert_int_equal(t2.id, got);
      assert_int_equal(text.len, t2.tid == 0 ? 0 : t2.tid - 1);
      for (size_t b = 0; b < text.len; b++) assert_int_equal(text.data[b], 'a' + (int)(got % 26));
      got++;
    }
  }
  assert_true(refused > 0 && put > 10000);
  assert_int_equal(cs_consumer_lost(&consumer), refused);
  while (cs_consumer_next(&consumer) != NULL) got++;
  assert_int_equal(got, put);
  assert_int_equal(consumer.broken_records, 0);
}

static void there_is_always_room_for_the_end(void **state) {
  (void)state;
  for (uint32_t odd = 0; odd < 40; odd++) {  // the ring's end falls at every offset
    assert_int_equal(setup(NULL), 0);
    open_and_claim();
    char name[320];
    memset(name, 'x', sizeof name);
    name[odd * 8] = '\0';
    struct cs_wire_thread t = {1, 1};
    const char *strings[] = {name};
    while (cs_producer_put(&producer, CS_WIRE_THREAD, &t, sizeof t, strings, 1)) {
      if (odd % 2 == 0 && producer.head < 30000) (void)cs_consumer_next(&consumer);
    }
    struct cs_wire_end end = {.samples = 42}, seen = {0};
    assert_true(cs_producer_put(&producer, CS_WIRE_END, &end, sizeof end, NULL, 0));
    const struct cs_wire_record *r;
    while ((r = cs_consumer_next(&consumer)) != NULL) (void)CS_DECODE(r, CS_WIRE_END, &seen);
    assert_int_equal(seen.samples, 42);
    assert_int_equal(teardown(NULL), 0);
  }
}

static void long_strings_are_cut_between_characters(void **state) {
  (void)state;
  struct cs_consumer_opts opts = {
      .capacity = 1 << 18, .modes = CS_WIRE_MODE_CPU, .hz = 997, .max_depth = 512};
  cs_consumer_destroy(&consumer);
  assert_true(cs_consumer_create(&consumer, &opts, &err));
  open_and_claim();
  static char name[70001];
  memset(name, 'x', sizeof name - 1);
  memcpy(name + 65534, "\xC3\xA9", 2);  // its second byte would be number 65,536
  struct cs_wire_thread t = {1, 1};
  const char *strings[] = {name};
  struct cs_text text;
  assert_true(cs_producer_put(&producer, CS_WIRE_THREAD, &t, sizeof t, strings, 1));
  assert_true(cs_decode_thread(cs_consumer_next(&consumer), &t, &text));
  assert_int_equal(text.len, 65534);
}

static void only_one_process_writes(void **state) {
  (void)state;
  open_and_claim();
  struct cs_producer second;
  assert_true(cs_producer_open(&second, consumer.path, &err));
  assert_false(cs_producer_claim(&second));
  cs_producer_close(&second);
  pid_t child = fork();
  if (child == 0) {
    struct cs_wire_thread t = {1, 1};
    _exit(cs_producer_put(&producer, CS_WIRE_THREAD, &t, sizeof t, NULL, 0) ? 1 : 0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_null(cs_consumer_next(&consumer));
}

static void refused(const char *path) {
  memset(&err, 0, sizeof err);
  assert_false(cs_producer_open(&producer, path, &err));
  assert_true(strlen(err.text) > 10);
  assert_null(producer.header);
}

static void strange_files_are_refused(void **state) {
  (void)state;
  refused("/nonexistent");
  refused("/dev/null");
  refused("/tmp");
  assert_int_equal(chmod(consumer.path, 0640), 0);
  refused(consumer.path);
  assert_int_equal(chmod(consumer.path, 0600), 0);
  consumer.header->version++;
  refused(consumer.path);
  consumer.header->version--;
  consumer.header->capacity *= 2;  // larger than the file
  refused(consumer.path);
  consumer.header->capacity = 65535;
  refused(consumer.path);
  consumer.header->capacity = 65536;
  consumer.header->magic++;
  refused(consumer.path);
  consumer.header->magic--;
}

// Neither end can take the memory away from the other, nor can any other process.
static void nobody_changes_the_size(void **state) {
  (void)state;
  struct stat st;
  assert_int_equal(truncate(consumer.path, 100), -1);
  assert_int_equal(truncate(consumer.path, 1 << 30), -1);
  assert_int_equal(stat(consumer.path, &st), 0);
  assert_int_equal(st.st_size, CS_WIRE_HEADER_BYTES + 65536);
}

// As for an attach, but within one process: the memory is found and checked.
static struct cs_wire_invitation invite(struct cs_consumer *c, uint64_t capacity) {
  struct cs_consumer_opts opts = {.capacity = capacity, .modes = 2, .hz = 997, .max_depth = 64};
  struct cs_wire_invitation invitation;
  assert_true(cs_consumer_invite(c, &opts, &invitation, &err));
  return invitation;
}

static void memory_upon_an_invitation(void **state) {
  (void)state;
  struct cs_consumer theirs;
  struct cs_wire_invitation invitation = invite(&theirs, 65536);
  assert_false(cs_consumer_take(&theirs, getpid(), &invitation, &err));
  assert_true(cs_producer_make(&producer, &invitation, sizeof invitation, &err));
  assert_int_equal(producer.header->hz, 997);
  assert_false(cs_producer_command_lives(&producer));
  assert_true(cs_consumer_take(&theirs, getpid(), &invitation, &err));
  assert_true(cs_producer_wait_for_command(&producer, 1));
  assert_true(cs_producer_claim(&producer));
  struct cs_wire_thread t = {7, 8};
  const char *strings[] = {"one"};
  assert_true(cs_producer_put(&producer, CS_WIRE_THREAD, &t, sizeof t, strings, 1));
  assert_non_null(cs_consumer_next(&theirs));
  cs_consumer_destroy(&theirs);
  assert_false(cs_producer_command_lives(&producer));
}

// A ring that cannot be made still has a head with the reason; for another release there is not
// even that.
static void too_much_is_refused_in_words(void **state) {
  (void)state;
  struct cs_consumer theirs;
  char message[256];
  struct cs_wire_invitation invitation = invite(&theirs, 1ull << 60);
  assert_false(cs_producer_make(&producer, &invitation, sizeof invitation, &err));
  assert_non_null(producer.header);
  assert_true(cs_consumer_take(&theirs, getpid(), &invitation, &err));
  assert_int_equal(theirs.capacity, 0);
  cs_producer_refuse(&producer, "no room");
  cs_consumer_message(&theirs, message, sizeof message);
  assert_string_equal(message, "no room");
  assert_null(cs_consumer_next(&theirs));
  cs_consumer_destroy(&theirs);
  cs_producer_close(&producer);
  assert_false(cs_producer_make(&producer, &invitation, 16, &err));
  assert_null(producer.header);
}

// A process hands over something other than sealed memory of the announced size.
static void false_memory_is_not_taken(void **state) {
  (void)state;
  struct cs_consumer theirs;
  struct cs_wire_invitation invitation = invite(&theirs, 65536);
  int fd = memfd_create(invitation.name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert_int_equal(fchmod(fd, 0600), 0);
  assert_int_equal(ftruncate(fd, CS_WIRE_HEADER_BYTES + 65536), 0);
  assert_int_equal(pwrite(fd, &invitation.header, sizeof invitation.header, 0),
                   sizeof invitation.header);
  assert_false(cs_consumer_take(&theirs, getpid(), &invitation, &err));
  assert_non_null(strstr(err.text, "not sealed"));
  assert_int_equal(ftruncate(fd, CS_WIRE_HEADER_BYTES + 4096), 0);
  assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  assert_false(cs_consumer_take(&theirs, getpid(), &invitation, &err));
  assert_non_null(strstr(err.text, "bytes"));
  (void)close(fd);
  invitation = invite(&theirs, 65536);
  fd = cs_sealed_make(invitation.name, CS_WIRE_HEADER_BYTES + 65536, &err);
  assert_false(cs_consumer_take(&theirs, getpid(), &invitation, &err));  // an empty head
  invitation.header.version++;
  assert_int_equal(pwrite(fd, &invitation.header, sizeof invitation.header, 0),
                   sizeof invitation.header);
  assert_false(cs_consumer_take(&theirs, getpid(), &invitation, &err));
  assert_non_null(strstr(err.text, "of one release"));
  (void)close(fd);
}

// A file limit would otherwise end the process by a signal.
static void a_file_limit_is_obeyed(void **state) {
  (void)state;
  struct rlimit old, none = {4096, RLIM_INFINITY};
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  none.rlim_max = old.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
  int fd = cs_sealed_make("limited", 65536, &err);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_equal(fd, -1);
  assert_non_null(strstr(err.text, "ulimit -f"));
}

static void a_wild_tail_costs_records_and_no_more(void **state) {
  (void)state;
  open_and_claim();
  struct cs_wire_thread t = {1, 1};
  for (uint64_t tail = 1; tail != 0; tail <<= 1) {
    consumer.header->tail = tail;
    bool fits = cs_producer_put(&producer, CS_WIRE_THREAD, &t, sizeof t, NULL, 0);
    assert_true(fits == (producer.head - tail <= 65536) || producer.head < 2000);
  }
}

// The program has closed the file, and has one of its own under that number.
static void without_its_file_the_command_is_listened_to(void **state) {
  (void)state;
  enum { SECOND_NS = 1000000000 };
  open_and_claim();
  int fd = cs_own_file_fd(&producer.file), mine = memfd_create("program", MFD_CLOEXEC);
  assert_true(fd >= 0 && mine >= 0 && dup2(mine, fd) == fd);
  assert_true(cs_producer_command_lives(&producer));
  producer.alive_ns -= 59ull * SECOND_NS;
  cs_consumer_publish_cpu(&consumer);
  assert_true(cs_producer_command_lives(&producer));
  producer.alive_ns -= 61ull * SECOND_NS;
  assert_false(cs_producer_command_lives(&producer));
  for (uint64_t was = producer.alive_cpu_ns; consumer.header->command_cpu_ns == was;)
    cs_consumer_publish_cpu(&consumer);
  assert_true(cs_producer_command_lives(&producer));
  cs_producer_close(&producer);
  assert_true(fcntl(fd, F_GETFD) >= 0);
  assert_true(close(fd) == 0 && close(mine) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(records_arrive, setup, teardown),
      cmocka_unit_test_setup_teardown(a_slow_consumer_loses_records_and_knows_it, setup, teardown),
      cmocka_unit_test(there_is_always_room_for_the_end),
      cmocka_unit_test_setup_teardown(long_strings_are_cut_between_characters, setup, teardown),
      cmocka_unit_test_setup_teardown(only_one_process_writes, setup, teardown),
      cmocka_unit_test_setup_teardown(strange_files_are_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(nobody_changes_the_size, setup, teardown),
      cmocka_unit_test_setup_teardown(memory_upon_an_invitation, setup, teardown),
      cmocka_unit_test_setup_teardown(too_much_is_refused_in_words, setup, teardown),
      cmocka_unit_test(false_memory_is_not_taken),
      cmocka_unit_test(a_file_limit_is_obeyed),
      cmocka_unit_test_setup_teardown(without_its_file_the_command_is_listened_to, setup, teardown),
      cmocka_unit_test_setup_teardown(a_wild_tail_costs_records_and_no_more, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
