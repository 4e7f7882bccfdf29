// SPDX-License-Identifier: MIT
// `clrsnap stack PID`: every thread's stack once, from outside, as text (stack_text.c) or as JSON.
// One thread. Signal-safe: no.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/stack_parts.h"
#include "cli/verbs.h"
#include "process/proc.h"
#include "stack/outside.h"
#include "util/json.h"
#include "util/say.h"

struct options {
  pid_t pid;
  bool json, managed_only, each;
  struct cs_outside_options take;
};

#define STACK(member) .field = offsetof(struct options, member)
static const struct cs_option table[] = {
    {0, "json", NULL, "one JSON object", NULL, STACK(json)},
    {0, "native", "on|off", "with native frames (on), or managed ones only", cs_set_on_off,
     STACK(take.native)},
    {0, "each", NULL, "each thread on its own, also those that have the same stack", NULL,
     STACK(each)},
    {0, "managed", NULL, "only threads that the runtime knows", NULL, STACK(managed_only)},
    {0, "raw-names", NULL, "names as the compiler made them: <LoadAsync>d__4.MoveNext", NULL,
     STACK(take.raw_names)},
    {0}};
static const struct cs_option_group groups[] = {{NULL, table, 0}, {0}};
static const struct options defaults = {.take.native = true};

static bool check(void *options, int count, char **operands, struct cs_error *err) {
  return cs_parse_only_pid("stack", count, operands, &((struct options *)options)->pid, err);
}

// ---- For programs ----

// Returns what a thread is doing that is not known to wait, or "" if that is unknown.
static const char *where(const struct cs_outside_thread *t) {
  if (t->gc == CS_OUTSIDE_GC_COLLECTS) return "gc";
  if (t->gc == CS_OUTSIDE_GC_BACKGROUND) return "background gc";
  if (!t->walked) return "";
  if (t->signs.leaf == CS_CODE_NATIVE) return "native code";
  return t->signs.leaf == CS_CODE_JIT || t->signs.leaf == CS_CODE_R2R ? "managed code" : "";
}

static void put_address(struct cs_json_writer *j, const char *key, uint64_t address) {
  char text[32];
  (void)snprintf(text, sizeof text, "0x%" PRIx64, address);
  cs_json_text(j, key, text);
}

static void put_frame(struct cs_json_writer *j, const struct cs_outside_frame *f) {
  static const char *const kinds[] = {[CS_CODE_NONE] = "unknown",
                                      [CS_CODE_JIT] = "jit",
                                      [CS_CODE_R2R] = "r2r",
                                      [CS_CODE_NATIVE] = "native",
                                      [CS_CODE_STUB] = "stub"};
  cs_json_open(j, NULL, '{');
  CS_JSON_TEXTS(j, {"name", f->name}, {"kind", kinds[f->kind]});
  if (f->module != NULL) cs_json_text(j, "module", f->module);
  if (f->token != 0) cs_json_uint(j, "token", f->token);
  if (f->source != NULL) {
    cs_json_text(j, "file", f->source);
    cs_json_uint(j, "line", f->line);
  }
  if (f->runtime) cs_json_bool(j, "runtime", true);
  if (f->class != CS_RUNTIME_UNKNOWN) cs_json_text(j, "class", cs_runtime_class_text(f->class));
  if (f->kind == CS_CODE_NATIVE) put_address(j, "address", f->offset);
  put_address(j, "ip", f->ip);
  put_address(j, "sp", f->sp);
  cs_json_bool(j, "exact", (f->flags & CS_FRAME_EXACT) != 0);
  cs_json_bool(j, "funclet", f->funclet);
  cs_json_close(j, "}");
}

static void put_thread(struct cs_json_writer *j, const struct cs_outside *o,
                       const struct cs_outside_thread *t) {
  cs_json_open(j, NULL, '{');
  cs_json_int(j, "tid", t->tid);
  CS_JSON_TEXTS(j, {"name", t->name}, {"state", t->state});
  if (t->waits_for != NULL) cs_json_text(j, "waits_for", t->waits_for);
  cs_stack_put_lock(j, o, t);
  cs_json_bool(j, "managed", t->managed);
  cs_json_bool(j, "cooperative", t->cooperative);
  if (t->suspends) cs_json_bool(j, "suspends", true);
  if (t->suspends && t->reason != CS_OUTSIDE_REASON_UNKNOWN)
    cs_json_text(j, "suspends_for",
                 t->reason == CS_OUTSIDE_REASON_COLLECTION ? "collection" : "other");
  if (where(t)[0] != '\0') cs_json_text(j, "in", where(t));
  cs_json_bool(j, "complete", t->walked && t->stop == CS_STOP_BASE);
  cs_json_text(j, "end", t->walked ? cs_stop_token(t->stop) : "ended");
  cs_json_open(j, "frames", '[');
  for (uint32_t i = 0; i < t->count; i++) put_frame(j, &t->frames[i]);
  cs_json_close(j, "]}");
}

static void print_json(const struct cs_outside *o, const struct options *options) {
  struct cs_json_writer j = {.out = stdout};
  cs_json_open(&j, NULL, '{');
  cs_json_int(&j, "pid", o->pid);
  CS_JSON_TEXTS(&j, {"runtime", o->version}, {"command", o->command});
  cs_json_uint(&j, "stopped_ns", o->stopped_ns);
  cs_stack_put_deadlocks(&j, o);
  cs_stack_put_pool(&j, &o->pool);
  cs_json_open(&j, "threads", '[');
  for (uint32_t i = 0; i < o->count; i++) {
    if (!o->threads[i].managed && options->managed_only) continue;
    if (j.comma) cs_json_new_line(&j);
    put_thread(&j, o, &o->threads[i]);
  }
  (void)cs_json_end(&j, "]}");
}

static int run(void *options) {
  const struct options *o = options;
  struct cs_error err = {""};
  struct cs_outside *outside =
      cs_proc_check(o->pid, &err) ? cs_outside_take(o->pid, &o->take, &err) : NULL;
  if (outside == NULL) {
    cs_say("%s", err.text);
    return CS_EXIT_FAILURE;
  }
  if (o->json)
    print_json(outside, o);
  else
    cs_stack_print(outside, o->managed_only, o->each);
  if (outside->refused[0] != '\0') cs_say("no names from the files of %s", outside->refused);
  cs_outside_free(outside);
  return cs_say_if_lost(0);
}

const struct cs_command cs_stack_command = {
    .name = "stack",
    .summary = "print the stack of every thread of a process, once",
    .usage = "usage: clrsnap stack [options] PID\n",
    .about =
        "Prints the stack of every thread of a .NET process, once: managed and native frames in "
        "the order of the stack, managed ones with file and line where there are portable PDBs. "
        "The process is stopped for some milliseconds (with 1,500 threads, or 50,000 frames, for "
        "one to three tenths of a second) and read from outside, so no agent is needed, and it "
        "works on a process that hangs. You must own the process or be root, and "
        "ptrace must be allowed. A thread is shown as running, in a GC, in native code, or "
        "waiting for something, as far as that is known. For a lock, the output says which object "
        "it is and which thread holds it; deadlocks come first.",
    .groups = groups,
    .examples =
        "  clrsnap stack 1234\n"
        "  clrsnap stack --json 1234 | jq '.threads[] | select(.state == \"running\")'\n",
    .size = sizeof(struct options),
    .defaults = &defaults,
    .check = check,
    .run = run};
