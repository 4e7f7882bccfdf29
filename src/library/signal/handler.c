// SPDX-License-Identifier: MIT
// The signal handlers: find out what a signal asks for, and call the code that does it.
// Signal-safe: yes; nothing here sets errno.
//
// Invariant: a signal is believed only if this process sent it and it names a request slot or an
// entry of the registry. docs/signal-safety.md says why each read is allowed.
#include "signal/handler.h"

#include <sys/syscall.h>

#include "signal/altstack.h"
#include "signal/handler_times.h"
#include "signal/perf.h"
#include "signal/request.h"
#include "signal/sample.h"
#include "signal/ucontext.h"

CS_ISLAND static bool is_registered(const struct cs_thread *thread) {
  uint64_t at = (uint64_t)(uintptr_t)thread;
  return at >= cs_signal.threads_lo && at < cs_signal.threads_hi &&
         (at - cs_signal.threads_lo) % sizeof(struct cs_thread) == 0;
}

CS_ISLAND static bool is_from_us(const siginfo_t *info) {
  return info->si_code == SI_QUEUE && info->si_pid == cs_load_relaxed(&cs_signal.pid);
}

// Takes the bits that the thread is asked for. From then on the agent may ask again, and overwrite
// `hold`, so `hold` is copied first.
CS_ISLAND static uint32_t take_word(struct cs_thread *thread, struct cs_hold *hold) {
  uint32_t asked;
  do {
    asked = cs_load_acquire(&thread->asked);
    *hold = thread->hold;
  } while (!cs_cas(&thread->asked, &asked, 0u));
  return asked;
}

CS_ISLAND static void report(struct cs_reported_regs *reported, const struct cs_regs *regs) {
  for (unsigned i = 0; i < CS_REG_COUNT; i++) reported->regs.r[i] = regs->r[i];
  cs_store_release(&reported->times, reported->times + 1);
}

CS_ISLAND static void take_asked(struct cs_thread *thread, uint32_t asked,
                                 const struct cs_hold *held, const struct cs_regs *regs,
                                 uint64_t entry_tsc) {
  static const struct {
    uint32_t asked, cause;
  } kinds[] = {{CS_ASKED_WALL, CS_CAUSE_WALL},
               {CS_ASKED_SCAN, CS_CAUSE_SCAN},
               {CS_ASKED_STRAGGLER, CS_CAUSE_STRAGGLER},
               {CS_ASKED_HOLD, CS_CAUSE_HOLDS}};
  struct cs_signal_cause cause = {entry_tsc, CS_CAUSE_NONE, 0, held};
  if (asked & CS_ASKED_REGS) report(&thread->reported, regs);
  for (unsigned i = 0; i < CS_COUNT(kinds); i++) {
    cause.cause = (enum cs_cause)kinds[i].cause;
    cause.weight = kinds[i].asked == CS_ASKED_SCAN ? thread->asked_weight : 0;
    if (asked & kinds[i].asked) cs_sample_take(thread, regs, &cause);
  }
}

// Notes which alternate stack the thread has. Returns false if the thread is not being sampled.
CS_ISLAND static bool begin_sample(struct cs_thread *thread, void *ucontext) {
  if (cs_load_acquire(&thread->sampling) == 0) return false;
  cs_altstack_of(ucontext, &thread->stack.alt_lo, &thread->stack.alt_hi);
  cs_altstack_install(&thread->altstack, ucontext);
  return true;
}

// Whether the thread's perf event is due.
enum due { NOT_DUE, MAY_BE_DUE, DUE };

CS_ISLAND static void serve(struct cs_thread *thread, void *ucontext, uint64_t entry_tsc,
                            enum due due) {
  struct cs_regs regs;
  struct cs_hold hold;
  uint32_t asked = take_word(thread, &hold);  // in any case, so that the agent can ask again
  if (!begin_sample(thread, ucontext)) return;
  cs_regs_from_ucontext(&regs, ucontext);
  take_asked(thread, asked, &hold, &regs, entry_tsc);
  if (due == NOT_DUE || (due == MAY_BE_DUE && !cs_perf_is_due(thread))) return;
  struct cs_signal_cause cause = {entry_tsc, CS_CAUSE_CLOCKED, 0, NULL};
  uint64_t before = thread->cpu_ns;
  cs_sample_take(thread, &regs, &cause);
  cs_perf_rearm(thread, thread->cpu_ns != before ? thread->cpu_ns : cs_thread_cpu_ns());
}

// The same for the benchmark, with a note of the time, or without a sample. Not inlined, to keep
// the ordinary path short.
CS_ISLAND static __attribute__((noinline)) void serve_noted(struct cs_handler_times *notes,
                                                            struct cs_thread *thread,
                                                            void *ucontext, uint64_t entry_tsc,
                                                            enum due due) {
  struct cs_handler_time *note = cs_handler_time_begin(notes, thread, entry_tsc, due == DUE);
  if (note != NULL && note->empty) {
    cs_store_release(&thread->asked, 0u);
    if (due == DUE) cs_perf_rearm(thread, cs_thread_cpu_ns());
    return;
  }
  serve(thread, ucontext, entry_tsc, due);
  bool sampled = thread->cooldown.until > entry_tsc;  // its cooldown has begun
  if (note != NULL && sampled) cs_store_release(&note->end, cs_tsc());
}

CS_ISLAND static void serve_sampled(struct cs_thread *thread, void *ucontext, uint64_t entry_tsc,
                                    enum due due) {
  struct cs_handler_times *notes = cs_load_acquire(&cs_signal.handler_times);
  if (CS_UNLIKELY(notes != NULL))
    serve_noted(notes, thread, ucontext, entry_tsc, due);
  else
    serve(thread, ucontext, entry_tsc, due);
}

// Not inlined: a sample's handler has a struct cs_regs of its own on the stack.
CS_ISLAND static __attribute__((noinline)) void serve_request(uint64_t value, void *ucontext,
                                                              uint64_t entry_tsc) {
  struct cs_regs regs;
  cs_regs_from_ucontext(&regs, ucontext);
  cs_request_serve(value, &regs, ucontext, entry_tsc);
}

CS_ISLAND void cs_signal_handler(int signo, siginfo_t *info, void *ucontext) {
  uint64_t entry_tsc = cs_tsc();
  (void)signo;
  if (!is_from_us(info) || cs_load_relaxed(&cs_signal.small_stacks) != 0) return;
  uint64_t value = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
  if (value & CS_SIGVAL_REQUEST) {
    serve_request(value, ucontext, entry_tsc);
    return;
  }
  struct cs_thread *thread = (void *)(uintptr_t)value;
  if (!is_registered(thread) || !cs_thread_is_caller(thread)) return;
  serve_sampled(thread, ucontext, entry_tsc, NOT_DUE);
}

// ---- SIGURG ----

// Beyond RLIMIT_SIGPENDING a standard signal arrives without the sender's value: the calling
// thread's entry is looked up instead.
CS_ISLAND static struct cs_thread *find_self(void) {
  struct cs_thread *threads = (struct cs_thread *)(uintptr_t)cs_signal.threads_lo;
  uint32_t tid = (uint32_t)cs_syscall4(SYS_gettid, 0, 0, 0, 0);
  for (uint32_t i = 0; i < cs_load_acquire(&cs_signal.threads_used); i++)
    if (cs_load_acquire(&threads[i].tid) == tid) return &threads[i];
  return NULL;
}

CS_ISLAND static struct cs_thread *asked_thread(const siginfo_t *info) {
  struct cs_thread *thread = info->si_value.sival_ptr;
  if (info->si_code == SI_USER && info->si_pid == 0) return find_self();
  return is_from_us(info) && is_registered(thread) ? thread : NULL;
}

// Returns whether this handler runs on the alternate stack, which we never ask for; if so, has the
// process ignore the signal until the agent has noticed. Go, when it is loaded, moves every handler
// that it finds to that stack. There the frame of the runtime's handler of a null reference, which
// may go on elsewhere meanwhile, would be destroyed. Not inlined, so that its variables are not on
// the stack under every walk.
CS_ISLAND static __attribute__((noinline)) bool ignore_if_moved(int signo, const void *ucontext) {
  struct {
    uint64_t handler, flags, restorer, mask;
  } ignored = {.handler = (uint64_t)(uintptr_t)SIG_IGN};
  uint64_t lo, hi, at = (uint64_t)(uintptr_t)&ignored, sp = cs_ucontext_sp(ucontext);
  cs_altstack_of(ucontext, &lo, &hi);
  if (at < lo || at >= hi || (sp >= lo && sp <= hi)) return false;
  (void)cs_syscall4(SYS_rt_sigaction, signo, (long)at, 0, sizeof ignored.mask);
  return true;
}

// The kernel keeps only the first of two pending standard signals. So whatever has sent this one,
// the thread may have been asked for a sample as well, and its event may have signalled, if due.
CS_ISLAND void cs_urg_handler(int signo, siginfo_t *info, void *ucontext) {
  uint64_t entry_tsc = cs_tsc();
  if (CS_UNLIKELY(ignore_if_moved(signo, ucontext))) return;
  struct cs_thread *thread = cs_perf_thread_of(info);
  enum due due = thread != NULL ? DUE : MAY_BE_DUE;
  if (thread == NULL) thread = asked_thread(info);
  if (thread == NULL || cs_load_relaxed(&cs_signal.small_stacks) != 0 ||
      !cs_thread_is_caller(thread))
    return;
  serve_sampled(thread, ucontext, entry_tsc, due);
}

// ---- The runtime's own signal ----

// The runtime blocks this signal wherever its handler of a fault is on the alternate stack. So the
// thread's small one is not in use, or has room (docs/signal-safety.md, "After an attach").
CS_ISLAND static __attribute__((noinline)) void install_altstack(struct cs_thread *thread,
                                                                 void *ucontext) {
  struct cs_regs regs;
  if (!cs_thread_is_caller(thread) || cs_load_acquire(&thread->altstack.asked) == 0) return;
  cs_regs_from_ucontext(&regs, ucontext);
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  if (world != NULL && cs_load_relaxed(&cs_signal.small_stacks) == 0 &&
      cs_load_acquire(&thread->stack.hi) != 0) {
    cs_altstack_of(ucontext, &thread->stack.alt_lo, &thread->stack.alt_hi);
    cs_altstack_install_all(&thread->altstack, world, &regs, &thread->stack, thread->clr_thread,
                            ucontext);
  }
  cs_epoch_leave(&cs_signal.epoch, parity);
  cs_store_release(&thread->altstack.asked, 0u);
}

// A signal that is not ours goes to the runtime's handler, as if the kernel had called that one.
CS_ISLAND void cs_activation_handler(int signo, siginfo_t *info, void *ucontext) {
  struct cs_thread *thread = info->si_value.sival_ptr;
  if (is_from_us(info) && is_registered(thread))
    install_altstack(thread, ucontext);
  else
    cs_signal.activation(signo, info, ucontext);
}
