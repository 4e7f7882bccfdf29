// SPDX-License-Identifier: MIT
// Waiting for walks. Not for handlers.
//
// Invariant: when cs_epoch_wait returns true, every walk that had begun before the call has ended.
// A walk that began later cannot reach what the caller made unreachable before.
#include "life/epoch.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "signal/signal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // one phase at a time

static bool wait_for_side(uint32_t side) {
  uint64_t give_up = cs_clock_now_ns() + 2000000000ull;
  for (unsigned spins = 0; __atomic_load_n(&cs_signal.epoch.active[side], __ATOMIC_SEQ_CST) != 0;
       spins++) {
    if (spins < 100) {
      cs_cpu_pause();
      continue;
    }
    if (cs_clock_now_ns() > give_up) return false;
    struct timespec nap = {.tv_nsec = 20000};  // a walk takes some microseconds
    (void)nanosleep(&nap, NULL);
  }
  return true;
}

bool cs_epoch_wait(void) {
  bool ok = true;
  pthread_mutex_lock(&lock);
  __atomic_thread_fence(
      __ATOMIC_SEQ_CST);  // what the caller has made unreachable, before the counters
  for (int i = 0; i < 2; i++) {
    uint32_t old = cs_add_seq(&cs_signal.epoch.phase, 1) & 1;
    ok = wait_for_side(old) && ok;
  }
  pthread_mutex_unlock(&lock);
  if (!ok) cs_log("a walk that is under way did not end within 2 s; its thread gets no processor");
  return ok;
}
