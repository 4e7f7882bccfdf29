// SPDX-License-Identifier: MIT
// Threads that are asked ahead, together. A thread that is asked alone answers when the scheduler
// comes to it, and the next one is asked after that.
//
// Where at least as many threads run as there are processors, those in managed code wait in their
// handlers after their answer until the round is over, as they would in a stop of the runtime, but WAIT_MS at most. Else
// they would take the processors from those that have not answered, and from the caller.
//
// Invariants: a walk that is handed out began in the round, and no code has died since; so it is one
// that a stop at that moment would have shown. A thread is not pinned between its question and its
// answer, but by its own handler while it walks, so that threads end during a round as without one.
// A thread that sleeps is not asked. Place i of the table uses slot CS_REQUEST_SLOTS + i. Any thread.
// Not for handlers.
#include "snapshot/round.h"

#include <sched.h>

#include "base/clock.h"
#include "base/futex.h"
#include "life/altstacks_soon.h"
#include "life/function.h"
#include "life/images.h"
#include "threads/ask.h"
#include "threads/own_tid.h"
#include "threads/registry.h"
#include "threads/sleeper.h"

enum {
  WAIT_MS = 100,
  GATHER_MS = 100,  // the caller waits for all, once: it may have to wait for a processor each time
  LATE_MS = 20,     // a thread that has not answered by then is asked alone, or walked asleep
  IDLE_ROUNDS = 8,  // in a row in which a thread slept: it has no place any more
  MET = CS_REQUEST_AHEAD + 1,  // in struct cs_thread.ahead: it has no place, but is not new
};

struct place {
  struct cs_thread *thread;  // NULL: free
  uint64_t clr_thread;
  uint32_t generation;         // of the entry
  uint32_t flags;              // CS_REQUEST_PLAIN: nobody has wanted all registers
  uint32_t idle;               // looks in a row that have found it asleep
  bool wanted;                 // in this round
  bool idled;                  // it slept at the last look
  bool runs;                   // to be asked
  struct cs_request *request;  // NULL: none is under way
  uint64_t asked;
};

static struct {
  uint32_t busy;    // the lock of the rest
  uint32_t begins;  // 1: the round's first walk, at which threads are asked, is still to come
  bool under_way;
  bool gathered;   // the threads that were asked wait for the round's end
  bool wanted;     // walks, since threads were asked last
  uint32_t flags;  // CS_REQUEST_PLAIN, as some thread was asked last
  uint32_t used;   // places [0, used) have been in use
  struct place places[CS_REQUEST_AHEAD];
} table = {.wanted = true, .flags = CS_REQUEST_PLAIN};

static bool try_lock(void) {
  uint32_t no = 0;
  return cs_cas(&table.busy, &no, 1);
}
static void lock(void) {
  while (!try_lock()) (void)sched_yield();
}
static void unlock(void) {
  cs_store_release(&table.busy, 0);
}

static bool is_of(const struct place *place, const struct cs_thread *thread) {
  return place->thread == thread && place->clr_thread == thread->clr_thread &&
         place->generation == thread->generation;
}

static struct place *place_of(const struct cs_thread *thread) {
  uint32_t ahead = cs_load_relaxed(&thread->ahead);
  if (ahead == 0 || ahead == MET || !is_of(&table.places[ahead - 1], thread)) return NULL;
  return &table.places[ahead - 1];
}

static struct place *free_place(void) {
  for (uint32_t i = 0; i < table.used; i++)
    if (table.places[i].thread == NULL && table.places[i].request == NULL) return &table.places[i];
  return table.used < CS_REQUEST_AHEAD ? &table.places[table.used++] : NULL;
}

// NULL: the table is full.
static struct place *take_place(struct cs_thread *thread, uint32_t flags) {
  struct place *place = free_place();
  if (place == NULL) return NULL;
  *place = (struct place){.thread = thread, .flags = flags & CS_REQUEST_PLAIN};
  place->clr_thread = thread->clr_thread;
  place->generation = thread->generation;
  cs_store_relaxed(&thread->ahead, (uint32_t)(place - table.places) + 1);
  return place;
}

// ---- Asking ----

static bool is_running(const struct cs_thread *thread) {
  const struct cs_sleeper *sleeper = cs_load_acquire(&thread->sleeper);
  uint64_t sp, ip;
  if (cs_library.opts.flags & CLRSNAP_ALWAYS_SIGNAL) return true;
  return sleeper != NULL && cs_sleeper_where(sleeper, &sp, &ip) == CS_SLEEP_RUNNING;
}

static void forget(struct place *place) {
  if (cs_load_relaxed(&place->thread->ahead) == (uint32_t)(place - table.places) + 1)
    cs_store_relaxed(&place->thread->ahead, (uint32_t)MET);
  place->thread = NULL;
}

static void forget_unwanted(void) {
  for (uint32_t i = 0; i < table.used; i++) {
    struct place *place = &table.places[i];
    if (place->thread == NULL) continue;
    if (!place->wanted || !is_of(place, place->thread) || place->idle >= IDLE_ROUNDS) forget(place);
    place->wanted = false;
  }
}

// Returns whether the thread of this place is to be asked.
static bool choose(struct place *place) {
  struct cs_thread *thread = place->thread;
  uint32_t tid = cs_load_acquire(&thread->tid);
  if (tid == 0 || tid == cs_own_tid() || !cs_thread_pin(thread, place->clr_thread)) return false;
  place->runs = is_running(thread) && cs_library_may_ask_now(thread);
  cs_thread_unpin(thread);
  place->idle = place->runs ? 0 : place->idle + 1;
  return place->runs;
}

// First those that ran at the last look. If these are enough for all processors, others that have
// to run before they sleep again would wait for one, each in its turn: so they are asked, too.
static uint32_t choose_all(void) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < table.used; i++) table.places[i].idled = table.places[i].idle > 0;
  for (uint32_t i = 0; i < table.used; i++)
    if (table.places[i].thread != NULL && !table.places[i].idled && choose(&table.places[i]))
      count++;
  for (uint32_t i = 0; i < table.used; i++) {
    struct place *place = &table.places[i];
    if (place->thread == NULL || !place->idled) continue;
    if (count < cs_processors())
      place->idle++;
    else if (choose(place))
      count++;
  }
  return count;
}

static void ask(struct place *place, uint32_t gathering, uint64_t until_ns) {
  struct cs_thread *thread = place->thread;
  struct cs_request *request = NULL;
  bool pinned = cs_thread_pin(thread, place->clr_thread);
  place->runs = false;
  if (pinned) request = cs_request_claim_ahead((uint32_t)(place - table.places));
  if (request != NULL) {
    request->answer = CS_ANSWER_NOT_READY;
    request->told_count = 0;
    request->capture.self = request->capture.held = request->capture.seeded = false;
    request->capture.asleep = request->capture.kept = false;
    request->capture.plain = (place->flags & CS_REQUEST_PLAIN) != 0;
    request->capture.module_deaths = cs_module_deaths();
    if (cs_request_post_together(request, thread, place->flags, gathering, until_ns,
                                 &place->asked) == CS_ASK_ANSWERED)
      place->request = request;
  }
  if (pinned) cs_thread_unpin(thread);
  if (place->request == NULL) cs_add_seq(&cs_gathering.missing, (uint32_t)-1);
}

// Until all have answered, or the time is up.
static void gather(void) {
  uint64_t until = cs_clock_now_ns() + GATHER_MS * 1000000ull;
  uint32_t missing;
  while ((missing = cs_load_acquire(&cs_gathering.missing)) != 0 && cs_clock_now_ns() < until)
    cs_futex_wait_until(&cs_gathering.missing, missing, until);
}

static void let_go(void) {
  uint32_t next = cs_gathering.number + 1;
  if (!table.gathered) return;
  table.gathered = false;
  cs_store_release(&cs_gathering.number, next != 0 ? next : 1);
  cs_futex_wake(&cs_gathering.number);
}

// Threads that no round has met yet: all, before the first one. Those that run have a place then.
static void meet_new(void) {
  uint32_t count = cs_registry_count();
  for (uint32_t i = 0; i < count; i++) {
    struct cs_thread *thread = cs_registry_at(i);
    struct cs_sleeper spare, *sleeper;
    uint64_t clr_thread = thread->clr_thread;
    if (cs_load_relaxed(&thread->ahead) != 0 || clr_thread == 0 ||
        !cs_thread_pin(thread, clr_thread))
      continue;
    cs_store_relaxed(&thread->ahead, MET);
    sleeper = cs_sleeper_open(thread, &spare);
    if (sleeper != NULL && is_running(thread)) (void)take_place(thread, table.flags);
    cs_sleeper_close(sleeper, &spare);
    cs_thread_unpin(thread);
  }
}

static void cancel_all(void) {
  for (uint32_t i = 0; i < table.used; i++) {
    struct place *place = &table.places[i];
    if (place->request != NULL) cs_request_cancel(place->request, place->asked);
    place->request = NULL;
  }
}

static void ask_all(void) {
  if (cs_library_images_are_old()) (void)cs_library_refresh_images();
  uint32_t count = choose_all();
  uint64_t until = cs_clock_now_ns() + WAIT_MS * 1000000ull;
  if (cs_gathering.number == 0) cs_gathering.number = 1;
  cs_store_release(&cs_gathering.missing, count);
  table.gathered = count >= cs_processors();
  for (uint32_t i = 0; i < table.used && count > 0; i++)
    if (table.places[i].runs)
      ask(&table.places[i], table.gathered ? cs_gathering.number : 0, until);
  if (table.gathered) gather();
}

// Before the round's first walk, since a caller may do other things first.
static void ask_ahead(void) {
  uint32_t first = 1;
  if (!try_lock()) return;
  if (table.under_way && cs_cas(&table.begins, &first, 0)) {
    forget_unwanted();
    if (table.wanted) meet_new();
    table.wanted = false;
    ask_all();
  }
  unlock();
}

static void settle(bool under_way) {
  lock();
  let_go();
  cancel_all();
  table.under_way = under_way;
  cs_store_release(&table.begins, under_way ? 1u : 0u);
  unlock();
}

void cs_round_begin(void) {
  settle(true);
}

void cs_round_end(void) {
  settle(false);
}

// ---- What was asked ----

// The place's request, which is the caller's then.
static struct cs_request *detach(struct cs_thread *thread, uint32_t flags, uint64_t *asked) {
  struct cs_request *request = NULL;
  uint32_t ahead = cs_load_relaxed(&thread->ahead);
  if (!table.wanted) cs_store_relaxed(&table.wanted, true);
  cs_store_relaxed(&table.flags, flags & CS_REQUEST_PLAIN);
  if (ahead == 0 || ahead == MET || !try_lock()) return NULL;
  struct place *place = place_of(thread);
  if (place != NULL) {
    place->wanted = true;
    // A walk with all registers is good for both.
    bool fits = (place->flags & CS_REQUEST_PLAIN) == 0 || (flags & CS_REQUEST_PLAIN) != 0;
    place->flags &= flags;
    if (table.under_way && fits && place->request != NULL) {
      request = place->request;
      *asked = place->asked;
      place->request = NULL;
    }
  }
  unlock();
  return request;
}

// Is it whole, and does what it names still exist?
static bool is_good(const struct cs_request *request) {
  const struct cs_capture *capture = &request->capture;
  return request->answer == CS_ANSWER_WALKED && capture->stop == CS_STOP_BASE &&
         capture->module_deaths == cs_module_deaths() &&
         capture->generation == cs_load_acquire(&cs_library.world.code_generation);
}

struct cs_request *cs_round_take(struct cs_thread *thread, uint32_t flags) {
  uint64_t asked;
  if (cs_load_acquire(&table.begins) != 0) ask_ahead();
  struct cs_request *request = detach(thread, flags, &asked);
  if (request == NULL || !cs_request_wait(request, asked, LATE_MS)) return NULL;
  if (is_good(request)) return request;
  (void)cs_request_release(request);
  return NULL;
}

void cs_round_note(struct cs_thread *thread, uint32_t flags) {
  if (!try_lock()) return;
  struct place *place = place_of(thread);
  if (place == NULL) place = take_place(thread, flags);
  if (place != NULL) {
    place->flags &= flags;
    place->wanted = true;
    place->idle = 0;
  }
  unlock();
}
