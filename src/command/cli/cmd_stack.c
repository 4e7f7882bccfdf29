// SPDX-License-Identifier: MIT
// `clrsnap stack PID`: prints every thread's stack once, from outside, for people or as JSON. One
// thread. Signal-safe: no.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/path.h"
#include "base/print.h"
#include "cli/stack_parts.h"
#include "cli/verbs.h"
#include "stack/outside.h"
#include "util/json.h"
#include "util/say.h"

struct options {
  pid_t pid;
  bool json, managed_only, no_agent;
  struct cs_outside_options take;
};

#define STACK(member) .field = offsetof(struct options, member)
static const struct cs_option table[] = {
    {0, "json", NULL, "one JSON object", NULL, STACK(json)},
    {0, "native", "on|off", "with native frames (on), or managed ones only", cs_set_on_off,
     STACK(take.native)},
    {0, "managed", NULL, "only threads that the runtime knows", NULL, STACK(managed_only)},
    {0, "no-agent", NULL, "has no effect: no agent is ever used", NULL, STACK(no_agent)},
    {0, "raw-names", NULL, "names as the compiler made them: <LoadAsync>d__4.MoveNext", NULL,
     STACK(take.raw_names)},
    {0}};
static const struct cs_option_group groups[] = {{NULL, table, 0}, {0}};
static const struct options defaults = {.take.native = true};

static bool check(void *options, int count, char **operands, struct cs_error *err) {
  struct options *o = options;
  if (count != 1) return cs_error_set(err, "stack takes the number of one process");
  return cs_parse_pid("stack", operands[0], &o->pid, err);
}

// ---- For people ----

static void print_line(const char *source, uint32_t line) {
  const char *file = cs_file_of_source(source);
  cs_print(stdout, "  ");
  cs_print(stdout, "%s", file);
  cs_print(stdout, ":%" PRIu32, line);
}

static void print_frame(const struct cs_outside_frame *f) {
  cs_print(stdout, "    ");
  if (f->name[0] != '\0') {
    cs_print(stdout, "%s", f->name);
    if (f->funclet) cs_print(stdout, " (handler)");
    if (f->module != NULL) cs_print(stdout, "  ");
  }
  if (f->module != NULL) {
    cs_print(stdout, "%s", f->name[0] != '\0' ? "(" : "[");
    const char *file = cs_file_of(f->module);
    cs_print(stdout, "%s", file);
    // In a single-file program, the runtime's code is in the program's file.
    if (f->runtime && f->name[0] == '\0' && strcmp(file, "libcoreclr.so") != 0)
      cs_print(stdout, ": runtime");
    if (f->name[0] == '\0') cs_print(stdout, "+0x%" PRIx64, f->offset);
    cs_print(stdout, "%s", f->name[0] != '\0' ? ")" : "]");
  }
  if (f->source != NULL) print_line(f->source, f->line);
  if (f->flags & CS_FRAME_SIGNAL) cs_print(stdout, "  <signal>");
  cs_print(stdout, "\n");
}

// What a thread is doing that is not known to wait; "": unknown.
static const char *where(const struct cs_outside_thread *t) {
  if (t->gc == CS_OUTSIDE_GC_COLLECTS) return "gc";
  if (t->gc == CS_OUTSIDE_GC_BACKGROUND) return "background gc";
  if (!t->walked) return "";
  if (t->signs.leaf == CS_CODE_NATIVE) return "native code";
  return t->signs.leaf == CS_CODE_JIT || t->signs.leaf == CS_CODE_R2R ? "managed code" : "";
}

static const char *where_text(const struct cs_outside_thread *t) {
  if (t->gc == CS_OUTSIDE_GC_COLLECTS) return ", in GC";
  if (t->gc == CS_OUTSIDE_GC_BACKGROUND) return ", in a background GC";
  bool native = t->walked && t->signs.leaf == CS_CODE_NATIVE;
  return native && strcmp(t->state, "running") == 0 ? ", in native code" : "";
}

static const char *suspends_text(const struct cs_outside_thread *t) {
  if (!t->suspends) return "";
  if (t->reason == CS_OUTSIDE_REASON_COLLECTION) return ", suspends the runtime for a collection";
  if (t->reason == CS_OUTSIDE_REASON_OTHER) return ", suspends the runtime, not for a collection";
  return ", suspends the runtime";
}

static void print_thread(const struct cs_outside *o, const struct cs_outside_thread *t) {
  cs_print(stdout, "\nThread %d \"", t->tid);
  cs_print(stdout, "%s", t->name);
  cs_print(stdout, "\": %s%s%s%s%s%s%s\n", t->state, t->waits_for != NULL ? " for " : "",
           t->waits_for != NULL ? t->waits_for : "", where_text(t),
           t->managed ? "" : ", not managed", t->cooperative ? ", in cooperative mode" : "",
           suspends_text(t));
  cs_stack_print_lock(o, t);
  for (uint32_t i = 0; i < t->count; i++) print_frame(&t->frames[i]);
  if (!t->walked) cs_print(stdout, "    (it has ended)\n");
  if (t->walked && t->stop != CS_STOP_BASE)
    cs_print(stdout, "    ... cut here: %s\n", cs_stop_text(t->stop));
}

enum { VERSION_BYTES = 40 };

static const char *version_of(const struct cs_outside *o, const char *unknown,
                              char text[VERSION_BYTES]) {
  if (o->major == 0) return unknown;
  (void)snprintf(text, VERSION_BYTES, "%" PRIu32 ".%" PRIu32 ".%" PRIu32, o->major, o->minor,
                 o->build);
  return text;
}

static void print_text(const struct cs_outside *o, const struct options *options) {
  char now[64] = "", version[VERSION_BYTES];
  time_t seconds = time(NULL);
  struct tm local;
  if (localtime_r(&seconds, &local) != NULL)
    (void)strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S", &local);
  cs_print(stdout, "Process %d: ", o->pid);
  cs_print(stdout, "%s", o->command);
  cs_print(stdout, "\n.NET %s, %s, stopped for %.1f ms\n",
           version_of(o, "of an unknown version", version), now, (double)o->stopped_ns / 1e6);
  cs_stack_print_deadlocks(o);
  cs_stack_print_pool(&o->pool);
  for (uint32_t i = 0; i < o->count; i++)
    if (o->threads[i].managed || !options->managed_only) print_thread(o, &o->threads[i]);
}

// ---- For programs ----

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
  char version[VERSION_BYTES];
  cs_json_open(&j, NULL, '{');
  cs_json_int(&j, "pid", o->pid);
  CS_JSON_TEXTS(&j, {"runtime", version_of(o, "", version)}, {"command", o->command});
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
  struct cs_outside *outside = cs_outside_take(o->pid, &o->take, &err);
  if (outside == NULL) {
    cs_say("%s", err.text);
    return CS_EXIT_FAILURE;
  }
  if (o->json)
    print_json(outside, o);
  else
    print_text(outside, o);
  if (outside->refused[0] != '\0') cs_say("no names from the files of %s", outside->refused);
  cs_outside_free(outside);
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  cs_say("the output could not be written: %s", strerror(errno));
  return CS_EXIT_FAILURE;
}

const struct cs_command cs_stack_command = {
    .name = "stack",
    .summary = "print the stack of every thread of a process, once",
    .usage = "usage: clrsnap stack [options] PID\n",
    .about =
        "Prints the stack of every thread of a .NET process, once: managed and native frames in "
        "the order of the stack, managed ones with file and line where there are portable PDBs. "
        "The process is stopped for some milliseconds and read from outside, so it needs no agent "
        "and may hang. The same user or root can do this, where ptrace is allowed. A thread is "
        "shown as running, in a GC, in native code, or waiting for something, as far as that is "
        "known. For a lock, the output says which object it is and which thread holds it; "
        "deadlocks "
        "come first.",
    .groups = groups,
    .notes =
        "\n"
        "Examples:\n"
        "  clrsnap stack 1234\n"
        "  clrsnap stack --json 1234 | jq '.threads[] | select(.state == \"running\")'\n",
    .size = sizeof(struct options),
    .defaults = &defaults,
    .check = check,
    .run = run};
