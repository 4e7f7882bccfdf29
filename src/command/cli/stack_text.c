// SPDX-License-Identifier: MIT
// `clrsnap stack` for people. Threads whose output would be the same, except for their numbers and
// names, are one group. One thread. Signal-safe: no.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/path.h"
#include "base/print.h"
#include "cli/stack_parts.h"
#include "util/map.h"

// ---- A thread ----

static void print_line(FILE *out, const char *source, uint32_t line) {
  cs_print(out, "  %s:%" PRIu32, cs_file_of_source(source), line);
}

static void print_frame(FILE *out, const struct cs_outside_frame *f) {
  const char *class = cs_runtime_class_text(f->class);
  const char *name = class != NULL ? class : f->name;
  cs_print(out, "    ");
  if (name[0] != '\0') {
    cs_print(out, "%s", name);
    if (f->funclet) cs_print(out, " (handler)");
    if (f->module != NULL) cs_print(out, "  ");
  }
  if (f->module != NULL) {
    cs_print(out, "%s", name[0] != '\0' ? "(" : "[");
    const char *file = cs_file_of(f->module);
    cs_print(out, "%s", file);
    // In a single-file program, the runtime's code is in the program's file.
    if (f->runtime && f->name[0] == '\0' && strcmp(file, "libcoreclr.so") != 0)
      cs_print(out, ": runtime");
    if (f->name[0] == '\0') cs_print(out, "+0x%" PRIx64, f->offset);
    cs_print(out, "%s", name[0] != '\0' ? ")" : "]");
  }
  if (f->source != NULL) print_line(out, f->source, f->line);
  if (f->flags & CS_FRAME_SIGNAL) cs_print(out, "  <signal>");
  cs_print(out, "\n");
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

// What a thread has in common with the others of its group: the rest of the line with its name, and
// the lines after it.
static void print_state(FILE *out, const struct cs_outside_thread *t) {
  cs_print(out, ": %s%s%s%s%s%s%s\n", t->state, t->waits_for != NULL ? " for " : "",
           t->waits_for != NULL ? t->waits_for : "", where_text(t),
           t->managed ? "" : ", not managed", t->cooperative ? ", in cooperative mode" : "",
           suspends_text(t));
}

static void print_stack(FILE *out, const struct cs_outside *o, const struct cs_outside_thread *t) {
  cs_stack_print_lock(out, o, t);
  for (uint32_t i = 0; i < t->count; i++) print_frame(out, &t->frames[i]);
  if (!t->walked) cs_print(out, "    (it has ended)\n");
  if (t->walked && t->stop != CS_STOP_BASE)
    cs_print(out, "    ... cut here: %s\n", cs_stop_text(t->stop));
}

// ---- Groups ----

static char *text_of(const struct cs_outside *o, const struct cs_outside_thread *t) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  if (memory == NULL) return NULL;
  print_state(memory, t);
  print_stack(memory, o, t);
  if (fclose(memory) == 0) return text;
  free(text);
  return NULL;
}

// For each thread the first one of its group, which may be itself.
static uint32_t *find_groups(const struct cs_outside *o, bool managed_only, bool each) {
  uint32_t *first = cs_allocate(((size_t)o->count + 1) * sizeof *first);
  char **texts = cs_allocate(((size_t)o->count + 1) * sizeof *texts);
  for (uint32_t i = 0; i < o->count; i++) {
    const struct cs_outside_thread *t = &o->threads[i];
    first[i] = i;
    texts[i] = each || (managed_only && !t->managed) ? NULL : text_of(o, t);
    for (uint32_t k = 0; texts[i] != NULL && first[i] == i && k < i; k++)
      if (first[k] == k && texts[k] != NULL && strcmp(texts[k], texts[i]) == 0) first[i] = k;
  }
  for (uint32_t i = 0; i < o->count; i++) free(texts[i]);
  free(texts);
  return first;
}

// "12 threads "worker"", or, if they have several names, "12 threads"; then a line of their
// numbers.
static void print_members(const struct cs_outside *o, const uint32_t *first, uint32_t group,
                          uint32_t size, bool one_name) {
  const char *before = "  tids ";
  for (uint32_t i = group; size > 1 && i < o->count; i++) {
    if (first[i] != group) continue;
    cs_print(stdout, "%s%d", before, o->threads[i].tid);
    if (!one_name) cs_print(stdout, " \"%s\"", o->threads[i].name);
    before = ", ";
  }
  if (size > 1) cs_print(stdout, "\n");
}

static void print_group(const struct cs_outside *o, const uint32_t *first, uint32_t group) {
  const struct cs_outside_thread *t = &o->threads[group];
  uint32_t size = 0;
  bool one_name = true;
  for (uint32_t i = group; i < o->count; i++) {
    size += first[i] == group;
    if (first[i] == group && strcmp(o->threads[i].name, t->name) != 0) one_name = false;
  }
  cs_print(stdout, size == 1 ? "\nThread %d" : "\n%d threads", size == 1 ? t->tid : (int)size);
  if (one_name) cs_print(stdout, " \"%s\"", t->name);
  print_state(stdout, t);
  print_members(o, first, group, size, one_name);
  print_stack(stdout, o, t);
}

// ---- All of it ----

void cs_stack_print_process(int pid, const char *command, const char *version) {
  char now[64] = "";
  time_t seconds = time(NULL);
  struct tm local;
  if (localtime_r(&seconds, &local) != NULL)
    (void)strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S", &local);
  cs_print(stdout, "Process %d: ", pid);
  cs_print(stdout, "%s", command != NULL ? command : "");  // it may be long
  cs_print(stdout, "\n.NET %s, %s", version[0] != '\0' ? version : "of an unknown version", now);
}

void cs_stack_print(const struct cs_outside *o, bool managed_only, bool each) {
  cs_stack_print_process(o->pid, o->command, o->version);
  cs_print(stdout, ", stopped for %.1f ms\n", (double)o->stopped_ns / 1e6);
  cs_stack_print_deadlocks(stdout, o);
  cs_stack_print_pool(&o->pool);
  uint32_t *first = find_groups(o, managed_only, each);
  for (uint32_t i = 0; i < o->count; i++)
    if (first[i] == i && (o->threads[i].managed || !managed_only)) print_group(o, first, i);
  free(first);
}
