// SPDX-License-Identifier: MIT
// Prints which locks threads wait for and which threads hold them. Invariant: what is not known is
// printed as unknown. One thread. Signal-safe: no.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/prefix.h"
#include "base/print.h"
#include "cli/stack_parts.h"

static void print_thread(FILE *out, const struct cs_outside_thread *t, bool with_tid) {
  cs_print(out, "\"%s\"", t->name);
  if (with_tid) cs_print(out, " (tid %d)", t->tid);
}

static void print_object(FILE *out, const struct cs_outside_lock *lock, bool with_address) {
  const char *type = lock->type_name;
  if (type == NULL)
    cs_print(out, "an object");
  else
    cs_print(out, strchr("AEIOUaeiou", type[0]) != NULL ? "an %s" : "a %s", type);
  if (lock->object != 0 && with_address) cs_print(out, " (0x%" PRIx64 ")", lock->object);
}

// The youngest frame of the program's own code, or of any managed code.
static const struct cs_outside_frame *frame_of(const struct cs_outside_thread *t) {
  const struct cs_outside_frame *youngest = NULL;
  for (uint32_t i = 0; i < t->count; i++) {
    const struct cs_outside_frame *f = &t->frames[i];
    if (!cs_outside_is_named(f)) continue;
    if (!cs_has_prefix(f->name, "System.")) return f;
    if (youngest == NULL) youngest = f;
  }
  return youngest;
}

static void print_place(FILE *out, const struct cs_outside_thread *t) {
  const struct cs_outside_frame *f = frame_of(t);
  if (f == NULL) return;
  cs_print(out, ", which is in %s", f->name);
  if (f->source == NULL) return;
  const char *file = cs_file_of_source(f->source);
  cs_print(out, " (%s:%" PRIu32 ")", file, f->line);
}

static void print_owner(FILE *out, const struct cs_outside *outside,
                        const struct cs_outside_lock *lock) {
  const char *held = lock->kind == CS_OUTSIDE_LOCK_PULSE ? "whose lock is held" : "held";
  switch (lock->owner) {
    case CS_OUTSIDE_OWNER_UNKNOWN:
      cs_print(out, ", %s by an unknown thread", held);
      break;
    case CS_OUTSIDE_OWNER_NOBODY:
      if (lock->kind != CS_OUTSIDE_LOCK_PULSE) cs_print(out, ", free at this moment");
      break;
    case CS_OUTSIDE_OWNER_READERS:
      cs_print(out, ", not held by a writer (which threads read is not recorded)");
      break;
    case CS_OUTSIDE_OWNER_ENDED:
      cs_print(out, ", %s by a thread that has ended", held);
      break;
    case CS_OUTSIDE_OWNER_THREAD:
      cs_print(out, ", %s by ", held);
      print_thread(out, &outside->threads[lock->by], true);
      if (lock->upgradeable) cs_print(out, " as upgradeable reader");
      print_place(out, &outside->threads[lock->by]);
      break;
  }
}

void cs_stack_print_lock(FILE *out, const struct cs_outside *outside,
                         const struct cs_outside_thread *thread) {
  const struct cs_outside_lock *lock = &thread->lock;
  if (lock->kind == CS_OUTSIDE_LOCK_NONE) {
    if (thread->waits_for != NULL && strstr(thread->waits_for, "lock") != NULL)
      cs_print(out, "  which lock it waits for is not known%s\n",
               outside->moving ? ": a collection moves objects at this moment" : "");
    return;
  }
  cs_print(out, lock->kind == CS_OUTSIDE_LOCK_PULSE ? "  waits for a pulse of " : "  waits for ");
  // A pulse that nobody is about to give is a task's end or the like: its object says nothing, and
  // is another one for each thread that waits at this place.
  bool idle = lock->kind == CS_OUTSIDE_LOCK_PULSE && lock->owner == CS_OUTSIDE_OWNER_NOBODY;
  print_object(out, lock, !idle);
  print_owner(out, outside, lock);
  cs_print(out, "\n");
}

// Returns the first thread of the deadlock.
static uint32_t first_of(const struct cs_outside *outside, uint32_t cycle) {
  uint32_t i = 0;
  while (i + 1 < outside->count && outside->threads[i].lock.cycle != cycle) i++;
  return i;
}

// Of many threads that wait for each other, those in the middle are left out.
static void print_deadlock(FILE *out, const struct cs_outside *outside, uint32_t first) {
  enum { FIRST = 8, LAST = 2 };
  const struct cs_outside_thread *threads = outside->threads;
  bool ends = false;
  uint32_t i = first, count = 0;
  do {
    ends = ends || threads[i].lock.ends;
    i = threads[i].lock.by;
    count++;
  } while (i != first);
  uint32_t left_out = count > FIRST + LAST + 2 ? count - FIRST - LAST : 0;
  cs_print(out, ends ? "deadlock, until a wait reaches its time limit: " : "deadlock: ");
  print_thread(out, &threads[i], true);
  for (uint32_t k = 0; k < count; k++, i = threads[i].lock.by) {
    if (k >= FIRST && k < FIRST + left_out) continue;
    const struct cs_outside_lock *lock = &threads[i].lock;
    uint32_t by = lock->by;
    if (left_out > 0 && k == FIRST + left_out) {
      cs_print(out, ", and so on, through %" PRIu32 " more threads, to ", left_out - 1);
      print_thread(out, &threads[i], true);
    }
    cs_print(out, k == 0 ? " waits for " : ", which waits for ");
    print_object(out, lock, true);
    cs_print(out, " held by ");
    print_thread(out, &threads[by], by != first);
  }
  cs_print(out, "\n");
}

void cs_stack_print_deadlocks(FILE *out, const struct cs_outside *outside) {
  for (uint32_t cycle = 1; cycle <= outside->cycles; cycle++)
    print_deadlock(out, outside, first_of(outside, cycle));
}

// ---- JSON ----

void cs_stack_put_deadlocks(struct cs_json_writer *j, const struct cs_outside *outside) {
  if (outside->cycles == 0) return;
  cs_json_open(j, "deadlocks", '[');
  for (uint32_t cycle = 1; cycle <= outside->cycles; cycle++) {
    uint32_t first = first_of(outside, cycle), i = first;
    cs_json_open(j, NULL, '[');
    do {
      cs_json_int(j, NULL, outside->threads[i].tid);
      i = outside->threads[i].lock.by;
    } while (i != first);
    cs_json_close(j, "]");
  }
  cs_json_close(j, "]");
}

void cs_stack_put_lock(struct cs_json_writer *j, const struct cs_outside *outside,
                       const struct cs_outside_thread *thread) {
  static const char *const kinds[] = {[CS_OUTSIDE_LOCK_MONITOR] = "monitor",
                                      [CS_OUTSIDE_LOCK_PULSE] = "pulse",
                                      [CS_OUTSIDE_LOCK_LOCK] = "lock",
                                      [CS_OUTSIDE_LOCK_READER_WRITER] = "reader-writer lock"};
  static const char *const owners[] = {[CS_OUTSIDE_OWNER_UNKNOWN] = "unknown",
                                       [CS_OUTSIDE_OWNER_NOBODY] = "nobody",
                                       [CS_OUTSIDE_OWNER_READERS] = "readers",
                                       [CS_OUTSIDE_OWNER_ENDED] = "ended",
                                       [CS_OUTSIDE_OWNER_THREAD] = "thread"};
  const struct cs_outside_lock *lock = &thread->lock;
  char address[32];
  if (lock->kind == CS_OUTSIDE_LOCK_NONE) return;
  cs_json_open(j, "lock", '{');
  cs_json_text(j, "kind", kinds[lock->kind]);
  if (lock->type_name != NULL) cs_json_text(j, "type", lock->type_name);
  (void)snprintf(address, sizeof address, "0x%" PRIx64, lock->object);
  if (lock->object != 0) cs_json_text(j, "address", address);
  cs_json_text(j, "owner", owners[lock->owner]);
  if (lock->owner == CS_OUTSIDE_OWNER_THREAD) {
    cs_json_int(j, "owner_tid", outside->threads[lock->by].tid);
    cs_json_text(j, "owner_name", outside->threads[lock->by].name);
  }
  cs_json_bool(j, "time_limit", lock->ends);
  cs_json_close(j, "}");
}
