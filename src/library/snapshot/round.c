// SPDX-License-Identifier: MIT
// Threads that are asked ahead, together. A thread that runs can walk itself only when it has a
// processor. Asked one after the other, each thread would take its turn of the scheduler; asked
// together, all of them take one.
//
// Nobody is held: a thread records its frames into its slot, and runs on.
//
// Invariants: a walk that is handed out began in the round, and no code has died since. A thread
// has one such signal on its way at most: a request that is not answered when its round ends stays,
// and its walk belongs to the round in which it begins. A thread is not pinned between its question
// and its answer, but by its own handler while it walks, so threads end during a round as without
// one. A thread that sleeps is not asked. Place i of the table uses slot CS_REQUEST_SLOTS + i.
// Threads: any. Not for handlers.
#include "snapshot/round.h"

#include <sched.h>

#include "base/clock.h"
#include "base/log.h"
#include "life/altstacks_soon.h"
#include "life/function.h"
#include "life/images.h"
#include "life/library.h"
#include "threads/ask.h"
#include "threads/own_tid.h"
#include "threads/registry.h"
#include "threads/sleeper.h"

enum {
  IDLE_ROUNDS = 8,             // in a row in which a thread slept: it has no place any more
  MET = CS_REQUEST_AHEAD + 1,  // in struct cs_thread.ahead: it has no place, but is not new
  LOCK_TRIES = 1000,
  // A thread that has not answered for so long is asked again: its signal may be lost, if the
  // program has exchanged the handler.
  AGAIN_S = 10,
};

struct place {
  struct cs_thread *thread;  // NULL: free
  uint64_t clr_thread;
  uint32_t generation;         // of the entry
  bool plain;                  // nobody has wanted all registers
  bool wanted;                 // in the last round
  bool runs;                   // to be asked now
  uint32_t idle;               // rounds in a row that have found it asleep
  struct cs_request *request;  // NULL: none is under way
  uint64_t asked, asked_ns;    // its sequence number, and when
};

static struct {
  uint32_t busy;    // the lock of the rest
  uint32_t begins;  // 1: the round's first walk, at which threads are asked, is still to come
  bool under_way;
  uint32_t plain;  // 1: the last walk was. Atomic
  uint32_t used;   // places [0, used) have been in use
  struct place places[CS_REQUEST_AHEAD];
} table;

static bool try_lock(void) {
  for (int i = 0; i < LOCK_TRIES; i++) {
    uint32_t no = 0;
    if (cs_cas(&table.busy, &no, 1)) return true;
    (void)sched_yield();
  }
  cs_log("the table of threads that are asked together is in use: a thread may be asked alone");
  return false;
}
static void unlock(void) {
  cs_store_release(&table.busy, 0);
}

// ---- Places ----

static bool is_of(const struct place *place, const struct cs_thread *thread) {
  return place->thread == thread && place->clr_thread == thread->clr_thread &&
         place->generation == thread->generation;
}

static uint32_t number_of(const struct place *place) {
  return (uint32_t)(place - table.places);
}

static struct place *place_of(const struct cs_thread *thread) {
  uint32_t ahead = cs_load_relaxed(&thread->ahead);
  if (ahead == 0 || ahead == MET || !is_of(&table.places[ahead - 1], thread)) return NULL;
  return &table.places[ahead - 1];
}

static struct place *free_place(void) {
  static bool said;
  for (uint32_t i = 0; i < table.used; i++)
    if (table.places[i].thread == NULL) return &table.places[i];
  if (table.used < CS_REQUEST_AHEAD) return &table.places[table.used++];
  if (!said) cs_log("more than %d threads run: the others are asked one by one", CS_REQUEST_AHEAD);
  said = true;
  return NULL;
}

// Returns NULL if the table is full.
static struct place *take_place(struct cs_thread *thread, bool plain) {
  struct place *place = free_place();
  if (place == NULL) return NULL;
  *place = (struct place){.thread = thread, .plain = plain};
  place->clr_thread = thread->clr_thread;
  place->generation = thread->generation;
  cs_store_relaxed(&thread->ahead, number_of(place) + 1);
  return place;
}

static void give_up(struct place *place) {
  if (place->request != NULL) cs_request_cancel(place->request, place->asked);
  place->request = NULL;
}

static void forget(struct place *place) {
  give_up(place);
  if (cs_load_relaxed(&place->thread->ahead) == number_of(place) + 1)
    cs_store_relaxed(&place->thread->ahead, (uint32_t)MET);
  place->thread = NULL;
}

// A thread that still has a signal on its way keeps its place.
static void forget_unwanted(uint64_t now_ns) {
  for (uint32_t i = 0; i < table.used; i++) {
    struct place *place = &table.places[i];
    if (place->thread == NULL) continue;
    if (place->request != NULL && now_ns - place->asked_ns > AGAIN_S * 1000000000ull)
      give_up(place);
    bool gone = !is_of(place, place->thread) || cs_load_acquire(&place->thread->tid) == 0;
    if (gone || (place->request == NULL && (!place->wanted || place->idle >= IDLE_ROUNDS)))
      forget(place);
    place->wanted = false;
  }
}

// ---- Asking ----

static bool is_running(const struct cs_thread *thread) {
  struct cs_sleeper *sleeper = cs_load_acquire(&thread->sleeper);
  uint64_t sp, ip;
  if (cs_library.opts.flags & CLRSNAP_ALWAYS_SIGNAL) return true;
  return sleeper != NULL && cs_sleeper_where(sleeper, &sp, &ip) == CS_SLEEP_RUNNING;
}

// Threads that no round has met yet: all of them before the first one. Those that run get a place.
static void meet_new(bool plain) {
  uint32_t count = cs_registry_count();
  for (uint32_t i = 0; i < count; i++) {
    struct cs_thread *thread = cs_registry_at(i);
    struct cs_sleeper spare, *sleeper;
    uint64_t clr_thread = thread->clr_thread;
    if (cs_load_relaxed(&thread->ahead) != 0 || clr_thread == 0 ||
        !cs_thread_pin(thread, clr_thread))
      continue;
    cs_store_relaxed(&thread->ahead, (uint32_t)MET);
    sleeper = cs_sleeper_open(thread, &spare);
    if (sleeper != NULL && is_running(thread)) (void)take_place(thread, plain);
    if (sleeper != NULL) cs_sleeper_close(sleeper, &spare);
    cs_thread_unpin(thread);
  }
}

// Returns whether the thread of this place is to be asked.
static bool choose(struct place *place) {
  struct cs_thread *thread = place->thread;
  if (cs_load_acquire(&thread->tid) == cs_own_tid() || !cs_thread_pin(thread, place->clr_thread))
    return false;
  place->runs = is_running(thread) && cs_library_may_ask_now(thread);
  cs_thread_unpin(thread);
  place->idle = place->runs ? 0 : place->idle + 1;
  return place->runs;
}

// First those that ran in the last round. Only if they need all processors, also those that slept
// then and run now: they would have to wait for a processor. Otherwise they will soon sleep again,
// and are walked then.
static void choose_all(void) {
  uint32_t count = 0;
  for (int slept = 0; slept < 2; slept++) {
    for (uint32_t i = 0; i < table.used; i++) {
      struct place *place = &table.places[i];
      if (slept == 0) place->runs = false;
      if (place->thread == NULL || place->request != NULL || place->runs ||
          (place->idle > 0) != (slept == 1))
        continue;
      if (slept == 1 && count < cs_processors())
        place->idle++;
      else if (choose(place))
        count++;
    }
  }
}

static void ask(struct place *place, uint64_t now_ns) {
  if (!cs_thread_pin(place->thread, place->clr_thread)) return;
  place->request = cs_request_ask_ahead(number_of(place), place->thread, place->plain,
                                        cs_module_deaths(), &place->asked);
  place->asked_ns = now_ns;
  cs_thread_unpin(place->thread);
}

static void ask_all(void) {
  uint64_t now_ns = cs_clock_now_ns();
  if (cs_library_images_are_old()) (void)cs_library_refresh_images();
  forget_unwanted(now_ns);
  meet_new(cs_load_relaxed(&table.plain) != 0);
  choose_all();
  for (uint32_t i = 0; i < table.used; i++)
    if (table.places[i].runs) ask(&table.places[i], now_ns);
}

// ---- The round ----

// A request that waits for its thread stays, and any walk from now on is one of the next round.
static void settle(bool under_way) {
  while (!try_lock()) continue;  // nothing of an earlier round may be handed out in the next
  for (uint32_t i = 0; i < table.used; i++) {
    struct place *place = &table.places[i];
    if (place->request != NULL &&
        CS_REQUEST_STATE(cs_load_acquire(&place->request->word)) != CS_REQUEST_PENDING)
      give_up(place);
  }
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

static struct cs_ahead hand_out(const struct cs_thread *thread, bool plain) {
  struct cs_ahead ahead = {0};
  struct place *place = place_of(thread);
  if (place == NULL) return ahead;
  place->wanted = true;
  place->plain = place->plain && plain;
  // A walk with all registers is good for both.
  bool fits = place->request != NULL && (plain || !place->request->capture.plain);
  if (table.under_way && fits && cs_library_may_ask_now(thread)) {
    ahead = (struct cs_ahead){place->request, place->asked};
    place->request = NULL;
  }
  return ahead;
}

bool cs_round_take(struct cs_thread *thread, uint32_t flags, struct cs_ahead *ahead) {
  bool plain = (flags & CS_REQUEST_PLAIN) != 0;
  uint32_t at = cs_load_relaxed(&thread->ahead);
  cs_store_relaxed(&table.plain, plain ? 1u : 0u);
  // Most threads sleep, and have no place.
  if (cs_load_acquire(&table.begins) == 0 && (at == 0 || at == MET)) return false;
  if (!try_lock()) return false;
  if (table.under_way && cs_load_relaxed(&table.begins) != 0) {
    cs_store_release(&table.begins, 0u);
    ask_all();
  }
  *ahead = hand_out(thread, plain);
  unlock();
  return ahead->request != NULL;
}

bool cs_round_is_good(const struct cs_request *request) {
  const struct cs_capture *capture = &request->capture;
  return request->answer == CS_ANSWER_WALKED && capture->stop == CS_STOP_BASE &&
         capture->module_deaths == cs_module_deaths() &&
         capture->generation == cs_load_acquire(&cs_library.world.code_generation);
}

void cs_round_give_back(struct cs_thread *thread, const struct cs_ahead *ahead) {
  bool kept = false;
  if (try_lock()) {
    struct place *place = place_of(thread);
    bool waits = CS_REQUEST_STATE(cs_load_acquire(&ahead->request->word)) == CS_REQUEST_PENDING;
    kept = place != NULL && place->request == NULL && (waits || table.under_way) &&
           &cs_requests[CS_REQUEST_SLOTS + number_of(place)] == ahead->request;
    if (kept) {
      place->request = ahead->request;
      place->asked = ahead->asked;
    }
    unlock();
  }
  if (!kept) cs_request_cancel(ahead->request, ahead->asked);
}

void cs_round_note(struct cs_thread *thread, uint32_t flags) {
  if (!try_lock()) return;
  bool plain = (flags & CS_REQUEST_PLAIN) != 0;
  struct place *place = place_of(thread);
  if (place == NULL) place = take_place(thread, plain);
  if (place != NULL) {
    place->plain = place->plain && plain;
    place->wanted = true;
    place->idle = 0;
  }
  unlock();
}
