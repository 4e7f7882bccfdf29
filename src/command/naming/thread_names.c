// SPDX-License-Identifier: MIT
// Threads by their names: it is chance which of the pool's threads runs a piece of work. One
// thread. Signal-safe: no.
#include "naming/thread_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefix.h"

#define NAME_BYTES 4096

// Returns whether a thread is grouped by its name. Threads that were not named have the program's
// name, which says nothing.
static bool groups(const struct cs_recording *rec, const struct cs_rec_thread *t) {
  enum { COMM = 15 };  // the length of a name that the kernel keeps
  const char *program = cs_recording_get(rec, rec->meta.program),
             *name = cs_recording_get(rec, t->name);
  size_t len = strcspn(program, " "), slash = 0;
  if (len == 0) return cs_has_prefix(name, ".NET ");  // the runtime's own names
  for (size_t i = 0; i < len; i++)
    if (program[i] == '/') slash = i + 1;
  len = len - slash < COMM ? len - slash : COMM;
  return name[0] != '\0' && (strlen(name) != len || memcmp(name, program + slash, len) != 0);
}

static void add_thread(const struct cs_recording *rec, const struct cs_rec_thread *t,
                       unsigned count, struct cs_profile *profile) {
  char name[NAME_BYTES];
  bool one = count == 1;
  (void)snprintf(name, sizeof name, one ? "%.3000s" : "%.3000s, %u threads",
                 cs_recording_get(rec, t->name), count);
  (void)cs_profile_thread(profile, name, one ? t->tid : 0);
}

uint32_t *cs_thread_names(const struct cs_recording *rec, bool group_threads,
                          struct cs_profile *profile) {
  const struct cs_rec_thread *t = rec->threads;
  struct cs_map by_name = {0};
  struct group {
    size_t thread;  // its first one
    unsigned count;
  } *group = cs_allocate((rec->thread_count + 1) * sizeof *group);
  uint32_t count = 0;
  uint32_t *thread = cs_allocate((rec->thread_count + 1) * sizeof *thread);
  for (size_t i = 0; i < rec->thread_count; i++) {
    bool fresh = true;
    thread[i] = count;
    if (group_threads && groups(rec, &t[i]))
      thread[i] = cs_map_put(&by_name, t[i].name, count, &fresh);
    if (fresh) group[count++].thread = i;
    group[thread[i]].count++;
  }
  for (uint32_t i = 0; i < count; i++)
    add_thread(rec, &t[group[i].thread], group[i].count, profile);
  cs_map_free(&by_name);
  free(group);
  return thread;
}
