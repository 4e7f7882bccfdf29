// SPDX-License-Identifier: MIT
// Requests, holds and the registry, with plain threads as targets: the same slots, signals and
// walks as in a CLR process, over native frames.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "life/epoch.h"
#include "life/error.h"
#include "life/start.h"
#include "snapshot/context.h"
#include "snapshot/self.h"
#include "support/target.h"
#include "threads/ask.h"
#include "threads/registry.h"
#include "threads/stackmap.h"
#include "threads/threads.h"

static void end_target(struct target *target) {
  target_end(target);
  assert_false(atomic_load(&target->errno_changed));
}

// Callbacks assert nothing: they also run on other threads, and a failed assertion jumps.
struct seen {
  uint32_t frames, in_target, not_native;
  HRESULT answer;
};

static HRESULT see(const struct clrsnap_frame *frame, void *data) {
  struct seen *seen = data;
  seen->frames++;
  if (frame->kind != CLRSNAP_FRAME_NATIVE) seen->not_native++;
  if (target_owns_ip(frame->ip)) seen->in_target++;
  return seen->answer;
}

static void expect_walk(struct target *target) {
  struct seen seen = {0};
  struct clrsnap_walk_result result = {.size = sizeof result};
  HRESULT hr = clrsnap_walk(target_id(target), see, &seen, NULL, &result);
  if (hr != S_OK) print_error("%s\n", clrsnap_last_error());
  assert_int_equal(hr, S_OK);
  assert_int_equal(seen.frames, result.frames);
  assert_true(result.held_ns > 0);
  if (!SIGNALS_AT_ONCE) return;
  if (result.stop != CS_STOP_BASE) print_error("%s\n", clrsnap_stop_text(result.stop));
  assert_int_equal(result.stop, CS_STOP_BASE);
  assert_int_equal(seen.not_native, 0);
  assert_true(seen.in_target > 0);
}

static void start(const struct clrsnap_opts *opts) {
  struct cs_error err = {0};
  HRESULT hr = cs_library_start_native(opts, &err);
  if (hr != S_OK) print_error("%s\n", err.text);
  assert_int_equal(hr, S_OK);
}

static int setup(void **state) {
  (void)state;
  start(NULL);
  return 0;
}
static int teardown(void **state) {
  (void)state;
  targets_end();
  clrsnap_stop();
  return 0;
}

static void all_slots_are_free(void) {
  for (int i = 0; i < CS_REQUEST_SLOTS; i++)
    assert_int_equal(CS_REQUEST_STATE(cs_load_acquire(&cs_requests[i].word)), CS_REQUEST_FREE);
}

// ---- Captures ----

static void a_running_thread_is_walked_to_its_base(void **state) {
  (void)state;
  struct target *target = target_start((struct target_opts){0});
  for (int i = 0; i < 200; i++) expect_walk(target);
  end_target(target);
  all_slots_are_free();
}

// The previous alternate stack is either none or the sanitizer's own.
static void assert_alternate_is_back(const struct target *target) {
  const stack_t *before = &target->alternate_before, *after = &target->alternate_after;
  assert_int_equal(after->ss_flags & SS_DISABLE, before->ss_flags & SS_DISABLE);
  if (before->ss_flags & SS_DISABLE) return;
  assert_ptr_equal(after->ss_sp, before->ss_sp);
  assert_int_equal(after->ss_size, before->ss_size);
}

static void a_thread_known_by_attach_introduces_itself(void **state) {
  (void)state;
  struct target *target = target_start((struct target_opts){.attached = true});
  assert_non_null(cs_registry_attached(target_id(target), target->tid));
  expect_walk(target);
  struct cs_thread *thread = cs_registry_find(target_id(target));
  assert_true(thread->stack.hi > thread->stack.lo);
  assert_int_equal(thread->altstack.swapped, 1);  // the handler has installed the larger one
  end_target(target);
  assert_alternate_is_back(target);
}

static void the_alternate_stack_is_swapped_and_put_back(void **state) {
  (void)state;
  struct target *target = target_start((struct target_opts){0});
  end_target(target);
  assert_true(target->alternate_inside.ss_size >= 64 * 1024);
  assert_ptr_not_equal(target->alternate_inside.ss_sp, target->alternate_before.ss_sp);
  assert_alternate_is_back(target);
}

// ---- Targets that do not respond ----

static void a_target_that_blocks_the_signal_is_reported_and_its_late_answer_ignored(void **state) {
  (void)state;
  clrsnap_stop();
  struct clrsnap_opts opts = {.size = sizeof opts, .answer_timeout_ms = 30};
  start(&opts);
  struct seen seen = {0};
  struct target *target = target_start((struct target_opts){.block_signal = true});
  assert_int_equal(clrsnap_walk(target_id(target), see, &seen, NULL, NULL),
                   CORPROF_E_STACKSNAPSHOT_UNSAFE);
  assert_non_null(strstr(clrsnap_last_error(), "blocks signal"));
  assert_int_equal(seen.frames, 0);
  all_slots_are_free();
  // Another walk uses the slot before the late signal is delivered, which must change nothing in
  // it.
  struct cs_error err = {0};
  struct cs_request *slot = cs_request_claim(&err);
  assert_ptr_equal(slot, &cs_requests[0]);
  struct cs_request before = *slot;
  atomic_store(&target->unblock, true);
  while (atomic_load(&target->unblock)) (void)usleep(100);
  target_wait_for_beats(target, atomic_load(&target->beats) + 1000);
  assert_memory_equal(&before, slot, sizeof before);
  assert_true(cs_request_release(slot));
  clrsnap_stop();
  start(NULL);
  expect_walk(target);
  end_target(target);
}

// A caller may have suspended the runtime meanwhile, so it must not wait for the whole time-out.
static void a_target_that_blocks_the_signal_is_not_waited_for(void **state) {
  (void)state;
  enum { WALKS = 50 };
  struct seen seen = {0};
  struct target *target = target_start((struct target_opts){.block_signal = true});
  uint64_t began = cs_clock_now_ns();
  for (int i = 0; i < WALKS; i++)
    assert_int_equal(clrsnap_walk(target_id(target), see, &seen, NULL, NULL),
                     CORPROF_E_STACKSNAPSHOT_UNSAFE);
  assert_non_null(strstr(clrsnap_last_error(), "blocks signal"));
  assert_true(cs_clock_now_ns() - began < cs_threads.answer_timeout_ms * 1000000ull);
  all_slots_are_free();
  atomic_store(&target->unblock, true);
  while (atomic_load(&target->unblock)) (void)usleep(100);
  expect_walk(target);
  end_target(target);
}

static void a_target_whose_stack_is_small_is_sent_no_signal(void **state) {
  (void)state;
  struct target *target = target_start((struct target_opts){0});
  struct cs_thread *thread = cs_registry_find(target_id(target));
  struct seen seen = {0};
  uint64_t lo = thread->stack.lo;
  thread->stack.lo = thread->stack.hi - CS_LEAST_STACK + 4096;
  HRESULT hr = clrsnap_walk(target_id(target), see, &seen, NULL, NULL);
  thread->stack.lo = lo;
  assert_int_equal(hr, CORPROF_E_STACKSNAPSHOT_UNSAFE);
  assert_non_null(strstr(clrsnap_last_error(), "below 64 KiB"));
  assert_int_equal(seen.frames, 0);
  expect_walk(target);
  end_target(target);
  all_slots_are_free();
}

static void a_target_that_is_gone_is_invalid(void **state) {
  (void)state;
  struct target *target = target_start((struct target_opts){0});
  struct seen seen = {0};
  end_target(target);
  assert_int_equal(clrsnap_walk(target_id(target), see, &seen, NULL, NULL),
                   CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD);
  // The target ends without a report, as it does when events come out of order.
  struct target *silent = target_start((struct target_opts){.silent_end = true});
  end_target(silent);
  assert_int_equal(clrsnap_walk(target_id(silent), see, &seen, NULL, NULL),
                   CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD);
  assert_int_equal(seen.frames, 0);
  cs_registry_destroyed(target_id(silent));
  all_slots_are_free();
}

static void an_unknown_thread_id_gives_no_callback(void **state) {
  (void)state;
  struct seen seen = {0};
  assert_int_equal(clrsnap_walk(0x1234560, see, &seen, NULL, NULL), S_OK);
  assert_int_equal(clrsnap_walk(0, see, &seen, NULL, NULL), S_OK);  // not a managed thread
  assert_int_equal(seen.frames, 0);
}

// ---- Answers that find another state ----

static bool park_while_walking(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len) {
  (void)mem;
  uint64_t word = cs_load_acquire(&cs_requests[5].word);
  if (CS_REQUEST_STATE(word) == CS_REQUEST_WALKING)
    (void)cs_cas(&cs_requests[5].word, &word,
                 CS_REQUEST_WORD(CS_REQUEST_SEQUENCE(word), CS_REQUEST_PARKED));
  memcpy(dst, (const void *)(uintptr_t)addr, len);
  return true;
}

static void serve(uint64_t sequence) {
  struct cs_regs regs;
  ucontext_t uc;
  memset(&uc, 0, sizeof uc);
  uc.uc_stack.ss_flags = SS_DISABLE;
  cs_regs_of_caller(&regs);
  cs_request_serve(CS_REQUEST_SIGVAL(5, sequence), &regs, &uc, 1);
}

static void an_answer_with_an_old_sequence_touches_nothing(void **state) {
  (void)state;
  struct cs_request *slot = &cs_requests[5];
  static const enum cs_request_state states[] = {
      CS_REQUEST_FREE,   CS_REQUEST_CLAIMED,  CS_REQUEST_DONE,
      CS_REQUEST_HELD,   CS_REQUEST_RELEASED, CS_REQUEST_EXPIRED,
      CS_REQUEST_PARKED, CS_REQUEST_WALKING,  CS_REQUEST_PENDING,
  };
  uint64_t sequence = CS_REQUEST_SEQUENCE(slot->word) + 10;
  for (unsigned i = 0; i < CS_COUNT(states); i++) {
    slot->word = CS_REQUEST_WORD(sequence, states[i]);
    struct cs_request before = *slot;
    serve(sequence - 1);
    assert_memory_equal(&before, slot, sizeof before);
  }
  slot->word = CS_REQUEST_WORD(sequence + 1, CS_REQUEST_FREE);
}

static void a_walk_whose_requester_has_gone_gives_its_slot_back(void **state) {
  (void)state;
  struct cs_error err = {0};
  struct cs_request *held[6] = {0};
  for (int i = 0; i < 6; i++) held[i] = cs_request_claim(&err);
  struct cs_request *slot = held[5];
  assert_ptr_equal(slot, &cs_requests[5]);
  struct cs_stack stack;
  assert_true(cs_stack_of_self(&stack));
  uint64_t sequence = CS_REQUEST_SEQUENCE(slot->word) + 1;
  slot->tid = (uint32_t)syscall(SYS_gettid);
  slot->thread = NULL;
  slot->clr_thread = 0;
  slot->stack = stack;
  slot->flags = CS_REQUEST_HOLD;  // a hold that is no longer wanted must not hold
  slot->max_depth = 10;
  slot->word = CS_REQUEST_WORD(sequence, CS_REQUEST_PENDING);
  cs_library.world.mem.read = park_while_walking;
  serve(sequence);
  cs_library.world.mem.read = NULL;
  assert_int_equal(slot->word, CS_REQUEST_WORD(sequence + 1, CS_REQUEST_FREE));
  for (int i = 0; i < 5; i++) (void)cs_request_release(held[i]);
  all_slots_are_free();
}

// ---- Holds ----

static void a_held_thread_stands_still_until_it_is_released(void **state) {
  (void)state;
  struct clrsnap_hold *hold = NULL;
  BYTE context[CS_CONTEXT_MIN];
  struct cs_regs registers;
  struct target *target = target_start((struct target_opts){0});
  assert_int_equal(clrsnap_hold(target_id(target), &hold), S_OK);
  uint64_t beats = atomic_load(&target->beats);
  assert_int_equal(clrsnap_hold_context(hold, context, sizeof context), S_OK);
  assert_int_equal(clrsnap_hold_context(hold, context, 100), E_INVALIDARG);
  cs_context_read(context, &registers);
  assert_true(registers.r[CS_IP] != 0 && registers.r[CS_SP] != 0);
  assert_int_equal(clrsnap_hold_unwind_to_managed(hold, context, sizeof context),
                   CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX);
  (void)usleep(20000);
  assert_int_equal(atomic_load(&target->beats), beats);
  assert_int_equal(clrsnap_release(hold), S_OK);
  target_wait_for_beats(target, beats + 1);
  expect_walk(target);
  end_target(target);
  all_slots_are_free();
}

static void a_hold_that_is_not_released_ends_by_itself(void **state) {
  (void)state;
  clrsnap_stop();
  struct clrsnap_opts opts = {.size = sizeof opts, .hold_timeout_ms = 30};
  start(&opts);
  struct clrsnap_hold *hold = NULL;
  struct target *target = target_start((struct target_opts){0});
  assert_int_equal(clrsnap_hold(target_id(target), &hold), S_OK);
  uint64_t beats = atomic_load(&target->beats);
  target_wait_for_beats(target, beats + 10);
  assert_int_equal(clrsnap_release(hold), S_FALSE);
  expect_walk(target);
  end_target(target);
  all_slots_are_free();
}

// Neither a thread that was held nor the library waits for ever for a release that does not come.
static void a_hold_that_is_never_released_stops_nothing(void **state) {
  (void)state;
  clrsnap_stop();
  struct clrsnap_opts opts = {.size = sizeof opts, .hold_timeout_ms = 30};
  start(&opts);
  struct clrsnap_hold *hold = NULL, *second = NULL;
  struct target *target = target_start((struct target_opts){0});
  assert_int_equal(clrsnap_hold(target_id(target), &hold), S_OK);
  end_target(target);
  clrsnap_stop();
  assert_int_equal(clrsnap_hold(1, &second), CORPROF_E_STACKSNAPSHOT_UNSAFE);
  start(&opts);
  assert_int_equal(clrsnap_release(hold), S_FALSE);
  target = target_start((struct target_opts){0});
  expect_walk(target);
  end_target(target);
  all_slots_are_free();
}

// A thread is walked by its holder as it stands; any other request of the holder's has a defined
// result.
static void a_held_thread_is_walked_by_its_holder(void **state) {
  (void)state;
  struct clrsnap_hold *hold = NULL, *second = NULL;
  struct seen first = {0}, again = {0}, other_seen = {0};
  struct clrsnap_walk_result result = {.size = sizeof result};
  struct target *target = target_start((struct target_opts){0});
  struct target *other = target_start((struct target_opts){0});
  assert_int_equal(clrsnap_hold(target_id(target), &hold), S_OK);
  uint64_t beats = atomic_load(&target->beats);
  assert_int_equal(clrsnap_walk(target_id(target), see, &first, NULL, &result), S_OK);
  assert_int_equal(result.stop, CS_STOP_BASE);
  assert_true(first.frames > 0 && result.held_ns == 0);
  assert_int_equal(clrsnap_walk(target_id(target), see, &again, NULL, NULL), S_OK);
  assert_memory_equal(&first, &again, sizeof first);
  assert_int_equal(clrsnap_hold(target_id(target), &second), CORPROF_E_STACKSNAPSHOT_UNSAFE);
  assert_int_equal(clrsnap_hold(target_id(other), &second), CORPROF_E_STACKSNAPSHOT_UNSAFE);
  assert_int_equal(clrsnap_walk(target_id(other), see, &other_seen, NULL, NULL),
                   CORPROF_E_STACKSNAPSHOT_UNSAFE);
  assert_true(strstr(clrsnap_last_error(), "release") != NULL);
  assert_int_equal(atomic_load(&target->beats), beats);
  assert_int_equal(clrsnap_release(hold), S_OK);
  assert_int_equal(clrsnap_walk(target_id(other), see, &other_seen, NULL, NULL), S_OK);
  end_target(target);
  end_target(other);
  all_slots_are_free();
}

static void a_walk_after_the_holds_time_is_refused(void **state) {
  (void)state;
  clrsnap_stop();
  struct clrsnap_opts opts = {.size = sizeof opts, .hold_timeout_ms = 30};
  start(&opts);
  struct clrsnap_hold *hold = NULL;
  struct seen seen = {0};
  struct target *target = target_start((struct target_opts){0});
  assert_int_equal(clrsnap_hold(target_id(target), &hold), S_OK);
  uint64_t beats = atomic_load(&target->beats);
  target_wait_for_beats(target, beats + 10);
  assert_int_equal(clrsnap_walk(target_id(target), see, &seen, NULL, NULL),
                   CORPROF_E_STACKSNAPSHOT_UNSAFE);
  assert_int_equal(clrsnap_release(hold), S_FALSE);
  expect_walk(target);
  end_target(target);
  all_slots_are_free();
}

static HRESULT abort_walk(FunctionID id, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 size,
                          BYTE context[], void *data) {
  (void)id, (void)ip, (void)info, (void)size, (void)context, (void)data;
  return E_FAIL;
}

static void a_snapshot_that_holds_always_lets_go(void **state) {
  (void)state;
  clrsnap_stop();
  struct clrsnap_opts opts = {.size = sizeof opts, .flags = CLRSNAP_HOLD_TARGET};
  start(&opts);
  struct target *target = target_start((struct target_opts){0});
  for (int i = 0; i < 20; i++) {
    uint64_t beats = atomic_load(&target->beats);
    (void)clrsnap_snapshot(target_id(target), abort_walk, 0, NULL, NULL, 0);
    target_wait_for_beats(target, beats + 1);
  }
  end_target(target);
  all_slots_are_free();
}

// ---- Managed requesters (contract: C17) ----

struct pair {
  uint64_t fake_thread[64];
  pthread_t pthread;
  ThreadID other;
  pthread_barrier_t *barrier;
  HRESULT hold_answer;
  uint32_t walks;
};

static void *snapshot_each_other(void *arg) {
  struct pair *pair = arg;
  clrsnap_thread_assigned((ThreadID)pair->fake_thread, (DWORD)syscall(SYS_gettid));
  (void)pthread_barrier_wait(pair->barrier);
  for (int i = 0; i < 500; i++) {
    struct clrsnap_walk_result result = {.size = sizeof result};
    struct seen seen = {0};
    HRESULT hr = clrsnap_walk(pair->other, see, &seen, NULL, &result);
    if (hr == S_OK && result.stop == CS_STOP_BASE) pair->walks++;
  }
  struct clrsnap_hold *hold;
  pair->hold_answer = clrsnap_hold(pair->other, &hold);
  (void)pthread_barrier_wait(pair->barrier);
  clrsnap_thread_destroyed((ThreadID)pair->fake_thread);
  return NULL;
}

static void two_threads_may_snapshot_each_other_but_not_hold(void **state) {
  (void)state;
  pthread_barrier_t barrier;
  static struct pair pair[2];
  assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
  for (int i = 0; i < 2; i++) {
    pair[i].other = (ThreadID)pair[1 - i].fake_thread;
    pair[i].barrier = &barrier;
    assert_int_equal(pthread_create(&pair[i].pthread, NULL, snapshot_each_other, &pair[i]), 0);
  }
  for (int i = 0; i < 2; i++) (void)pthread_join(pair[i].pthread, NULL);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pair[i].walks, 500);
    assert_int_equal(pair[i].hold_answer, CORPROF_E_STACKSNAPSHOT_UNSAFE);
  }
  (void)pthread_barrier_destroy(&barrier);
  all_slots_are_free();
}

// ---- Threads that come and go ----

static _Atomic uint32_t live_index;
static struct { uint64_t fake_thread[64]; } crowd[1000];

static volatile uint64_t sink;

static void *be_born_and_die(void *id) {
  clrsnap_thread_created((ThreadID)id);
  clrsnap_thread_assigned((ThreadID)id, (DWORD)syscall(SYS_gettid));
  for (int i = 0; i < 2000; i++) sink += (uint64_t)i;
  clrsnap_thread_destroyed((ThreadID)id);
  return NULL;
}

static void *bear_many(void *arg) {
  (void)arg;
  for (uint32_t i = 0; i < CS_COUNT(crowd); i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, be_born_and_die, crowd[i].fake_thread) != 0) break;
    atomic_store(&live_index, i);
    (void)pthread_join(thread, NULL);
  }
  atomic_store(&live_index, CS_COUNT(crowd));
  return NULL;
}

static HRESULT count(const struct clrsnap_frame *frame, void *data) {
  (void)frame;
  ++*(uint32_t *)data;
  return S_OK;
}

static void a_thousand_threads_are_born_and_die_under_a_requester(void **state) {
  (void)state;
  pthread_t mother;
  uint32_t walked = 0, gone = 0, other = 0, i;
  assert_int_equal(pthread_create(&mother, NULL, bear_many, NULL), 0);
  while ((i = atomic_load(&live_index)) < CS_COUNT(crowd)) {
    uint32_t frames = 0;
    HRESULT hr = clrsnap_walk((ThreadID)crowd[i].fake_thread, count, &frames, NULL, NULL);
    walked += frames > 0;
    gone += hr == CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD;
    if (hr == S_OK || hr == CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD) continue;
    print_message("thread %u: 0x%08x, %u frames\n", i, (unsigned)hr, frames);
    other++;
  }
  (void)pthread_join(mother, NULL);
  print_message("of 1,000 threads: %u walks, %u times too late\n", walked, gone);
#ifdef __SANITIZE_THREAD__
  // It delivers a signal when the thread calls the C library next. In ThreadDestroyed, where the
  // thread waits for the walk by a system call of its own, that is too late now and then.
  assert_in_range(other, 0, 5);
#else
  assert_int_equal(other, 0);
#endif
  assert_true(gone > 0);
  assert_true(cs_registry_count() < 10);  // entries are reused
  all_slots_are_free();
}

// ---- Bad input ----

static HRESULT again(const struct clrsnap_frame *frame, void *data) {
  struct target *target = data;
  uint32_t frames = 0;
  (void)frame;
  return clrsnap_walk(target_id(target), count, &frames, NULL, NULL);
}

static void bad_arguments_have_their_hresult(void **state) {
  (void)state;
  BYTE context[CS_CONTEXT_MIN] = {0};
  struct target *target = target_start((struct target_opts){0});
  ThreadID id = target_id(target);
  assert_int_equal(clrsnap_snapshot(id, NULL, 0, NULL, NULL, 0), E_INVALIDARG);
  assert_int_equal(clrsnap_snapshot(id, abort_walk, 2, NULL, NULL, 0), E_INVALIDARG);
  assert_int_equal(clrsnap_snapshot(id, abort_walk, 0, NULL, context, CS_CONTEXT_MIN - 1),
                   E_INVALIDARG);
  assert_int_equal(clrsnap_walk(id, NULL, NULL, NULL, NULL), E_INVALIDARG);
  assert_int_equal(clrsnap_hold(id, NULL), E_INVALIDARG);
  assert_int_equal(clrsnap_release(NULL), S_OK);
  end_target(target);
  clrsnap_stop();
  assert_int_equal(clrsnap_snapshot(id, abort_walk, 0, NULL, NULL, 0),
                   CORPROF_E_STACKSNAPSHOT_UNSAFE);
  assert_non_null(strstr(clrsnap_last_error(), "not started"));
}

static void a_callback_may_end_its_walk_or_begin_another(void **state) {
  (void)state;
  struct seen seen = {.answer = E_FAIL};
  struct target *target = target_start((struct target_opts){0});
  ThreadID id = target_id(target);
  assert_int_equal(clrsnap_walk(id, see, &seen, NULL, NULL), CORPROF_E_STACKSNAPSHOT_ABORTED);
  assert_int_equal(seen.frames, 1);
  assert_int_equal(clrsnap_walk(id, again, target, NULL, NULL), S_OK);
  end_target(target);
}

static void bad_options_are_refused(void **state) {
  (void)state;
  clrsnap_stop();
  struct cs_error err = {0};
  struct clrsnap_opts no_size = {0}, runtimes = {.size = sizeof runtimes, .signal_number = 34};
  struct clrsnap_opts deep = {.size = sizeof deep, .max_depth = 1 << 21};
  assert_int_equal(cs_library_start_native(&no_size, &err), E_INVALIDARG);
  assert_int_equal(cs_library_start_native(&runtimes, &err), E_INVALIDARG);
  assert_int_equal(cs_library_start_native(&deep, &err), E_INVALIDARG);
  assert_int_equal(clrsnap_start(NULL, NULL), E_INVALIDARG);
  (void)signal(40, SIG_IGN);
  struct clrsnap_opts taken = {.size = sizeof taken, .signal_number = 40};
  assert_int_equal(cs_library_start_native(&taken, &err), E_INVALIDARG);
}

// ---- The epoch ----

static void the_epoch_waits_for_walks(void **state) {
  (void)state;
  assert_true(cs_epoch_wait());
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  assert_false(cs_epoch_wait());  // "a walk" that does not end
  cs_epoch_leave(&cs_signal.epoch, parity);
  assert_true(cs_epoch_wait());
}

static void the_epoch_does_not_wait_for_holds(void **state) {
  (void)state;
  struct clrsnap_hold *hold = NULL;
  struct target *target = target_start((struct target_opts){0});
  assert_int_equal(clrsnap_hold(target_id(target), &hold), S_OK);
  assert_true(cs_epoch_wait());
  assert_int_equal(clrsnap_release(hold), S_OK);
  end_target(target);
}

static void skipped(void **state) {
  (void)state;
  skip();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
// Tests of what a walk finds on another thread, or of a thread that responds while it waits itself.
#define AT_ONCE(name) \
  { #name, SIGNALS_AT_ONCE ? name : skipped, setup, teardown, NULL }

int main(void) {
  const struct CMUnitTest tests[] = {
      AT_ONCE(a_running_thread_is_walked_to_its_base),
      TEST(a_thread_known_by_attach_introduces_itself),
      TEST(the_alternate_stack_is_swapped_and_put_back),
      TEST(a_target_that_blocks_the_signal_is_reported_and_its_late_answer_ignored),
      TEST(a_target_that_blocks_the_signal_is_not_waited_for),
      TEST(a_target_whose_stack_is_small_is_sent_no_signal),
      TEST(a_target_that_is_gone_is_invalid),
      TEST(an_unknown_thread_id_gives_no_callback),
      TEST(an_answer_with_an_old_sequence_touches_nothing),
      TEST(a_walk_whose_requester_has_gone_gives_its_slot_back),
      TEST(a_held_thread_stands_still_until_it_is_released),
      TEST(a_hold_that_is_not_released_ends_by_itself),
      TEST(a_hold_that_is_never_released_stops_nothing),
      AT_ONCE(a_held_thread_is_walked_by_its_holder),
      TEST(a_walk_after_the_holds_time_is_refused),
      TEST(a_snapshot_that_holds_always_lets_go),
      AT_ONCE(two_threads_may_snapshot_each_other_but_not_hold),
      TEST(a_thousand_threads_are_born_and_die_under_a_requester),
      TEST(bad_arguments_have_their_hresult),
      TEST(a_callback_may_end_its_walk_or_begin_another),
      TEST(bad_options_are_refused),
      TEST(the_epoch_waits_for_walks),
      TEST(the_epoch_does_not_wait_for_holds),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (failed != 0 || SIGNALS_AT_ONCE) return failed;
  print_message(
      "skipped in part: TSan delivers signals late, with registers that are out of date, "
      "and not to a thread that waits; all else passed\n");
  return 77;
}
