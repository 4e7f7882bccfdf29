// SPDX-License-Identifier: MIT
// The target's part of a request: it walks itself into the slot, reports the result, and waits if
// it is to be held. Signal-safe: yes; memory reads, atomics, and the raw system calls futex and
// gettid.
//
// Invariant: the slot is written only between the change from PENDING to WALKING, which succeeds
// for the right sequence number only, and the change to DONE, HELD or FREE. After that only its
// word is touched, while held. No handler waits beyond the slot's deadline.
#include "signal/request.h"

#include <sys/syscall.h>

#include "signal/altstack.h"

// From linux/futex.h, which is not a header for C programs.
enum { FUTEX_WAKE_PRIVATE = 1 | 128, FUTEX_WAIT_BITSET_PRIVATE = 9 | 128 };
#define FUTEX_BITSET_ANY 0xFFFFFFFFu
enum { ERRNO_TIMEDOUT = 110 };

struct cs_request cs_requests[CS_REQUEST_ALL];

CS_ISLAND enum cs_request_answer cs_seed_check(const struct cs_world *world,
                                               const struct cs_regs *seed,
                                               const struct cs_stack *stack) {
  struct cs_code code;
  uint64_t sp = seed->r[CS_SP];
  if ((sp & 7) != 0 || !cs_stack_holds(stack, sp, 8)) return CS_ANSWER_SEED_SP;
  if (cs_codemap_find_managed(world, seed->r[CS_IP], &code) != CS_STOP_NONE ||
      !cs_code_is_managed(&code))
    return CS_ANSWER_SEED_IP;
  return CS_ANSWER_WALKED;
}

CS_ISLAND static enum cs_request_answer walk_self(struct cs_request *request,
                                                  const struct cs_regs *regs) {
  struct cs_world *world = cs_load_acquire(&cs_signal.world);
  if (world == NULL) return CS_ANSWER_NOT_READY;
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  const struct cs_regs *from = regs;
  enum cs_request_answer answer = CS_ANSWER_WALKED;
  request->capture.seeded = false;
  if ((request->flags & CS_REQUEST_SEED) && cs_is_cooperative(world, request->clr_thread)) {
    answer = cs_seed_check(world, &request->seed, &request->stack);
    from = &request->seed;
    request->capture.seeded = true;
  }
  request->capture.limit_ns = cs_load_relaxed(&cs_signal.request_limit_ns);
  if (answer == CS_ANSWER_WALKED)
    cs_capture_walk(&request->capture, world, from, &request->stack, request->clr_thread,
                    request->max_depth);
  request->capture.limit_ns = 0;
  // Before a hold: a held thread reads nothing, so cs_epoch_wait need not wait for it.
  cs_epoch_leave(&cs_signal.epoch, parity);
  return answer;
}

CS_ISLAND static void install_altstack(const struct cs_request *request, const struct cs_regs *regs,
                                       void *ucontext) {
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  if (world != NULL)
    cs_altstack_install_all(&request->thread->altstack, world, regs, &request->stack,
                            request->clr_thread, ucontext);
  cs_epoch_leave(&cs_signal.epoch, parity);
}

CS_ISLAND static bool is_target(struct cs_request *request) {
  if (request->thread != NULL && cs_load_acquire(&request->thread->tid) == request->tid)
    return cs_thread_is_caller(request->thread);
  return (uint32_t)cs_syscall4(SYS_gettid, 0, 0, 0, 0) == request->tid;
}

CS_ISLAND static void wake(struct cs_request *request) {
  cs_syscall4(SYS_futex, (long)(uintptr_t)&request->word, FUTEX_WAKE_PRIVATE, 1 << 30, 0);
}

// Waits until the requester releases the thread or the deadline has passed. Other signals interrupt
// the wait and are served; then it goes on.
CS_ISLAND static void wait_while_held(struct cs_request *request, uint64_t sequence) {
  uint64_t held = CS_REQUEST_WORD(sequence, CS_REQUEST_HELD);
  for (;;) {
    if (cs_load_acquire(&request->word) != held) break;
    long rc = cs_syscall6(SYS_futex, (long)(uintptr_t)&request->word, FUTEX_WAIT_BITSET_PRIVATE,
                          (long)(uint32_t)held, (long)(uintptr_t)request->hold_until, 0,
                          (long)FUTEX_BITSET_ANY);
    if (rc == -ERRNO_TIMEDOUT) {
      uint64_t expected = held;
      if (cs_cas(&request->word, &expected, CS_REQUEST_WORD(sequence, CS_REQUEST_EXPIRED))) return;
    }
  }
  // Released: nothing else uses this sequence number.
  cs_store_release(&request->word, CS_REQUEST_WORD(sequence + 1, CS_REQUEST_FREE));
}

CS_ISLAND void cs_request_serve(uint64_t value, const struct cs_regs *regs, void *ucontext,
                                uint64_t entry_tsc) {
  uint64_t index = (value & 0xFFFF) >> 1, sequence = value >> 16;
  if (index >= CS_REQUEST_ALL) return;
  struct cs_request *request = &cs_requests[index];
  uint64_t expected = CS_REQUEST_WORD(sequence, CS_REQUEST_PENDING);
  uint64_t walking = CS_REQUEST_WORD(sequence, CS_REQUEST_WALKING);
  if (!cs_cas(&request->word, &expected, walking)) return;  // too late: the requester gave up

  request->entry_tsc = entry_tsc;
  request->capture.leaf = *regs;
  request->capture.count = 0;
  request->capture.stop = CS_STOP_NONE;
  cs_altstack_of(ucontext, &request->stack.alt_lo, &request->stack.alt_hi);
  request->thread_pointer = cs_thread_pointer();
  bool unpinned = (request->flags & CS_REQUEST_UNPINNED) != 0;
  if (!is_target(request) ||
      (unpinned && !cs_thread_pin_self(request->thread, request->clr_thread)))
    request->answer = CS_ANSWER_WRONG_THREAD;
  else if (request->flags & CS_REQUEST_INTRODUCE)
    request->answer = CS_ANSWER_WALKED;
  else
    request->answer = walk_self(request, regs);
  if (request->thread != NULL && request->answer != CS_ANSWER_WRONG_THREAD) {
    if ((request->flags & (CS_REQUEST_ALTSTACK | CS_REQUEST_INTRODUCE)) == CS_REQUEST_ALTSTACK &&
        request->answer == CS_ANSWER_WALKED)
      install_altstack(request, regs, ucontext);
    else
      cs_altstack_install(&request->thread->altstack, ucontext);
  }

  if (unpinned && request->answer != CS_ANSWER_WRONG_THREAD) cs_thread_unpin_self(request->thread);
  bool hold = (request->flags & CS_REQUEST_HOLD) && request->answer == CS_ANSWER_WALKED;
  request->exit_tsc = cs_tsc();
  expected = walking;
  if (!cs_cas(&request->word, &expected,
              CS_REQUEST_WORD(sequence, hold ? CS_REQUEST_HELD : CS_REQUEST_DONE))) {
    // Parked: the requester has given up, and this thread frees the slot.
    cs_store_release(&request->word, CS_REQUEST_WORD(sequence + 1, CS_REQUEST_FREE));
    return;
  }
  // A wake-up costs the target 4 us, so only a requester that sleeps gets one. The exchange above
  // and the requester's exchange of `sleeps` are in one order, so either side sees the other.
  if (__atomic_load_n(&request->sleeps, __ATOMIC_SEQ_CST) != 0) wake(request);
  if (hold) wait_while_held(request, sequence);
}
