// SPDX-License-Identifier: MIT
// `clrsnap stack PID`: every thread's stack once, from outside, for people or as JSON. One thread.
// Signal-safe: no.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/path.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "stack/outside.h"
#include "util/json.h"
#include "util/say.h"

static const char help[] =
    "usage: clrsnap stack [options] PID\n"
    "\n"
    "Prints the stack of every thread of a .NET process, once: managed and native frames as they\n"
    "lie on the stack, managed ones with file and line where there are portable PDBs. The\n"
    "process is stopped for some milliseconds and read from outside: it needs no agent, and\n"
    "answers when it hangs, too. Same user or root, and ptrace must be allowed. A thread runs, in\n"
    "GC or in native code, or it waits for something, as far as that is known.\n"
    "\n"
    "      --json               one JSON object\n"
    "      --native on|off      with native frames (on), or managed ones only\n"
    "      --managed            only threads that the runtime knows\n"
    "      --no-agent           as it is anyhow: no other way is tried\n"
    "      --raw-names          names as compilers made them: <LoadAsync>d__4.MoveNext\n"
    "  -h, --help               this text\n"
    "\n"
    "  clrsnap stack 1234\n"
    "  clrsnap stack --json 1234 | jq '.threads[] | select(.state == \"running\")'\n";

struct options {
  int pid;
  bool json, managed_only, help;
  struct cs_outside_options take;
};

enum { JSON = 256, NATIVE, MANAGED, RAW_NAMES, NO_AGENT };
static const struct option long_options[] = {
    {"json", no_argument, NULL, JSON},
    {"native", required_argument, NULL, NATIVE},
    {"managed", no_argument, NULL, MANAGED},
    {"raw-names", no_argument, NULL, RAW_NAMES},
    {"no-agent", no_argument, NULL, NO_AGENT},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool apply(void *self, int opt, const char *value, struct cs_error *err) {
  struct options *o = self;
  bool off = false;
  switch (opt) {
    case JSON:
      return o->json = true;
    case MANAGED:
      return o->managed_only = true;
    case RAW_NAMES:
      return o->take.raw_names = true;
    case NATIVE:
      if (!cs_parse_word("--native", value, "on", "off", &off, err)) return false;
      o->take.native = !off;
      return true;
    default:
      return true;
  }
}

static bool parse(struct options *o, int argc, char **argv, struct cs_error *err) {
  const struct cs_option_set set = {"+:h", long_options, apply};
  uint32_t pid;
  *o = (struct options){.take.native = true};
  if (!cs_parse_options(&set, o, argc, argv, &o->help, err)) return false;
  if (o->help) return true;
  if (optind + 1 != argc) return cs_error_set(err, "stack wants the number of one process");
  if (!cs_read_number(argv[optind], INT32_MAX, &pid))
    return cs_error_set(err, "'%s' is not the number of a process", argv[optind]);
  o->pid = (int)pid;
  return true;
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
    // The runtime's code in a program that is a single file has the program's name.
    if (f->runtime && f->name[0] == '\0' && strcmp(file, "libcoreclr.so") != 0)
      cs_print(stdout, ": runtime");
    if (f->name[0] == '\0') cs_print(stdout, "+0x%" PRIx64, f->offset);
    cs_print(stdout, "%s", f->name[0] != '\0' ? ")" : "]");
  }
  if (f->source != NULL) print_line(f->source, f->line);
  if (f->flags & CS_FRAME_SIGNAL) cs_print(stdout, "  <signal>");
  cs_print(stdout, "\n");
}

// What a thread is in the middle of, while it is not known to wait; "": that is not known.
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

static void print_thread(const struct cs_outside_thread *t) {
  cs_print(stdout, "\nThread %d \"", t->tid);
  cs_print(stdout, "%s", t->name);
  cs_print(stdout, "\": %s%s%s%s%s%s%s\n", t->state, t->waits_for != NULL ? " for " : "",
           t->waits_for != NULL ? t->waits_for : "", where_text(t),
           t->managed ? "" : ", not managed", t->cooperative ? ", in cooperative mode" : "",
           suspends_text(t));
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
  for (uint32_t i = 0; i < o->count; i++)
    if (o->threads[i].managed || !options->managed_only) print_thread(&o->threads[i]);
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

static void put_thread(struct cs_json_writer *j, const struct cs_outside_thread *t) {
  cs_json_open(j, NULL, '{');
  cs_json_int(j, "tid", t->tid);
  CS_JSON_TEXTS(j, {"name", t->name}, {"state", t->state});
  if (t->waits_for != NULL) cs_json_text(j, "waits_for", t->waits_for);
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
  cs_json_open(&j, "threads", '[');
  for (uint32_t i = 0; i < o->count; i++) {
    if (!o->threads[i].managed && options->managed_only) continue;
    if (j.comma) cs_json_new_line(&j);
    put_thread(&j, &o->threads[i]);
  }
  (void)cs_json_end(&j, "]}");
}

int cs_cmd_stack(int argc, char **argv) {
  struct options options;
  struct cs_error err = {.text = ""};
  if (!parse(&options, argc, argv, &err)) {
    cs_say("%s; 'clrsnap help stack' says more", err.text);
    return CS_EXIT_USAGE;
  }
  if (options.help) {
    cs_print_help(stdout, help);
    return 0;
  }
  struct cs_outside *outside = cs_outside_take(options.pid, &options.take, &err);
  if (outside == NULL) {
    cs_say("%s", err.text);
    return CS_EXIT_FAILURE;
  }
  if (options.json)
    print_json(outside, &options);
  else
    print_text(outside, &options);
  if (outside->refused[0] != '\0') cs_say("no names from the files of %s", outside->refused);
  cs_outside_free(outside);
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  cs_say("the output could not be written: %s", strerror(errno));
  return CS_EXIT_FAILURE;
}
