// SPDX-License-Identifier: MIT
// The runtime's own signal (SIGRTMIN, with which it stops threads in loops), used to give threads
// their larger alternate stacks. The runtime blocks this signal, and only this one, while its
// handler of SIGSEGV is on the alternate stack. Any thread; not for handlers.
//
// Invariants: nothing is sent unless the handlers of SIGSEGV and of this signal are those that the
// runtime has installed, except for ours in front of the latter. A thread has at most one signal of
// ours pending. Our handler, once installed, stays: a signal may be on its way for as long as the
// process lives.
#include "threads/activation.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "images/images.h"
#include "signal/handler.h"
#include "threads/own_signal.h"

enum { ACTIVATION_SIGNAL = 34 };  // pal/src/exception/signal.cpp: SIGRTMIN of the C library

static bool is_of_runtime(const struct sigaction *action) {
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  if (world == NULL || (action->sa_flags & SA_SIGINFO) == 0) return false;
  const struct cs_image *image =
      cs_images_find(world->images, (uint64_t)(uintptr_t)action->sa_sigaction);
  return image != NULL && cs_image_is_runtime(world, image);
}

static bool is_ours(const struct sigaction *action) {
  return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == cs_activation_handler;
}

bool cs_activation_is_usable(void) {
  struct sigaction fault, now;
  if (sigaction(SIGSEGV, NULL, &fault) != 0 || sigaction(ACTIVATION_SIGNAL, NULL, &now) != 0 ||
      !is_of_runtime(&fault) || sigismember(&fault.sa_mask, ACTIVATION_SIGNAL) != 1 ||
      (now.sa_flags & (SA_ONSTACK | SA_NODEFER)) != 0)
    return false;
  if (is_ours(&now)) return true;
  if (!is_of_runtime(&now)) return false;
  cs_store_release(&cs_signal.activation, now.sa_sigaction);
  now.sa_sigaction = cs_activation_handler;
  return sigaction(ACTIVATION_SIGNAL, &now, NULL) == 0;
}

bool cs_activation_ask(struct cs_thread *thread) {
  uint32_t none = 0, tid = cs_load_acquire(&thread->tid);
  uint64_t blocked, pending, bit = UINT64_C(1) << (ACTIVATION_SIGNAL - 1);
  // One that blocks the signal may wait for signals, and would be given this one (sigwait).
  if (!cs_thread_signals(tid, &blocked, &pending) || (blocked & bit) != 0) return false;
  if (thread->altstack.sp == 0 || !cs_cas(&thread->altstack.asked, &none, 1u)) return false;
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = ACTIVATION_SIGNAL;
  info.si_code = SI_QUEUE;
  info.si_pid = (pid_t)cs_load_relaxed(&cs_signal.pid);
  info.si_uid = getuid();
  info.si_value.sival_ptr = thread;
  if (syscall(SYS_rt_tgsigqueueinfo, info.si_pid, tid, ACTIVATION_SIGNAL, &info) == 0) return true;
  cs_store_release(&thread->altstack.asked, 0u);
  return false;
}
