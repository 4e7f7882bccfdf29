// SPDX-License-Identifier: MIT
// Stops a process, reads its heap, lets it go, and then finds names for what was read. Invariant:
// the process runs again whatever happens in this file, and soon: after the time limit at the
// latest, with what has been read by then, or, if a collection is in progress, at once, to be
// stopped again later. One thread. Signal-safe: no.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "async/async.h"
#include "base/clock.h"
#include "base/prefix.h"
#include "process/proc.h"

enum { MOST_TRIES = 400, MOST_NAME = 4096 };

struct names {
  struct cs_async_classes *classes;
  struct cs_async_tree *tree;
  struct cs_lines *lines;
  struct cs_map methods;  // steps by state machine and state, without a note
  struct cs_map classes_by_index;
  bool unknown;  // something has no name
};

// ---- Names ----

#define TASKS "System.Threading.Tasks."
// Classes of the framework, and what waiting for their objects is called. A name that ends in a dot
// is a prefix.
static const char *const known[][2] = {
    {TASKS "Task", "TaskCompletionSource"},
    {TASKS "Task<TResult>", "TaskCompletionSource"},
    {TASKS "Task.DelayPromise", "Task.Delay"},
    {TASKS "Task.DelayPromiseWithCancellation", "Task.Delay"},
    {TASKS "Task.WhenAllPromise", "Task.WhenAll"},
    {TASKS "Task.WhenAllPromise<T>", "Task.WhenAll"},
    {TASKS "Task.TwoTaskWhenAnyPromise<TTask>", "Task.WhenAny"},
    {TASKS "TaskFactory.CompleteOnInvokePromise", "Task.WhenAny"},
    {TASKS "TaskFactory.CompleteOnInvokePromise<TTask>", "Task.WhenAny"},
    {TASKS "Task.CancellationPromise<T>", "Task.WaitAsync"},
    {TASKS "Task.CancellationPromise<TTask>", "Task.WaitAsync"},
    {TASKS "UnwrapPromise<TResult>", "Task.Unwrap (Task.Run)"},
    {TASKS "ValueTask.ValueTaskSourceAsTask", "ValueTask.AsTask"},
    {TASKS "ValueTask<TResult>.ValueTaskSourceAsTask", "ValueTask.AsTask"},
    {"System.Threading.SemaphoreSlim.TaskNode", "SemaphoreSlim.WaitAsync"},
    {"System.Threading.PeriodicTimer.State", "PeriodicTimer"},
    {"System.Threading.Channels.", "channel"},
    {"System.IO.Pipelines.", "pipe"},
    {"System.Net.Sockets.", "socket"},
    {"Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets.", "socket"},
};

static const char *known_name(const char *class) {
  for (size_t i = 0; i < CS_COUNT(known); i++) {
    size_t len = strlen(known[i][0]);
    bool prefix = known[i][0][len - 1] == '.';
    if (prefix ? strncmp(class, known[i][0], len) == 0 : strcmp(class, known[i][0]) == 0)
      return known[i][1];
  }
  return class;
}

static uint32_t step_of_class(struct names *names, uint32_t class, const char *name,
                              const char *note) {
  char text[MOST_NAME];
  if (!cs_async_class_name(names->classes, class, text, sizeof text)) {
    names->unknown = true;
    (void)snprintf(text, sizeof text, "[an object of an unknown class]");
  }
  return cs_async_step(
      names->tree,
      &(struct cs_async_step){
          .name = name != NULL ? name : known_name(text), .class = text, .note = note});
}

static uint32_t method_step(void *data, const struct cs_async_object *object, const char *note) {
  struct names *names = data;
  char text[MOST_NAME];
  struct cs_line line = {"", 0};
  uint64_t key = (uint64_t)object->machine << 32 | (uint32_t)object->state;
  uint32_t found;
  bool added;
  if (note[0] == '\0' && cs_map_get(&names->methods, key, &found)) return found;
  if (object->machine == CS_ASYNC_NO_CLASS ||
      !cs_async_method_name(names->classes, object->machine, text, sizeof text)) {
    names->unknown = true;
    (void)snprintf(text, sizeof text, "[an async method of an unknown name]");
  } else if (object->has_state && object->state >= 0) {
    (void)cs_async_line(names->classes, names->lines, object->machine, object->state, &line);
  }
  const char *module =
      object->machine != CS_ASYNC_NO_CLASS
          ? cs_heap_modules_path(cs_async_modules_of(names->classes),
                                 cs_async_class_at(names->classes, object->machine)->module)
          : NULL;
  uint32_t step = cs_async_step(
      names->tree,
      &(struct cs_async_step){
          .name = text, .module = module, .note = note, .file = line.file, .line = line.line});
  return note[0] == '\0' ? cs_map_put(&names->methods, key, step, &added) : step;
}

// A Task of methods that the runtime suspends itself: it leads to their continuations, not to
// boxes.
static bool is_runtime_async(struct names *names, uint32_t class) {
  static const char helpers[] = "System.Runtime.CompilerServices.AsyncHelpers.";
  const char *name = cs_async_class_at(names->classes, class)->core_name;
  return name != NULL && cs_has_prefix(name, helpers);
}

static uint32_t task_step(void *data, const struct cs_async_object *object) {
  enum { RUNS = 0x20000, CONTINUES = 0x2000000 };  // m_stateFlags: invoked, waits for activation
  struct names *names = data;
  uint32_t key = object->class, found;
  bool added;
  bool runtime_async = is_runtime_async(names, object->class);
  if (!runtime_async && object->has_action && (object->state & CONTINUES) == 0)
    return step_of_class(names, object->class, "Task of a delegate",
                         (object->state & RUNS) != 0 ? "runs" : "waits for a thread");
  if (cs_map_get(&names->classes_by_index, key, &found)) return found;
  return cs_map_put(&names->classes_by_index, key,
                    step_of_class(names, object->class,
                                  runtime_async        ? "[runtime-async methods]"
                                  : object->has_action ? "Task.ContinueWith"
                                                       : NULL,
                                  ""),
                    &added);
}

static uint32_t awaiter_step(struct names *names, const struct cs_async_object *object) {
  char text[MOST_NAME];
  if (!cs_async_awaiter_name(names->classes, object->machine, object->leaf, text, sizeof text))
    (void)snprintf(text, sizeof text, "[an awaiter of an unknown class]");
  return cs_async_step(
      names->tree,
      &(struct cs_async_step){
          .name = text, .class = text, .note = "what this awaiter waits for is not known"});
}

static uint32_t leaf_step(void *data, const struct cs_async_object *object) {
  struct names *names = data;
  static const char *const texts[] = {
      [CS_ASYNC_LEAF_NONE] = "[Task.Yield, or an awaiter that holds no object]",
      [CS_ASYNC_LEAF_DONE] = "[it is done: the method waits for a thread to resume it]",
      [CS_ASYNC_LEAF_UNKNOWN] = "[an object that cannot be read]",
      [CS_ASYNC_LEAF_LATE] = "[there was no time to read it]",
  };
  if (object->end == CS_ASYNC_LEAF_AWAITER) return awaiter_step(names, object);
  if (object->end == CS_ASYNC_LEAF_OBJECT) return step_of_class(names, object->leaf, NULL, "");
  return cs_async_step(names->tree, &(struct cs_async_step){.name = texts[object->end]});
}

static uint32_t thread_step(void *data) {
  struct names *names = data;
  return cs_async_step(names->tree,
                       &(struct cs_async_step){.name = "[a thread in Wait() or Result]"});
}

static bool is_method(void *data, const struct cs_async_object *object) {
  struct names *names = data;
  enum cs_async_kind kind = cs_async_class_at(names->classes, object->class)->kind;
  return kind == CS_ASYNC_BOX || kind == CS_ASYNC_POOLED;
}

// Returns false if something has no name.
static bool name_all(struct cs_async *async, struct cs_async_classes *classes,
                     const struct cs_async_scan *scan) {
  struct cs_target *target = cs_target_of(async->pid);
  struct names names = {.classes = classes, .tree = &async->tree, .lines = cs_lines_new(target)};
  const struct cs_async_namer namer = {method_step, task_step, leaf_step,
                                       thread_step, is_method, &names};
  cs_async_merge(scan, &namer, async);
  cs_map_free(&names.methods);
  cs_map_free(&names.classes_by_index);
  cs_lines_free(names.lines);
  cs_target_free(target);
  return !names.unknown;
}

// ---- The scan ----

enum attempt { SCANNED, COLLECTING, FAILED };

static enum attempt scan_once(struct cs_remote *remote, struct cs_async *async, uint64_t limit_ns,
                              bool contexts, struct cs_async_classes *classes,
                              struct cs_async_scan *scan, struct cs_error *err) {
  struct cs_async_heap heap = {.parts = NULL};
  enum attempt result = FAILED;
  uint64_t begin = cs_clock_now_ns();
  async->taken_ns = cs_clock_read_ns(CLOCK_REALTIME);
  if (!cs_remote_stop(remote, err)) return FAILED;
  enum cs_async_heap_state state = cs_async_heap_find(remote, &heap, err);
  if (state == CS_ASYNC_HEAP_COLLECTED) result = COLLECTING;
  if (state == CS_ASYNC_HEAP_FOUND)
    result = cs_async_scan(remote, classes, &heap, begin + limit_ns, contexts, scan) ? SCANNED
                                                                                     : COLLECTING;
  cs_remote_resume(remote);
  async->stopped_ns = cs_clock_now_ns() - begin;
  cs_async_heap_free(&heap);
  return result;
}

static bool take(struct cs_remote *remote, struct cs_async *async,
                 const struct cs_async_options *options, struct cs_error *err) {
  uint64_t limit_ns = (uint64_t)(options->limit_s * 1e9);
  uint32_t most = options->tries != 0 ? options->tries : MOST_TRIES;
  for (async->tries = 0; async->tries < most; async->tries++) {
    struct cs_async_scan scan = {.objects = NULL};
    cs_remote_invalidate(remote);
    struct cs_async_classes *classes = cs_async_classes_new(remote, err);
    if (classes == NULL) return false;
    enum attempt result =
        scan_once(remote, async, limit_ns, options->contexts, classes, &scan, err);
    cs_remote_restore_priority();
    if (result == SCANNED) {
      cs_async_scan_finish(classes, &scan);
      async->heap_bytes = scan.bytes;
      async->seen = scan.seen;
      async->late_bytes = scan.late_bytes;
      async->lost_bytes = scan.lost_bytes;
      async->too_many = scan.too_many;
      async->late = scan.late || scan.late_bytes > 0;
      bool named = name_all(async, classes, &scan);
      async->labels = scan.labels;
      scan.labels = (struct cs_async_labels){.items = NULL};
      // Memory that could not be read may have been gone already.
      if ((!named || scan.lost_bytes > 0) && cs_proc_has_ended(async->pid)) result = FAILED;
    }
    cs_async_scan_free(&scan);
    cs_async_classes_free(classes);
    if (result != COLLECTING) return result == SCANNED;
    // The pause varies, so as not to keep step with a program that collects at regular intervals.
    const struct timespec nap = {.tv_nsec = 1000000 + async->tries % 7 * 900000L};
    async->tried_ns += async->stopped_ns;
    (void)nanosleep(&nap, NULL);
    cs_remote_raise_priority();
  }
  return cs_error_set(err, "process %d was collecting at each of %u tries: its objects were moving",
                      async->pid, most);
}

struct cs_async *cs_async_take_from(struct cs_remote *remote, int pid,
                                    const struct cs_async_options *options, struct cs_error *err) {
  struct cs_async *async = cs_allocate(sizeof *async);
  cs_remote_raise_priority();
  async->pid = pid;
  cs_remote_version(remote, async->version);
  async->command = cs_proc_command_line(pid);
  if (take(remote, async, options, err)) return async;
  cs_async_free(async);
  return NULL;
}

struct cs_async *cs_async_take(int pid, const struct cs_async_options *options,
                               struct cs_error *err) {
  bool was_there = !cs_proc_has_ended(pid);
  cs_remote_raise_priority();
  struct cs_remote *remote = cs_remote_open(pid, err);
  struct cs_async *async = remote != NULL ? cs_async_take_from(remote, pid, options, err) : NULL;
  if (async == NULL && was_there && cs_proc_has_ended(pid))
    (void)cs_error_set(err, "process %d has ended while it was read", pid);
  cs_remote_close(remote);
  return async;
}

void cs_async_free(struct cs_async *async) {
  if (async == NULL) return;
  cs_async_tree_free(&async->tree);
  cs_async_labels_free(&async->labels);
  free(async->ends.items);
  cs_map_free(&async->ends.by_place);
  free(async->command);
  free(async);
}
