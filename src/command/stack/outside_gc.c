// SPDX-License-Identifier: MIT
// What the threads of a stopped process have to do with a collection. Invariant: every claim needs
// a sign that no other thread has; without a sign nothing is claimed. A thread suspends the runtime
// if it holds the lock on the list of threads and the runtime names it as the suspending thread, or
// if it is a worker of the collector. It does so for a collection if one of its callers is a method
// by which threads collect, and for another reason only if its stack is complete and has none of
// the collector's methods. A thread waits for the end of a suspension if it stands where the
// runtime blocks threads, or waits on the same futex as one that does. One thread. Signal-safe: no.
#include <string.h>

#include "stack/outside.h"

// ---- Signs ----

void cs_outside_note_frame(struct cs_remote *remote, const struct cs_frame *frame,
                           struct cs_outside_signs *signs) {
  bool is_leaf = signs->depth++ == 0;
  uint64_t sp = frame->regs.r[CS_SP], ip = frame->regs.r[CS_IP];
  if (is_leaf) signs->leaf = frame->code.kind;
  if (signs->managed_ip != 0 && signs->caller_sp == 0) signs->caller_sp = sp;
  if (signs->managed_ip == 0 && cs_code_is_managed(&frame->code)) {
    signs->managed_ip = ip;
    signs->managed_sp = sp;
    signs->jitted = frame->code.kind == CS_CODE_JIT;
  }
  // The leaf may be the function by which the runtime notifies the collector of a suspension.
  if (is_leaf || frame->code.kind != CS_CODE_NATIVE) return;
  switch (cs_remote_gc_method(remote, frame->flags & CS_FRAME_EXACT ? ip : ip - 1)) {
    case CS_GC_METHOD_NONE:
      break;
    case CS_GC_METHOD_COLLECT:
      signs->collects = true;
      break;
    case CS_GC_METHOD_OTHER:
      signs->other = true;
      break;
    case CS_GC_METHOD_UNKNOWN:
      signs->unknown = true;
      break;
  }
}

// Returns whether the topmost explicit Frame is one by which the runtime blocks a thread, or the
// thread returns from native code and is not in managed code yet: the Frame of that call is still
// linked, but its method is at a later call. The latter only holds for jitted code, because Frames
// of ReadyToRun code do not have the address that native code returns to.
static bool is_trapped(struct cs_remote *remote, const struct cs_outside_signs *signs) {
  const struct cs_layout *l = &cs_remote_world(remote)->layout;
  const struct cs_frame_ids *ids = &l->frame_ids;
  uint64_t top, id, back;
  if (signs->clr_thread == 0 ||
      !cs_remote_read(remote, signs->clr_thread + l->thread.frame, &top, 8) ||
      !cs_remote_read(remote, top, &id, 8))
    return false;
  if (id == ids->resumable || id == ids->redirected_thread || id == ids->hijack) return true;
  return id == ids->inlined_call && signs->jitted && top >= signs->managed_sp &&
         top < signs->caller_sp &&
         cs_remote_read(remote, top + l->inlined_call_frame.caller_return_address, &back, 8) &&
         back != 0 && back < signs->managed_ip;
}

void cs_outside_note_thread(struct cs_remote *remote, const struct cs_remote_thread *stopped,
                            struct cs_outside_thread *thread) {
  struct cs_outside_signs *signs = &thread->signs;
  signs->runtime_tid = cs_remote_own_tid(remote, thread->tid);
  signs->clr_thread = stopped->clr_thread;
  if (strstr(thread->state, "in futex") != NULL)
    signs->futex = stopped->regs.r[CS_ARGUMENT] & ~7ull;
  if (thread->stop != CS_STOP_BASE) signs->unknown = true;
  signs->trapped = is_trapped(remote, signs);
}

// ---- Claims ----

// The names of the collector's threads. A program may use them too, but the runtime knows its
// threads, and they have managed frames.
static bool is_server_worker(const struct cs_outside_thread *t) {
  return strcmp(t->name, ".NET Server GC") == 0 && t->walked && t->signs.clr_thread == 0;
}

static bool is_background_worker(const struct cs_outside_thread *t) {
  return strcmp(t->name, ".NET BGC") == 0 && t->walked && t->signs.clr_thread != 0 &&
         t->signs.managed_ip == 0;
}

static enum cs_outside_reason reason_of(const struct cs_outside_thread *t) {
  const struct cs_outside_signs *s = &t->signs;
  if (s->collects || is_server_worker(t) || is_background_worker(t))
    return CS_OUTSIDE_REASON_COLLECTION;
  return s->other || s->unknown ? CS_OUTSIDE_REASON_UNKNOWN : CS_OUTSIDE_REASON_OTHER;
}

// Returns the thread that suspends the runtime, or NULL if none is known.
static struct cs_outside_thread *find_suspender(struct cs_remote *remote,
                                                struct cs_outside *outside) {
  uint64_t suspending = 0, at = cs_remote_world(remote)->layout.suspension_thread;
  struct cs_remote_holder holder;
  bool known = cs_remote_holder(remote, &holder);
  if (at == 0 || !cs_remote_read(remote, at, &suspending, 8)) suspending = 0;
  for (uint32_t i = 0; i < outside->count; i++) {
    struct cs_outside_thread *t = &outside->threads[i];
    if (!t->walked) continue;
    bool named = suspending != 0 && t->signs.clr_thread == suspending;
    bool worker = known && holder.clr_thread == 0 && holder.own_tid == t->signs.runtime_tid &&
                  is_server_worker(t);
    if (named || worker) return t;
  }
  return NULL;
}

static void mark_workers(struct cs_remote *remote, struct cs_outside *outside,
                         const struct cs_outside_thread *suspender) {
  enum cs_gc_background background = cs_remote_gc_background(remote);
  struct cs_remote_holder holder;
  bool quiet = cs_remote_holder(remote, &holder) && holder.own_tid == 0;
  bool servers = suspender != NULL && is_server_worker(suspender);
  for (uint32_t i = 0; i < outside->count; i++) {
    struct cs_outside_thread *t = &outside->threads[i];
    if (is_server_worker(t) && servers) {
      t->gc = CS_OUTSIDE_GC_COLLECTS;
      if (cs_outside_is_waiting(t) && t != suspender)
        t->waits_for = "the other threads of the collector";
    } else if (is_server_worker(t) && cs_outside_is_waiting(t) && (quiet || suspender != NULL)) {
      t->waits_for = "work";
    } else if (is_background_worker(t) && background == CS_GC_BACKGROUND_YES) {
      t->gc = CS_OUTSIDE_GC_BACKGROUND;
    } else if (is_background_worker(t) && background == CS_GC_BACKGROUND_NO &&
               cs_outside_is_waiting(t)) {
      t->waits_for = "work";
    }
  }
}

static bool is_futex_of_trapped(const struct cs_outside *outside, uint64_t futex) {
  for (uint32_t i = 0; i < outside->count; i++) {
    const struct cs_outside_thread *t = &outside->threads[i];
    if (futex != 0 && t->signs.futex == futex && t->signs.trapped && !t->cooperative) return true;
  }
  return false;
}

static void mark_waiting(struct cs_outside *outside, const struct cs_outside_thread *suspender) {
  bool collection = suspender != NULL && suspender->reason == CS_OUTSIDE_REASON_COLLECTION;
  for (uint32_t i = 0; i < outside->count; i++) {
    struct cs_outside_thread *t = &outside->threads[i];
    if (!cs_outside_is_waiting(t) || t == suspender || t->cooperative || t->signs.clr_thread == 0)
      continue;
    if (suspender != NULL && is_futex_of_trapped(outside, t->signs.futex))
      t->waits_for = collection ? "a collection to end" : "the runtime to resume";
    else if (t->signs.collects)
      t->waits_for = "the garbage collector";
  }
}

void cs_outside_classify(struct cs_remote *remote, struct cs_outside *outside) {
  struct cs_outside_thread *suspender = find_suspender(remote, outside);
  if (suspender != NULL) {
    suspender->suspends = true;
    suspender->reason = reason_of(suspender);
    if (suspender->reason == CS_OUTSIDE_REASON_COLLECTION) suspender->gc = CS_OUTSIDE_GC_COLLECTS;
  }
  mark_workers(remote, outside, suspender);
  mark_waiting(outside, suspender);
}
