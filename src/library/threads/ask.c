// SPDX-License-Identifier: MIT
// The requester's part of a request: it claims a slot, sends the signal, waits, and gives up in an
// orderly way. Any thread, a managed one included: it serves requests while it waits, so two
// threads that ask for each other's stack both get it. Not for handlers.
//
// Invariant: a requester never touches a slot again after it has given up. A late target finds
// another sequence number in the slot, or, if it is already walking, frees the slot itself.
#include "threads/ask.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "threads/own_signal.h"
#include "threads/stackmap.h"
#include "threads/threads.h"

enum {
  PREFAULT_BYTES = 64 * 1024,  // about 680 frames: most handlers take no page fault
  AHEAD_DEPTH = 1024,          // frames of a walk that is asked ahead, for the sake of memory,
  AHEAD_PREFAULT = 8 * 1024,   // and the same for these
  // A running thread answers within 10 to 25 us (./dev bench). While the requester polls, the
  // target need not wake it, which is half of what a walk costs the target.
  AWAKE_NS = 40000,
  // While the runtime is suspended. A thread that is switched out takes the signal before it
  // continues.
  ALTSTACK_MS = 10,
  // The looks in a row that must find the signal blocked: some threads block signals for a moment,
  // for example while they start another one.
  LOOKS = 2,
};

uint32_t cs_processors(void) {
  static uint32_t count;  // sysconf reads a file
  uint32_t known = cs_load_relaxed(&count);
  if (known != 0) return known;
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  known = online > 0 ? (uint32_t)online : 1;
  cs_store_relaxed(&count, known);
  return known;
}

static uint64_t deadline_ns(uint32_t ms) {
  return cs_clock_now_ns() + ms * 1000000ull;
}

// Maps memory for `wanted` frames, which the slot keeps for good; untouched pages cost nothing.
// Raw system calls, since a handler may be the first to use a slot.
static bool have_room(struct cs_request *request, uint32_t wanted, size_t prefault,
                      struct cs_error *err) {
  struct cs_capture *capture = &request->capture;
  capture->records = capture->memory;
  capture->again = capture->at_call = false;
  if (capture->capacity >= wanted) return true;
  size_t size = ((size_t)wanted + CS_AGAIN_ROOM + CS_AGAIN_MAX) * sizeof(struct cs_record);
  long at = cs_syscall6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at < 0)
    return cs_error_set(err, "no memory for a walk's frames (%zu MiB): lower max_depth",
                        size >> 20);
  if (capture->memory != NULL)
    (void)cs_syscall4(
        SYS_munmap, (long)(uintptr_t)capture->memory,
        (long)((capture->capacity + CS_AGAIN_ROOM + CS_AGAIN_MAX) * sizeof(struct cs_record)), 0,
        0);
  capture->records = capture->memory = (struct cs_record *)(uintptr_t)at;
  memset(capture->memory, 0, size < prefault ? size : prefault);
  capture->capacity = wanted;
  capture->last = (struct cs_again){.records = capture->memory + wanted};
  return true;
}

static bool have_records(struct cs_request *request, struct cs_error *err) {
  return have_room(request, cs_threads.max_depth, PREFAULT_BYTES, err);
}

static bool claim(struct cs_request *request) {
  uint64_t word = cs_load_acquire(&request->word);
  uint64_t claimed = CS_REQUEST_WORD(CS_REQUEST_SEQUENCE(word), CS_REQUEST_CLAIMED);
  return CS_REQUEST_STATE(word) == CS_REQUEST_FREE && cs_cas(&request->word, &word, claimed);
}

static struct cs_request *claim_any(void) {
  for (uint32_t i = 0; i < CS_REQUEST_SLOTS; i++)
    if (claim(&cs_requests[i])) return &cs_requests[i];
  return NULL;
}

struct cs_request *cs_request_claim_now(void) {
  struct cs_request *request = claim_any();
  if (request == NULL || have_records(request, NULL)) return request;
  (void)cs_request_release(request);
  return NULL;
}

struct cs_request *cs_request_claim(struct cs_error *err) {
  uint64_t give_up = deadline_ns(cs_threads.answer_timeout_ms);
  struct cs_request *request;
  while ((request = claim_any()) == NULL) {
    if (cs_clock_now_ns() > give_up) {
      cs_error_set(err, "%d snapshots are under way already; try again", CS_REQUEST_SLOTS);
      return NULL;
    }
    struct timespec nap = {.tv_nsec = 100000};
    (void)nanosleep(&nap, NULL);
  }
  if (!have_records(request, err)) {
    (void)cs_request_release(request);
    return NULL;
  }
  return request;
}

static void set_word(struct cs_request *request, uint64_t sequence, enum cs_request_state state) {
  cs_store_release(&request->word, CS_REQUEST_WORD(sequence, state));
}

bool cs_request_release(struct cs_request *request) {
  uint64_t word = cs_load_acquire(&request->word), sequence = CS_REQUEST_SEQUENCE(word);
  if (CS_REQUEST_STATE(word) == CS_REQUEST_HELD &&
      cs_cas(&request->word, &word, CS_REQUEST_WORD(sequence, CS_REQUEST_RELEASED))) {
    // The slot is the target's now; its address stays valid, so this wake can do no harm.
    (void)syscall(SYS_futex, &request->word, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
    return true;
  }
  set_word(request, sequence + 1, CS_REQUEST_FREE);
  return CS_REQUEST_STATE(word) != CS_REQUEST_EXPIRED;
}

// By its status file.
enum cs_ask cs_request_explain(uint32_t tid, uint32_t ms, struct cs_error *err) {
  struct cs_thread_status status;
  if (!cs_thread_status(tid, &status)) return CS_ASK_GONE;
  if (status.blocked >> (cs_threads.signal_number - 1) & 1)
    cs_error_set(err, "thread %u blocks signal %d, so it cannot be asked for its stack", tid,
                 cs_threads.signal_number);
  else if (status.state == 'T' || status.state == 't')
    cs_error_set(err, "thread %u is stopped by a debugger or a job-control signal", tid);
  else
    cs_error_set(err,
                 "thread %u (state %c) did not respond within %u ms: no processor, or in the "
                 "kernel; raise answer_timeout_ms",
                 tid, status.state, ms);
  return CS_ASK_NO_ANSWER;
}

// ---- Holds within a hold's callbacks ----

static bool has_hold(const struct cs_request *request) {
  enum cs_request_state state = CS_REQUEST_STATE(cs_load_acquire(&request->word));
  return state == CS_REQUEST_HELD || state == CS_REQUEST_EXPIRED;
}

// Returns when the first hold of the calling thread ends, or `otherwise` if that is sooner: a
// request from a hold's callback must not outlast that hold.
static uint64_t hold_end(uint64_t otherwise) {
  uint32_t tid = (uint32_t)gettid();
  for (uint32_t i = 0; i < CS_REQUEST_SLOTS; i++) {
    const struct cs_request *request = &cs_requests[i];
    if (has_hold(request) && cs_load_acquire(&request->requester) == tid &&
        cs_request_hold_end(request) < otherwise)
      otherwise = cs_request_hold_end(request);
  }
  return otherwise;
}

// Finds a request in this state by `requester` (0: any) for `target` (0: any).
static const struct cs_request *find(enum cs_request_state state, uint32_t requester,
                                     uint32_t target) {
  for (uint32_t i = 0; i < CS_REQUEST_SLOTS; i++) {
    const struct cs_request *request = &cs_requests[i];
    if (CS_REQUEST_STATE(cs_load_acquire(&request->word)) == state &&
        (requester == 0 || cs_load_acquire(&request->requester) == requester) &&
        (target == 0 || cs_load_acquire(&request->tid) == target))
      return request;
  }
  return NULL;
}

// Returns whether the target is held by the caller, or by a thread that waits for one that the
// caller holds.
static bool is_circular(const struct cs_request *request) {
  uint32_t tid = (uint32_t)gettid();
  const struct cs_request *wanted = request, *held;
  for (uint32_t i = 0; i < CS_REQUEST_SLOTS && wanted != NULL; i++) {
    held = find(CS_REQUEST_HELD, 0, cs_load_acquire(&wanted->tid));
    if (held == NULL) return false;
    uint32_t requester = cs_load_acquire(&held->requester);
    if (requester == tid) return true;
    wanted = find(CS_REQUEST_PENDING, requester, 0);
  }
  return false;
}

// ---- A thread that blocks the signal ----

// A thread that serves a request blocks the signal as well, and is not meant.
static bool is_blocked(const struct cs_request *request) {
  struct cs_thread_status status;
  return cs_thread_status(request->tid, &status) &&
         (status.blocked >> (cs_threads.signal_number - 1) & 1) != 0 &&
         find(CS_REQUEST_WALKING, 0, request->tid) == NULL &&
         find(CS_REQUEST_HELD, 0, request->tid) == NULL;
}

bool cs_request_is_vain(const struct cs_request *request, unsigned *blocked) {
  struct cs_thread *thread = request->thread;
  *blocked = is_blocked(request) ? *blocked + 1 : 0;
  if (*blocked == 0) cs_store_relaxed(&thread->blocks, 0u);
  if (*blocked >= LOOKS) cs_store_relaxed(&thread->blocks, 1u);
  return cs_load_relaxed(&thread->blocks) != 0;
}

// ---- The signal, and the answer ----

// The time is up. Returns whether the answer came at the last moment after all.
static bool give_up(struct cs_request *request, uint64_t sequence) {
  uint64_t word = CS_REQUEST_WORD(sequence, CS_REQUEST_PENDING);
  if (cs_cas(&request->word, &word, CS_REQUEST_WORD(sequence + 1, CS_REQUEST_FREE))) return false;
  word = CS_REQUEST_WORD(sequence, CS_REQUEST_WALKING);
  return !cs_cas(&request->word, &word, CS_REQUEST_WORD(sequence, CS_REQUEST_PARKED));
}

static bool wait_until(struct cs_request *request, uint64_t until) {
  struct timespec at = cs_timespec_of(until);
  uint64_t awake_until = cs_clock_now_ns() + AWAKE_NS;
  bool may_sleep = cs_processors() < 2;
  for (;;) {
    uint64_t word = cs_load_acquire(&request->word);
    enum cs_request_state state = CS_REQUEST_STATE(word);
    if (state != CS_REQUEST_PENDING && state != CS_REQUEST_WALKING) return true;
    if (!may_sleep) {
      cs_cpu_pause();
      may_sleep = cs_clock_now_ns() >= awake_until;
      continue;
    }
    (void)__atomic_exchange_n(&request->sleeps, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&request->word, __ATOMIC_SEQ_CST) != word) continue;
    long rc = syscall(SYS_futex, &request->word, FUTEX_WAIT_BITSET_PRIVATE, (uint32_t)word, &at,
                      NULL, FUTEX_BITSET_MATCH_ANY);
    if (rc != 0 && errno == ETIMEDOUT) return false;
  }
}

bool cs_request_wait(struct cs_request *request, uint32_t ms) {
  return wait_until(request, deadline_ns(ms));
}

static bool wait_for_answer(struct cs_request *request, uint64_t sequence, uint32_t ms) {
  uint64_t until = deadline_ns(ms), look = deadline_ns(CS_FIRST_LOOK_MS);
  unsigned blocked = 0;
  if (request->flags & CS_REQUEST_HOLD) until = hold_end(until);
  for (; look < until; look = deadline_ns(CS_LOOK_MS)) {
    if (wait_until(request, look)) return true;
    if (cs_request_is_vain(request, &blocked)) return give_up(request, sequence);
  }
  return wait_until(request, until) || give_up(request, sequence);
}

enum cs_ask cs_request_post(struct cs_request *request, uint32_t flags, uint64_t *asked,
                            struct cs_error *err) {
  uint64_t sequence = CS_REQUEST_SEQUENCE(cs_load_acquire(&request->word)) + 1;
  if (!cs_own_signal_ensure(err)) {
    set_word(request, sequence, CS_REQUEST_FREE);
    return CS_ASK_NO_ANSWER;
  }
  uint32_t tid = request->tid;
  unsigned blocked = 0;
  if (cs_load_relaxed(&request->thread->blocks) != 0 && cs_request_is_vain(request, &blocked)) {
    set_word(request, sequence, CS_REQUEST_FREE);
    return cs_request_explain(tid, 0, err);
  }
  uint64_t hold_until = deadline_ns(cs_threads.hold_timeout_ms);
  if (flags & CS_REQUEST_HOLD) hold_until = hold_end(hold_until);
  cs_store_release(&request->requester, (uint32_t)gettid());
  request->hold_until[0] = (int64_t)(hold_until / 1000000000u);
  request->hold_until[1] = (int64_t)(hold_until % 1000000000u);
  request->flags = flags;
  request->sleeps = 0;
  *asked = sequence;
  set_word(request, sequence, CS_REQUEST_PENDING);

  siginfo_t info = {0};
  info.si_signo = cs_threads.signal_number;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr =
      (void *)(uintptr_t)CS_REQUEST_SIGVAL((uint64_t)(request - cs_requests), sequence);
  if (syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, cs_threads.signal_number, &info) == 0)
    return CS_ASK_ANSWERED;
  int error = errno;
  set_word(request, sequence + 1, CS_REQUEST_FREE);
  if (error == ESRCH) return CS_ASK_GONE;
  cs_error_set(err, "the signal to thread %u could not be queued: %s (RLIMIT_SIGPENDING?)", tid,
               strerror(error));
  return CS_ASK_NO_ANSWER;
}

enum cs_ask cs_request_await(struct cs_request *request, uint64_t asked, uint32_t ms,
                             struct cs_error *err) {
  uint32_t tid = request->tid;
  bool holds = request->flags & CS_REQUEST_HOLD;
  if (holds && is_circular(request) && !give_up(request, asked)) {
    cs_error_set(err, "thread %u is held by a thread that waits for one that the caller holds",
                 tid);
    return CS_ASK_NO_ANSWER;
  }
  if (wait_for_answer(request, asked, ms)) return CS_ASK_ANSWERED;
  return cs_request_explain(tid, ms, err);
}

static enum cs_ask send_and_wait(struct cs_request *request, uint32_t flags, struct cs_error *err) {
  uint64_t asked;
  enum cs_ask sent = cs_request_post(request, flags, &asked, err);
  uint32_t ms = flags & CS_REQUEST_ALTSTACK ? ALTSTACK_MS : cs_threads.answer_timeout_ms;
  return sent == CS_ASK_ANSWERED ? cs_request_await(request, asked, ms, err) : sent;
}

// The stack of a thread that existed before the library is the mapping that its stack pointer lies
// in. If it is on its alternate stack, it is the mapping of the C library's record of the thread
// (at the thread pointer), or, for the main thread, of the kernel's random bytes. The C library
// itself is not asked: its record is freed with the thread.
static void learn_stack(struct cs_thread *thread, const struct cs_request *request) {
  struct cs_stack stack;
  uint64_t at = request->capture.leaf.r[CS_SP];
  if (request->answer != CS_ANSWER_WALKED) return;
  if (at >= request->stack.alt_lo && at < request->stack.alt_hi)
    at = request->tid == (uint32_t)getpid() ? getauxval(AT_RANDOM) : request->thread_pointer;
  if (!cs_stack_around(at, &stack)) return;  // the walk will end for lack of bounds
  thread->stack.lo = stack.lo;
  cs_store_release(&thread->stack.hi, stack.hi);
}

enum cs_ask cs_request_introduce(struct cs_request *request, struct cs_thread *thread,
                                 uint32_t flags, struct cs_error *err) {
  request->thread = thread;
  request->tid = cs_load_acquire(&thread->tid);
  request->clr_thread = thread->clr_thread;
  request->max_depth = cs_threads.max_depth;
  if (request->max_depth > request->capture.capacity)
    request->max_depth = request->capture.capacity;
  if (request->tid == 0) {
    (void)cs_request_release(request);
    return CS_ASK_GONE;
  }
  if (cs_load_acquire(&thread->stack.hi) == 0) {
    uint32_t introduce = CS_REQUEST_INTRODUCE | (flags & CS_REQUEST_ALTSTACK);
    enum cs_ask ask = send_and_wait(request, introduce, err);
    if (ask != CS_ASK_ANSWERED) return ask;
    learn_stack(thread, request);
  }
  request->stack = thread->stack;
  return CS_ASK_ANSWERED;
}

enum cs_ask cs_request_ask(struct cs_request *request, struct cs_thread *thread, uint32_t flags,
                           struct cs_error *err) {
  enum cs_ask ask = cs_request_introduce(request, thread, flags, err);
  if (ask != CS_ASK_ANSWERED) return ask;
  ask = send_and_wait(request, flags, err);
  if (ask == CS_ASK_ANSWERED && request->answer == CS_ANSWER_WRONG_THREAD) {
    (void)cs_request_release(request);
    return CS_ASK_GONE;
  }
  return ask;
}

// ---- Asked ahead ----

static struct cs_request *claim_ahead(uint32_t i) {
  struct cs_request *request = &cs_requests[CS_REQUEST_SLOTS + i];
  uint32_t depth = cs_threads.max_depth < AHEAD_DEPTH ? cs_threads.max_depth : AHEAD_DEPTH;
  if (!claim(request)) return NULL;
  if (have_room(request, depth, AHEAD_PREFAULT, NULL)) return request;
  (void)cs_request_release(request);
  return NULL;
}

struct cs_request *cs_request_ask_ahead(uint32_t i, struct cs_thread *thread, bool plain,
                                        uint32_t module_deaths, uint64_t *asked) {
  if (cs_load_acquire(&thread->stack.hi) == 0) return NULL;  // it would have to introduce itself
  struct cs_error err;
  uint32_t flags = CS_REQUEST_UNPINNED | (plain ? CS_REQUEST_PLAIN : 0u);
  struct cs_request *request = claim_ahead(i);
  if (request == NULL) return NULL;
  struct cs_capture *capture = &request->capture;
  request->answer = CS_ANSWER_NOT_READY;
  request->reported_count = 0;
  capture->self = capture->held = capture->seeded = capture->asleep = capture->kept = false;
  capture->plain = plain;
  capture->module_deaths = module_deaths;
  if (cs_request_introduce(request, thread, flags, &err) == CS_ASK_ANSWERED &&
      cs_request_post(request, flags, asked, &err) == CS_ASK_ANSWERED)
    return request;
  return NULL;
}

void cs_request_cancel(struct cs_request *request, uint64_t asked) {
  if (give_up(request, asked)) (void)cs_request_release(request);
}
