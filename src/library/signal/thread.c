// SPDX-License-Identifier: MIT
// Whether an entry is that of the calling thread, and pins by a thread's own handler. Signal-safe:
// yes.
#include "signal/thread.h"

#include <sys/syscall.h>

enum { FUTEX_WAKE_PRIVATE = 1 | 128 };  // from linux/futex.h, which is not a header for C programs

CS_ISLAND bool cs_thread_pin_self(struct cs_thread *thread, uint64_t clr_thread) {
  cs_add_seq(&thread->walkers, 1);
  if (__atomic_load_n(&thread->tid, __ATOMIC_SEQ_CST) != 0 && thread->clr_thread == clr_thread)
    return true;
  cs_thread_unpin_self(thread);
  return false;
}

CS_ISLAND void cs_thread_unpin_self(struct cs_thread *thread) {
  if (cs_add_seq(&thread->walkers, (uint32_t)-1) == (CS_THREAD_AWAITED | 1))
    cs_syscall4(SYS_futex, (long)(uintptr_t)&thread->walkers, FUTEX_WAKE_PRIVATE, 1 << 30, 0);
}

CS_ISLAND bool cs_thread_is_caller(struct cs_thread *thread) {
  uint64_t pointer = cs_thread_pointer();
  uint32_t tid = cs_load_acquire(&thread->tid);
  if (tid == 0) return false;
  if (cs_load_relaxed(&thread->thread_pointer) == pointer) return true;
  if ((uint32_t)cs_syscall4(SYS_gettid, 0, 0, 0, 0) != tid) return false;
  cs_store_relaxed(&thread->thread_pointer, pointer);
  return true;
}
