// SPDX-License-Identifier: MIT
// Whether an entry is that of the calling thread. Signal-safe: yes.
#include "signal/thread.h"

#include <sys/syscall.h>

CS_ISLAND bool cs_thread_is_caller(struct cs_thread *thread) {
  uint64_t pointer = cs_thread_pointer();
  uint32_t tid = cs_load_acquire(&thread->tid);
  if (tid == 0) return false;
  if (cs_load_relaxed(&thread->thread_pointer) == pointer) return true;
  if ((uint32_t)cs_syscall4(SYS_gettid, 0, 0, 0, 0) != tid) return false;
  cs_store_relaxed(&thread->thread_pointer, pointer);
  return true;
}
