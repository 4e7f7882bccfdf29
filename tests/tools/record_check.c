// SPDX-License-Identifier: MIT
// record_check LIBRARY MODE HZ STOP_AFTER_MS COMMAND...: runs a command with the agent in it and
// reads the recording as it comes, in a much simpler way than `clrsnap record`. Every record is
// checked against docs/wire-format.md; a violation is a line that begins with FAIL. Then follows
// one line for each thread, method, image and reason, for a script to read:
//   thread TID SAMPLES WEIGHT_MS NAME       leaf SAMPLES NAME     method SAMPLES NAME (anywhere)
//   image SAMPLES PATH                      stop SAMPLES REASON   state NUMBER MESSAGE
//   total records R samples S lost_ring L lost_wire W signals G ends E starts T exit C asleep A
//   cut D repeated B suspensions E
// STOP_AFTER_MS 0: the agent is not asked to stop. One thread.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stop.h"
#include "wire/consumer.h"
#include "wire/decode.h"

enum { MAX_IDS = 1 << 16, GRACE_MS = 3000 };

struct thing {  // a thread, a method or an image
  bool known, seen;
  uint32_t tid;
  uint64_t samples, leaves, weight;
  char name[1024];
};
static struct thing threads[MAX_IDS], functions[MAX_IDS], images[MAX_IDS];
static uint64_t stops[CS_STOP_COUNT], records, asleep, asleep_cut, repeated, unknown_frames;
static struct cs_wire_record *last_wall[MAX_IDS];  // of each thread, a copy
static unsigned starts, ends, failures;
static struct cs_wire_end end;
static struct cs_wire_stops stops_told;
static struct cs_wire_put_off put_off_told;
static struct cs_wire_ticks ticks_told;
static struct cs_wire_times times_told;
static struct cs_wire_lost_signals lost_signals_told;
static struct cs_wire_small_stacks small_stacks_told;
static struct cs_wire_engine engine_told;
static struct cs_text engine_text[CS_ENGINE_TEXTS];
static struct cs_wire_events events_told;
static struct cs_wire_start start;
static uint32_t max_depth = 512;

static void broken(const char *what, uint64_t value) {
  if (failures++ < 20) (void)fprintf(stderr, "FAIL %s (%lu)\n", what, (unsigned long)value);
}
static void check(bool ok, const char *what, uint64_t value) {
  if (!ok) broken(what, value);
}

static struct thing *at(struct thing *things, uint32_t id, const char *what) {
  check(id < MAX_IDS, what, id);
  return &things[id % MAX_IDS];
}
static void add_text(char *to, size_t cap, const struct cs_text *text) {
  size_t used = strlen(to), len = text->len < cap - used - 1 ? text->len : cap - used - 1;
  memcpy(to + used, text->data, len);
  to[used + len] = '\0';
}
static void add_string(char *to, size_t cap, const char *string) {
  struct cs_text text = {string, strlen(string)};
  add_text(to, cap, &text);
}

static void take_function(const struct cs_wire_record *r) {
  struct cs_wire_function f;
  struct cs_text text[CS_FN_TEXTS];
  if (!cs_decode_function(r, &f, text)) {
    broken("a function cannot be decoded", r->size);
    return;
  }
  struct thing *t = at(functions, f.id, "function id");
  check(!t->known, "a function's id is used twice", f.id);
  check(f.kind <= CS_WIRE_FN_TYPE, "a function's kind", f.kind);
  t->known = true;
  add_text(t->name, sizeof t->name, &text[CS_FN_NAMESPACE]);
  if (text[CS_FN_NAMESPACE].len > 0) add_string(t->name, sizeof t->name, ".");
  add_text(t->name, sizeof t->name, &text[CS_FN_TYPE]);
  if (text[CS_FN_TYPE].len > 0) add_string(t->name, sizeof t->name, ".");
  add_text(t->name, sizeof t->name, &text[CS_FN_METHOD]);
  add_text(t->name, sizeof t->name, &text[CS_FN_SIGNATURE]);
}

static void take_thread(const struct cs_wire_record *r) {
  struct cs_wire_thread record;
  struct cs_text name;
  if (!cs_decode_thread(r, &record, &name)) {
    broken("a thread cannot be decoded", r->size);
    return;
  }
  struct thing *t = at(threads, record.id, "thread id");
  check(!t->known || t->tid == record.tid, "a thread's id is used twice", record.id);
  t->known = true;
  t->tid = record.tid;
  t->name[0] = '\0';
  add_text(t->name, sizeof t->name, &name);
}

static void take_image(const struct cs_wire_record *r) {
  struct cs_wire_image record;
  struct cs_text path;
  if (!cs_decode_image(r, &record, &path)) {
    broken("an image cannot be decoded", r->size);
    return;
  }
  struct thing *t = at(images, record.id, "image id");
  check(!t->known, "an image's id is used twice", record.id);
  t->known = true;
  add_text(t->name, sizeof t->name, &path);
}

static struct thing *thing_of(uint64_t frame) {
  switch (CS_WIRE_FRAME_KIND(frame)) {
    case CS_WIRE_FRAME_MANAGED:
      return at(functions, cs_wire_frame_function(frame), "function id");
    case CS_WIRE_FRAME_NATIVE:
      return at(images, cs_wire_frame_image(frame), "image id");
    default:
      check(CS_WIRE_FRAME_KIND(frame) == CS_WIRE_FRAME_UNKNOWN, "a frame's kind", frame);
      unknown_frames++;
      return NULL;
  }
}

// A native thread reports its registers when it gets a processor: until half a second later, its
// samples may be cut.
static void count_asleep_cut(const struct cs_wire_sample *s) {
  enum { PATIENCE_NS = 500000000 };
  static uint64_t since[MAX_IDS];  // 0: the last one was not cut
  uint64_t *from = &since[s->thread % MAX_IDS];
  bool cut = s->held_ns == 0 && s->stop == CS_STOP_ASLEEP;
  if (!cut)
    *from = 0;
  else if (*from == 0)
    *from = s->time_ns + 1;
  else
    asleep_cut += s->time_ns > *from + PATIENCE_NS;
}

static void take_sample(const struct cs_wire_record *r) {
  struct cs_wire_sample s;
  const uint64_t *frames;
  const struct cs_label *label;
  if (!cs_decode_sample(r, &s, &frames, &label)) {
    broken("a sample cannot be decoded", r->size);
    return;
  }
  records++;
  check(starts == 1 && ends == 0, "a sample before the start or after the end", records);
  check(s.stop > CS_STOP_NONE && s.stop < CS_STOP_COUNT, "a sample's reason to end", s.stop);
  check(s.frame_count <= max_depth, "a sample's depth", s.frame_count);
  check(s.frame_count > 0 || s.stop != CS_STOP_BASE, "a complete walk without a frame", 0);
  check(s.weight > 0 && s.weight < 60000000000u, "a sample's weight", s.weight);
  check(s.time_ns < 600000000000u, "a sample's time", s.time_ns);
  check((start.modes & CS_WIRE_MODE_BIT(s.mode)) != 0, "a sample's mode", s.mode);
  asleep += s.held_ns == 0;
  count_asleep_cut(&s);
  check(s.held_ns > 0 ||
            (s.mode == CS_WIRE_MODE_WALL && (s.stop == CS_STOP_BASE || s.stop == CS_STOP_ASLEEP)),
        "a sleeper's sample that is cut, or in CPU mode", s.stop);
  if (s.stop < CS_STOP_COUNT) stops[s.stop]++;
  struct thing *t = at(threads, s.thread, "thread id");
  check(t->known, "a sample of a thread that has no record yet", s.thread);
  t->samples++;
  t->weight += s.weight;
  for (uint32_t i = 0; i < s.frame_count; i++) {
    struct thing *f = thing_of(frames[i]);
    if (f == NULL) continue;
    check(f->known, "a frame of something that has no record yet", frames[i]);
    if (i == 0) f->leaves++;
    f->samples += !f->seen;
    f->seen = true;
  }
  for (uint32_t i = 0; i < s.frame_count; i++) {
    struct thing *f = thing_of(frames[i]);
    if (f != NULL) f->seen = false;
  }
}

static void keep_wall(const struct cs_wire_record *r) {
  struct cs_wire_sample s;
  memcpy(&s, r + 1, sizeof s);
  if (s.mode != CS_WIRE_MODE_WALL || s.thread >= MAX_IDS) return;
  free(last_wall[s.thread]);
  last_wall[s.thread] = malloc(r->size);
  if (last_wall[s.thread] == NULL) abort();
  memcpy(last_wall[s.thread], r, r->size);
}

static void take_again(const struct cs_wire_record *r) {
  struct cs_wire_repeat again;
  struct cs_wire_sample s;
  bool good = CS_DECODE(r, CS_WIRE_REPEAT, &again) && again.thread < MAX_IDS;
  struct cs_wire_record *last = good ? last_wall[again.thread] : NULL;
  check(last != NULL, "a repeated sample of a thread that has none", r->size);
  if (last == NULL) return;
  memcpy(&s, last + 1, sizeof s);
  check(s.held_ns == 0, "a repeated sample of a thread that did not sleep", s.thread);
  check(again.time_ns >= s.time_ns, "a sample repeated before its time", again.time_ns);
  s.time_ns = again.time_ns;
  s.weight = again.weight;
  memcpy(last + 1, &s, sizeof s);
  take_sample(last);
  repeated++;
}

static void take(const struct cs_wire_record *r) {
  struct cs_text runtime;
  switch (r->kind) {
    case CS_WIRE_START:
      check(cs_decode_start(r, &start, &runtime) && starts == 0, "the start", starts);
      starts++;
      check(runtime.len >= 6 && memcmp(runtime.data, "10.0.", 5) == 0, "the runtime", runtime.len);
      check(start.processors > 0, "the processors", start.processors);
      break;
    case CS_WIRE_THREAD:
      take_thread(r);
      break;
    case CS_WIRE_FUNCTION:
      take_function(r);
      break;
    case CS_WIRE_IMAGE:
      take_image(r);
      break;
    case CS_WIRE_SAMPLE:
      take_sample(r);
      keep_wall(r);
      break;
    case CS_WIRE_REPEAT:
      take_again(r);
      break;
    case CS_WIRE_END:
      check(CS_DECODE(r, CS_WIRE_END, &end) && ends == 0, "the end", ends);
      ends++;
      break;
    case CS_WIRE_EVENTS:
      check(cs_decode_events(r, &events_told) && events_told.walked <= events_told.events, "EVENTS",
            events_told.mode);
      break;
    case CS_WIRE_TICKS:
      check(CS_DECODE(r, CS_WIRE_TICKS, &ticks_told) &&
                ticks_told.left_out + ticks_told.uncovered_ns + ticks_told.native > 0,
            "TICKS", ticks_told.taken);
      break;
    case CS_WIRE_TIMES:
      check(CS_DECODE(r, CS_WIRE_TIMES, &times_told) && times_told.process_ns > 0, "TIMES",
            times_told.process_ns);
      break;
    case CS_WIRE_ENGINE:
      check(cs_decode_engine(r, &engine_told, engine_text) && engine_told.used != 0, "ENGINE",
            engine_told.used);
      break;
    case CS_WIRE_PUT_OFF:
      check(CS_DECODE(r, CS_WIRE_PUT_OFF, &put_off_told) &&
                put_off_told.samples + put_off_told.events > 0,
            "PUT_OFF", put_off_told.samples);
      break;
    case CS_WIRE_LOST_SIGNALS:
      check(CS_DECODE(r, CS_WIRE_LOST_SIGNALS, &lost_signals_told) &&
                lost_signals_told.unsent + lost_signals_told.silent > 0,
            "LOST_SIGNALS", lost_signals_told.silent);
      break;
    case CS_WIRE_SMALL_STACKS:
      check(CS_DECODE(r, CS_WIRE_SMALL_STACKS, &small_stacks_told) &&
                small_stacks_told.small + small_stacks_told.unknown > 0,
            "SMALL_STACKS", small_stacks_told.small);
      break;
    case CS_WIRE_STOPS:
      check(CS_DECODE(r, CS_WIRE_STOPS, &stops_told) &&
                stops_told.threads + stops_told.unsampled_ns > 0,
            "STOPS", stops_told.threads);
      break;
    default:
      broken("a record of an unknown kind", r->kind);
  }
}

static pid_t launch(const char *library, const char *shm, char **argv) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  (void)setenv("CORECLR_ENABLE_PROFILING", "1", 1);
  (void)setenv("CORECLR_PROFILER", "{8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}", 1);
  (void)setenv("CORECLR_PROFILER_PATH", library, 1);
  (void)setenv(CS_WIRE_ENV, shm, 1);
  (void)execvp(argv[0], argv);
  _exit(127);
}

static void print_things(const char *what, const struct thing *things, bool leaves) {
  for (uint32_t i = 0; i < MAX_IDS; i++) {
    const struct thing *t = &things[i];
    uint64_t n = leaves ? t->leaves : t->samples;
    if (t->known && n > 0) printf("%s %lu %s\n", what, (unsigned long)n, t->name);
  }
}

static void print_all(const struct cs_consumer *consumer, int code) {
  char message[256];
  for (uint32_t i = 0; i < MAX_IDS; i++) {
    const struct thing *t = &threads[i];
    if (t->known)
      printf("thread %u %lu %lu %s\n", t->tid, (unsigned long)t->samples,
             (unsigned long)(t->weight / 1000000), t->name);
  }
  print_things("leaf", functions, true);
  print_things("method", functions, false);
  print_things("image", images, false);
  for (int i = 0; i < CS_STOP_COUNT; i++) {
    if (stops[i] > 0)
      printf("stop %lu %s\n", (unsigned long)stops[i], cs_stop_token((enum cs_stop)i));
  }
  cs_consumer_message(consumer, message, sizeof message);
  printf("unknown %lu\n", (unsigned long)unknown_frames);
  printf("state %d %s\n", (int)cs_consumer_agent_state(consumer), message);
  printf(
      "total records %lu samples %lu lost_ring %lu lost_wire %lu signals %lu ends %u starts %u "
      "exit %d asleep %lu cut %lu repeated %lu suspensions %lu\n",
      (unsigned long)records, (unsigned long)end.samples, (unsigned long)end.lost_ring,
      (unsigned long)end.lost_wire, (unsigned long)end.signals, ends, starts, code,
      (unsigned long)asleep, (unsigned long)asleep_cut, (unsigned long)repeated,
      (unsigned long)end.runtime_suspensions);
}

static void take_all(struct cs_consumer *consumer) {
  const struct cs_wire_record *record;
  while ((record = cs_consumer_next(consumer)) != NULL) take(record);
}

// By attach: the command is run with RECORD_CHECK_INVITATION, a file that it passes to the process
// as client data. Before that it writes the number of that process to RECORD_CHECK_PID.
static struct cs_wire_invitation invitation;

static bool write_invitation(void) {
  const char *path = getenv("RECORD_CHECK_INVITATION");
  FILE *file = path != NULL ? fopen(path, "wb") : NULL;
  bool good = file != NULL && fwrite(&invitation, sizeof invitation, 1, file) == 1;
  return file != NULL && fclose(file) == 0 && good;
}

static void meet(struct cs_consumer *consumer) {
  struct cs_error err;
  int pid = 0;
  FILE *file = fopen(getenv("RECORD_CHECK_PID"), "r");
  if (file == NULL) return;
  if (fscanf(file, "%d", &pid) == 1 && pid > 0)
    (void)cs_consumer_take(consumer, pid, &invitation, &err);
  (void)fclose(file);
}

// Runs until the program has ended and everything that it has written has been read.
static int follow(struct cs_consumer *consumer, pid_t pid, uint64_t stop_ms) {
  uint64_t stop_at = cs_clock_now_ns() + stop_ms * 1000000u;
  int status = 0;
  for (bool over = false; !over;) {
    over = waitpid(pid, &status, WNOHANG) == pid;
    if (consumer->header == NULL) meet(consumer);
    if (consumer->header == NULL) {
      struct timespec nap = {0, 1000000};
      (void)nanosleep(&nap, NULL);
      continue;
    }
    take_all(consumer);
    if (cs_consumer_agent_pid(consumer) != 0) cs_consumer_hide(consumer);
    if (stop_ms != 0 && cs_clock_now_ns() > stop_at) cs_consumer_stop(consumer);
    struct timespec nap = {0, 5000000};
    if (!over) (void)nanosleep(&nap, NULL);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv) {
  static struct cs_consumer consumer;
  struct cs_error err = {""};
  if (argc < 6) {
    (void)fprintf(stderr, "usage: record_check LIBRARY cpu|wall HZ STOP_AFTER_MS COMMAND...\n");
    return 2;
  }
  struct cs_consumer_opts opts = {
      .capacity = 1 << 22,
      .modes =
          CS_WIRE_MODE_BIT(strcmp(argv[2], "wall") == 0 ? CS_WIRE_MODE_WALL : CS_WIRE_MODE_CPU),
      .hz = (uint32_t)strtoul(argv[3], NULL, 10),
      .max_depth = max_depth,
  };
  bool attached = getenv("RECORD_CHECK_PID") != NULL;
  bool made = attached
                  ? cs_consumer_invite(&consumer, &opts, &invitation, &err) && write_invitation()
                  : cs_consumer_create(&consumer, &opts, &err);
  if (!made) {
    (void)fprintf(stderr, "record_check: %s\n", err.text);
    return 1;
  }
  pid_t pid = launch(argv[1], consumer.path, argv + 5);
  int code = pid > 0 ? follow(&consumer, pid, strtoul(argv[4], NULL, 10)) : 127;
  check(consumer.broken_records == 0, "broken records", consumer.broken_records);
  if (ends == 1) {
    check(end.samples == records + end.lost_wire, "samples = records + lost_wire", end.samples);
    check(end.signals + end.asleep + end.events == end.samples + end.lost_ring,
          "signals + asleep + events = samples + lost_ring", end.signals);
    check(end.asleep >= asleep, "asleep", end.asleep);
    // A thread is asked for its registers at most every 50 ms; until then its walk may be cut.
    check(asleep_cut * 100 <= asleep + 500, "sleepers' samples that are cut", asleep_cut);
  }
  print_all(&consumer, code);
  cs_consumer_destroy(&consumer);
  return failures == 0 ? 0 : 1;
}
