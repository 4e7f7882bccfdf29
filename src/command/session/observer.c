// SPDX-License-Identifier: MIT
// The observer: one scan in each period of time, at a random moment of it, and what was seen as
// records. Invariants: the periods have no gaps, so that a scan stands for its period, and one that
// failed is made up for by the next; a period is long enough that stops take one hundredth of the
// time, and the observer a twentieth of a processor's; nothing is written, and nothing waited for,
// while the process is stopped. One thread. Signal-safe: no.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "async/async.h"
#include "base/clock.h"
#include "base/hash.h"
#include "process/proc.h"
#include "session/scans.h"

enum {
  FIRST_FUNCTION = 0x3FFFFFFF,  // ids go down from here; the agent's go up from 1
  STOPS_SHARE = 100,            // of the time, one part is stops
  CPU_SHARE = 20,
  MOST_FAILURES = 10,  // one after the other
  TRIES = 5,
  MOST_FRAMES = 1024,
  MOST_NAME = 8192,
};
#define THREAD_ID 0xFFFFFFFEu  // in place of a thread
#define THREAD_NAME "suspended operations"
#define FIRST_PERIOD_NS 500000000ull
#define LEAST_PERIOD_NS 200000000ull
#define MOST_PERIOD_NS 60000000000ull
// A scan that takes longer would be incomplete, and is not used; nor is one for which a thread does
// not stop.
static const double stop_limit_s = 0.25;
#define STOP_PATIENCE_NS 100000000ull

struct observer {
  int to;
  pid_t pid;
  struct cs_scans_ask ask;
  struct cs_strings functions, places;  // that were announced
  struct cs_map routes;                 // ids of functions, by number of the recording's endpoint
  uint8_t *bytes;                       // records that are to be written
  size_t used, capacity;
  size_t record;          // where the one that is being made begins
  uint64_t *step_frames;  // of the scan at hand, by step; 0: not asked for yet
  struct cs_wire_scans totals;
  double unread;  // operations whose contexts could not be read, in all scans
  char why[sizeof((struct cs_error *)0)->text];
  uint64_t frames[MOST_FRAMES];  // of the sample at hand, leaf first
};

// ---- Records ----

static void put(struct observer *l, const void *data, size_t size) {
  if (l->capacity - l->used < size) {
    l->capacity = 2 * l->capacity + size;
    l->bytes = realloc(l->bytes, l->capacity);
    if (l->bytes == NULL) abort();
  }
  if (size > 0) memcpy(l->bytes + l->used, data, size);
  l->used += size;
}

static void put_text(struct observer *l, const char *text) {
  size_t all = strlen(text);
  uint16_t len = (uint16_t)(all < MOST_NAME ? all : MOST_NAME);
  put(l, &len, sizeof len);
  put(l, text, len);
}

static void begin(struct observer *l, uint16_t kind, uint16_t flags) {
  l->record = l->used;
  put(l, &(struct cs_wire_record){0, kind, flags}, sizeof(struct cs_wire_record));
}

static void end(struct observer *l) {
  static const uint8_t zeros[8];
  put(l, zeros, (8 - l->used % 8) % 8);
  uint32_t size = (uint32_t)(l->used - l->record);
  memcpy(l->bytes + l->record, &size, sizeof size);
}

// Returns false if the command is gone.
static bool send_all(struct observer *l) {
  size_t at = 0;
  while (at < l->used) {
    ssize_t sent = write(l->to, l->bytes + at, l->used - at);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) at += (size_t)sent;
  }
  l->used = 0;
  return true;
}

static void put_totals(struct observer *l) {
  begin(l, CS_WIRE_SCANS, 0);
  put(l, &l->totals, sizeof l->totals);
  put_text(l, l->why);
  end(l);
}

// ---- Frames ----

// Returns where "Space.Type.Method" has its method: after the last dot outside of "<...>".
static size_t method_at(const char *name) {
  size_t at = 0;
  int depth = 0;
  for (size_t i = 0; name[i] != '\0'; i++) {
    if (name[i] == '<') depth++;
    if (name[i] == '>') depth--;
    if (name[i] == '.' && depth == 0 && i > 0) at = i + 1;
  }
  return at;
}

static void put_function(struct observer *l, uint32_t id, const struct cs_async_step *step,
                         const char *name) {
  bool is_method = step->module[0] != '\0';
  begin(l, CS_WIRE_FUNCTION, 0);
  put(l, &(struct cs_wire_function){id, is_method ? CS_WIRE_FN_METHOD : CS_WIRE_FN_TYPE, 0},
      sizeof(struct cs_wire_function));
  char type[MOST_NAME];
  size_t at = is_method ? method_at(name) : 0;
  (void)snprintf(type, sizeof type, "%.*s", at > 0 ? (int)at - 1 : 0, name);
  put_text(l, step->module);
  put_text(l, "");
  put_text(l, is_method ? type : name);
  put_text(l, is_method ? name + at : "");
  put_text(l, "");
  end(l);
}

static void put_place(struct observer *l, uint64_t frame, const struct cs_async_step *step) {
  bool exact = true;
  struct cs_scans_place place = {cs_key_of(frame, exact, true), step->line,
                                 (uint32_t)strlen(step->file)};
  begin(l, CS_SCANS_PLACE, 0);
  put(l, &place, sizeof place);
  put(l, step->file, place.file_size);
  end(l);
}

// The id of a step's function, which is announced when it is new.
static uint32_t function_of(struct observer *l, const struct cs_async_step *step) {
  char name[MOST_NAME], key[2 * MOST_NAME];
  bool noted = step->note[0] != '\0';
  (void)snprintf(name, sizeof name, "%.4000s%s%.200s%s", step->name, noted ? " (" : "", step->note,
                 noted ? ")" : "");
  int len = snprintf(key, sizeof key, "%.4000s\n%s", step->module, name);
  size_t before = l->functions.count;
  uint32_t number = cs_strings_add(&l->functions, key, (size_t)len);
  uint32_t id = FIRST_FUNCTION - number;
  if (number == before) put_function(l, id, step, name);
  return id;
}

// A line is identified as if it were an instruction's offset, since there are no instructions.
static uint64_t frame_of(struct observer *l, const struct cs_async_step *step) {
  uint32_t id = function_of(l, step);
  if (step->file[0] == '\0') return cs_wire_managed_frame(id, 0, false);
  uint64_t frame = cs_wire_managed_frame(id, step->line, true);
  char key[MOST_NAME];
  int len = snprintf(key, sizeof key, "%u %.4000s %u", id, step->file, step->line);
  size_t before = l->places.count;
  if (l->ask.lines && cs_strings_add(&l->places, key, (size_t)len) == before)
    put_place(l, frame, step);
  return frame;
}

// ---- Samples ----

// The label as the recording has it: its endpoint is announced under an id of the observer's.
static struct cs_label label_of(const struct observer *l, const struct cs_async *async,
                                uint32_t index) {
  struct cs_label label = async->labels.items[index];
  uint32_t id = 0;
  (void)cs_map_get(&l->routes, cs_label_endpoint(&label), &id);
  label.endpoint = (uint64_t)cs_label_request(&label) << 32 | id;
  return label;
}

static void put_routes(struct observer *l, const struct cs_async_labels *labels) {
  for (size_t i = 0; i < labels->route_count; i++) {
    const struct cs_async_step step = {.name = labels->routes[i].name, .module = "", .note = ""};
    uint32_t id = function_of(l, &step);
    bool added;
    (void)cs_map_put(&l->routes, labels->routes[i].number, id, &added);
  }
}

// Operations of many labels have few steps.
static uint64_t frame_at(struct observer *l, const struct cs_async_tree *tree, uint32_t node) {
  uint32_t step = tree->nodes[node].step;
  if (l->step_frames[step] == 0) l->step_frames[step] = frame_of(l, &tree->steps[step]);
  return l->step_frames[step];
}

static void put_sample(struct observer *l, const struct cs_async *async,
                       const struct cs_async_end *at, uint64_t at_ns, uint64_t covered_ns) {
  const struct cs_async_tree *tree = &async->tree;
  struct cs_wire_sample sample = {.time_ns = at_ns,
                                  .weight = (uint64_t)(at->operations * (double)covered_ns + 0.5),
                                  .thread = THREAD_ID,
                                  .stop = CS_STOP_BASE,
                                  .mode = CS_WIRE_MODE_ASYNC};
  for (uint32_t n = at->node; n != 0 && sample.frame_count < MOST_FRAMES; n = tree->nodes[n].parent)
    l->frames[sample.frame_count++] = frame_at(l, tree, n);
  if (sample.weight == 0) return;
  bool labelled = at->label >= CS_ASYNC_LABELS;
  struct cs_label label =
      labelled ? label_of(l, async, at->label) : (struct cs_label){.trace = {0}};
  begin(l, CS_WIRE_SAMPLE, labelled ? CS_WIRE_LABELLED : 0);
  put(l, &sample, sizeof sample);
  put(l, l->frames, sample.frame_count * sizeof *l->frames);
  if (labelled) put(l, &label, sizeof label);
  end(l);
}

static void put_scan(struct observer *l, const struct cs_async *async, uint64_t at_ns,
                     uint64_t covered_ns) {
  put_routes(l, &async->labels);
  l->step_frames = cs_allocate((async->tree.step_count + 1) * sizeof *l->step_frames);
  for (size_t i = 0; i < async->ends.count; i++) {
    const struct cs_async_end *at = &async->ends.items[i];
    put_sample(l, async, at, at_ns, covered_ns);
    if (at->label == CS_ASYNC_CONTEXT_UNREAD) l->unread += at->operations;
  }
  free(l->step_frames);
  l->totals.unread = (uint32_t)(l->unread < UINT32_MAX ? l->unread + 0.5 : UINT32_MAX);
  l->totals.succeeded++;
  l->totals.operations += async->operations;
  l->totals.covered_ns += covered_ns;
}

// ---- Scans ----

static void sleep_until(uint64_t ns) {
  const struct timespec until = cs_timespec_of(ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
  }
}

static uint64_t random_below(uint64_t limit) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    number = cs_hash_word(cs_clock_now_ns(), 64);
  return number % limit;
}

// Returns whether the scan can be used. *stopped_ns: for how long the process was stopped.
static bool scan(struct observer *l, struct cs_remote *remote, uint64_t covered_ns,
                 uint64_t *stopped_ns) {
  const struct cs_async_options options = {
      .limit_s = stop_limit_s, .tries = TRIES, .contexts = l->ask.labels};
  struct cs_error err = {""};
  uint64_t at_ns = cs_clock_now_ns();
  struct cs_async *async = cs_async_take_from(remote, l->pid, &options, &err);
  cs_remote_release_late(remote);
  *stopped_ns = async != NULL ? async->stopped_ns + async->tried_ns : cs_clock_now_ns() - at_ns;
  l->totals.stopped_ns += *stopped_ns;
  uint64_t longest = async != NULL ? async->stopped_ns : *stopped_ns;
  if (longest > l->totals.longest_ns) l->totals.longest_ns = longest;
  bool usable = async != NULL && !async->late && async->lost_bytes == 0 && async->too_many == 0;
  if (usable) put_scan(l, async, at_ns, covered_ns);
  if (!usable)
    (void)snprintf(l->why, sizeof l->why, "%s",
                   async == NULL ? err.text
                   : async->late ? "because the heap is too large for stops of 250 ms"
                                 : "because not all of the heap was readable");
  if (!usable) l->totals.failed++;
  cs_async_free(async);
  return usable;
}

// `elapsed_ns`: all periods so far.
static uint64_t next_period(const struct observer *l, uint64_t stopped_ns, uint64_t cpu_ns,
                            uint64_t elapsed_ns) {
  uint64_t period = stopped_ns * STOPS_SHARE, due_ns = l->totals.stopped_ns * STOPS_SHARE;
  if (due_ns > elapsed_ns + period) period = due_ns - elapsed_ns;
  if (cpu_ns * CPU_SHARE > period) period = cpu_ns * CPU_SHARE;
  if (period < LEAST_PERIOD_NS) return LEAST_PERIOD_NS;
  return period < MOST_PERIOD_NS ? period : MOST_PERIOD_NS;
}

static void scan_on(struct observer *l, struct cs_remote *remote) {
  uint64_t first_ns = cs_clock_now_ns(), begin_ns = first_ns, period = FIRST_PERIOD_NS, owed = 0;
  uint64_t stopped;
  unsigned failures = 0;
  for (;;) {
    sleep_until(begin_ns + random_below(period));
    if (cs_proc_has_ended(l->pid)) return;
    uint64_t cpu = cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
    bool usable = scan(l, remote, owed + period, &stopped);
    if (!usable && cs_proc_has_ended(l->pid)) return;
    owed = usable ? 0 : owed + period;
    failures = usable ? 0 : failures + 1;
    l->totals.ended = failures == MOST_FAILURES;
    put_totals(l);
    if (!send_all(l) || failures == MOST_FAILURES) return;
    sleep_until(begin_ns += period);
    period = next_period(l, stopped, cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu,
                         begin_ns - first_ns);
  }
}

void cs_scans_run(int to, pid_t pid, const struct cs_scans_ask *ask) {
  struct observer *l = calloc(1, sizeof *l);
  struct cs_error err = {""};
  if (l == NULL) return;
  l->to = to;
  l->pid = pid;
  l->ask = *ask;
  begin(l, CS_WIRE_THREAD, 0);
  put(l, &(struct cs_wire_thread){THREAD_ID, 0}, sizeof(struct cs_wire_thread));
  put_text(l, THREAD_NAME);
  end(l);
  struct cs_remote *remote = cs_remote_open(pid, &err);
  if (remote != NULL) {
    cs_remote_set_timeout(remote, STOP_PATIENCE_NS);
    scan_on(l, remote);
    cs_remote_close(remote);
    return;
  }
  l->totals.failed = 1;
  l->totals.ended = 1;
  (void)snprintf(l->why, sizeof l->why, "%s", err.text);
  put_totals(l);
  (void)send_all(l);
}
