// SPDX-License-Identifier: MIT
// `clrsnap async PID`: prints the suspended async operations of a process, once, for people or as
// JSON. One thread. Signal-safe: no.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "async/async.h"
#include "base/print.h"
#include "cli/stack_parts.h"
#include "cli/verbs.h"
#include "process/proc.h"
#include "util/json.h"
#include "util/say.h"

enum { DEFAULT_LIMIT_S = 2, MOST_LIMIT_S = 600 };
#define LEAST_LIMIT_S 0.01  // to stop all threads takes some ms; with less, nothing would be read

struct options {
  pid_t pid;
  bool json;
  const char *filter;
  struct cs_async_options take;
};

#define ASYNC(member) .field = offsetof(struct options, member)
static const struct cs_option table[] = {
    {0, "filter", "TEXT", "only operations with TEXT in a method, a class or a file", NULL,
     ASYNC(filter)},
    {0, "json", NULL, "one JSON object", NULL, ASYNC(json)},
    {0, "stop-limit", "SECONDS",
     "after this, read no more and let the process run on, which takes some ms (2; 0.01 or more)",
     cs_set_seconds, ASYNC(take.limit_s), .least = LEAST_LIMIT_S, .most = MOST_LIMIT_S},
    {0}};
static const struct cs_option_group groups[] = {{NULL, table, 0}, {0}};
static const struct options defaults = {.take = {.limit_s = DEFAULT_LIMIT_S, .contexts = true},
                                        .filter = ""};

static bool check(void *options, int count, char **operands, struct cs_error *err) {
  return cs_parse_only_pid("async", count, operands, &((struct options *)options)->pid, err);
}

enum { NUMBER_BYTES = 32 };

// "61,202"
static const char *grouped(uint64_t number, char text[NUMBER_BYTES]) {
  char digits[NUMBER_BYTES];
  int len = snprintf(digits, sizeof digits, "%" PRIu64, number);
  char *to = text;
  for (int i = 0; i < len; i++) {
    if (i > 0 && (len - i) % 3 == 0) *to++ = ',';
    *to++ = digits[i];
  }
  *to = '\0';
  return text;
}

// ---- For people ----

static void print_head(const struct cs_async *a) {
  char seen[NUMBER_BYTES], count[NUMBER_BYTES], chains[NUMBER_BYTES];
  cs_stack_print_process(a->pid, a->command, a->version);
  cs_print(stdout, "; the program was stopped for %.1f ms while %s objects (%.1f MB) were read\n",
           (double)a->stopped_ns / 1e6, grouped(a->seen, seen), (double)a->heap_bytes / 1e6);
  if (a->tries > 0)
    cs_print(stdout, "(and %.1f ms before that, in %u tries: a collection was moving objects)\n",
             (double)a->tried_ns / 1e6, a->tries);
  cs_print(stdout, "%s suspended async %s in %s %s\n", grouped(a->suspended, count),
           cs_plural(a->suspended, "method", "methods"), grouped(a->operations, chains),
           cs_plural(a->operations, "operation", "operations"));
}

static void print_lacks(const struct cs_async *a) {
  char text[NUMBER_BYTES];
  if (a->late)
    cs_print(stdout,
             "Not all of the heap was read: --stop-limit was reached with %.1f MB left. Counts are "
             "too low, and\nsome operations begin further down than they should.\n",
             (double)a->late_bytes / 1e6);
  if (a->lost_bytes > 0)
    cs_print(stdout,
             "%.1f MB of the heap could not be read as objects: operations may be missing.\n",
             (double)a->lost_bytes / 1e6);
  if (a->too_many > 0)
    cs_print(stdout, "%s tasks were left out: only the first %s were kept.\n",
             grouped(a->too_many, text), "4,194,304");
  if (a->cut)
    cs_print(stdout, "Some chains are cut: they are longer than 400 steps, or fork too often.\n");
  cs_print(stdout,
           "Not shown: which code completes a TaskCompletionSource; what a custom awaiter or "
           "ValueTask source waits for\n(its class is shown); the names of runtime-async methods. "
           "An operation "
           "that nothing refers to any more is\nshown until it is collected.\n");
}

static void print_text(const struct cs_async *a, const struct options *o) {
  print_head(a);
  cs_async_print_old(stdout, &a->tree, o->filter, a->taken_ns);
  cs_print(stdout, "\n");
  uint32_t groups_printed = cs_async_print(stdout, &a->tree, o->filter);
  if (groups_printed == 0 && o->filter[0] != '\0')
    cs_print(stdout, "No operation has '%s' in it.\n", o->filter);
  if (groups_printed > 0 || o->filter[0] != '\0') cs_print(stdout, "\n");
  print_lacks(a);
}

// ---- For programs ----

struct put {
  struct cs_json_writer *j;
  const struct cs_async_tree *tree;
  uint32_t count;  // nodes that have been put
};

// A node and what it awaits, as items of one array: a chain may be longer than readers of JSON
// nest.
static void put_node(struct put *put, uint32_t node, uint32_t parent, uint32_t depth) {
  const struct cs_async_tree *tree = put->tree;
  const struct cs_async_node *at = &tree->nodes[node];
  const struct cs_async_step *step = &tree->steps[at->step];
  struct cs_json_writer *j = put->j;
  uint32_t number = put->count++;
  cs_json_new_line(j);
  cs_json_open(j, NULL, '{');
  if (depth > 0)
    cs_json_uint(j, "parent", parent);
  else
    cs_json_null(j, "parent");
  cs_json_uint(j, "depth", depth);
  cs_json_uint(j, "count", at->count);
  cs_json_text(j, "name", step->name);
  if (step->class[0] != '\0') cs_json_text(j, "class", step->class);
  if (step->note[0] != '\0') cs_json_text(j, "note", step->note);
  if (step->file[0] != '\0') {
    cs_json_text(j, "file", step->file);
    cs_json_uint(j, "line", step->line);
  }
  if (at->same && at->count > 1) cs_json_bool(j, "one_object", true);
  if (at->cycle) cs_json_bool(j, "cycle", true);
  if (at->old > 0) {
    cs_json_uint(j, "old", at->old);
    cs_json_uint(j, "oldest_began_ns", at->first_ns);
  }
  cs_json_close(j, "}");
  for (uint32_t c = at->first_child; c != CS_ASYNC_NO_NODE; c = tree->nodes[c].next)
    put_node(put, c, number, depth + 1);
}

static void print_json(const struct cs_async *a, const struct options *o) {
  struct cs_json_writer j = {.out = stdout};
  cs_json_open(&j, NULL, '{');
  cs_json_int(&j, "pid", a->pid);
  CS_JSON_TEXTS(&j, {"runtime", a->version}, {"command", a->command});
  CS_JSON_UINTS(&j, {"stopped_ns", a->stopped_ns}, {"tries", a->tries}, {"tried_ns", a->tried_ns},
                {"objects", a->seen}, {"heap_bytes", a->heap_bytes}, {"suspended", a->suspended},
                {"operations", a->operations}, {"unseen_bytes", a->late_bytes},
                {"unreadable_bytes", a->lost_bytes}, {"left_out_tasks", a->too_many});
  cs_json_bool(&j, "complete", !a->late && !a->cut && a->lost_bytes == 0 && a->too_many == 0);
  struct put put = {&j, &a->tree, 0};
  cs_json_open(&j, "awaits", '[');
  for (uint32_t c = a->tree.nodes[0].first_child; c != CS_ASYNC_NO_NODE;
       c = a->tree.nodes[c].next) {
    if (cs_async_has(&a->tree, c, o->filter)) put_node(&put, c, 0, 0);
  }
  (void)cs_json_end(&j, "]}");
}

static int run(void *options) {
  const struct options *o = options;
  struct cs_error err = {""};
  struct cs_async *async =
      cs_proc_check(o->pid, &err) ? cs_async_take(o->pid, &o->take, &err) : NULL;
  if (async == NULL) {
    cs_say("%s", err.text);
    return CS_EXIT_FAILURE;
  }
  if (o->json)
    print_json(async, o);
  else
    print_text(async, o);
  cs_async_free(async);
  return cs_say_if_lost(0);
}

const struct cs_command cs_async_command = {
    .name = "async",
    .summary = "print what every suspended async operation awaits, once",
    .usage = "usage: clrsnap async [options] PID\n",
    .about =
        "Prints the suspended async operations of a .NET process, once: from the outermost "
        "awaiting method down to what it awaits in the end (a timer, a socket, a semaphore, a "
        "TaskCompletionSource, a running task, ...), with the line of each await. Equal operations "
        "share a line with a count; methods that wait for each other come first. The process is "
        "stopped while its heap is read from outside, so no agent is needed, and it works on a "
        "process that hangs; the output says how long the stop was. You must own the process or "
        "be root, and ptrace must be allowed.",
    .groups = groups,
    .examples =
        "  clrsnap async 1234\n"
        "  clrsnap async --filter Checkout 1234\n"
        "  clrsnap async --json 1234 | jq -r '.awaits[] | \"  \" * .depth + \"\\(.count) "
        "\\(.name)\"'\n",
    .size = sizeof(struct options),
    .defaults = &defaults,
    .check = check,
    .run = run};
