// SPDX-License-Identifier: MIT
// Code that is about to die. Its frames may still stand in the ring without a name, and once it is
// gone its memory and its FunctionID are given to other code at once.
//
// Order in the callback: (1) the agent's thread is woken to read the ring up to where it is now;
// the callback waits for that, 20 ms at most, since that thread may itself be waiting for a
// collection; (2) the library waits for walks and begins a new generation; (3) a call into the CLR
// about such code that began before (2) is waited for, because the FunctionID is about to become a
// dangling pointer. That wait is bounded too (1 s), against the case that the call needs a lock
// that our caller holds.
//
// Why a sample of an older generation may still be named when (1) was in time: code dies only when
// it is on no stack, so every sample with a frame of it was committed before the callback, and has
// been read by then. What is still in the ring has no frame of it. When (1) was not in time, frames
// in code that can die are "[unloaded code]" from then on.
// Threads: the runtime's, several at a time, and the agent's. Signal-safe: no.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "sampling/agent.h"

#define DRAIN_WAIT_NS 20000000ull
#define NAMING_WAIT_NS 1000000000ull

enum { DEATHS = 1024 };  // generations that are remembered; older samples are not in the ring

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // between callbacks only
static uint32_t drains;   // how often the agent's thread has been through the ring
static uint32_t waiters;  // callbacks that wait for it
static uint32_t naming;   // 1: the agent's thread is in a call about code that can die
// By the generation that a death ended: generation << 1 | 1 if the ring had been read in time.
static uint64_t deaths[DEATHS];

void cs_unload_drained(void) {
  cs_add_seq(&drains, 1);
  if (__atomic_load_n(&waiters, __ATOMIC_SEQ_CST) != 0)
    (void)syscall(SYS_futex, &drains, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

static void wait_on(uint32_t *word, uint32_t seen, uint64_t ns) {
  struct timespec nap = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &nap, NULL, 0);
}

// Has all been read that was in the ring when its head was there? (The head goes back when a record
// turns out to be smaller, hence the second way.)
static bool is_read(uint64_t head) {
  return cs_load_acquire(&cs_agent.ring.tail) >= head || cs_sample_ring_used(&cs_agent.ring) == 0;
}

static bool empty_ring(void) {
  uint64_t head = __atomic_load_n(&cs_agent.ring.head, __ATOMIC_SEQ_CST);
  uint64_t now = cs_clock_now_ns(), until = now + DRAIN_WAIT_NS;
  if (is_read(head)) return true;
  cs_add_seq(&waiters, 1);
  while (now < until && cs_agent_is_active()) {
    uint32_t seen = __atomic_load_n(&drains, __ATOMIC_SEQ_CST);
    if (is_read(head)) break;
    cs_agent_wake();
    wait_on(&drains, seen, until - now);
    now = cs_clock_now_ns();
  }
  cs_add_seq(&waiters, (uint32_t)-1);
  return is_read(head);
}

static void wait_for_naming(void) {
  uint64_t until = cs_clock_now_ns() + NAMING_WAIT_NS;
  while (__atomic_load_n(&naming, __ATOMIC_SEQ_CST) != 0) {
    if (cs_clock_now_ns() > until) {
      cs_log("code is unloaded although a call about such code has not returned for 1 s");
      return;
    }
    wait_on(&naming, 1, 1000000);
  }
}

void cs_unload(bool module) {
  bool recording = cs_load_acquire(&cs_agent.state) == CS_AGENT_RECORDING && cs_agent_is_active();
  bool in_time = recording && empty_ring();
  (void)pthread_mutex_lock(&lock);
  uint32_t generation = cs_load_acquire(&cs_library.world.code_generation);
  cs_store_release(&deaths[generation % DEATHS], (uint64_t)generation << 1 | in_time);
  cs_library_code_died(module);
  (void)pthread_mutex_unlock(&lock);
  if (recording) wait_for_naming();
  if (recording && module) cs_awaits_forget();
}

bool cs_unload_is_forgotten(uint32_t generation) {
  return __atomic_load_n(&cs_library.world.code_generation, __ATOMIC_SEQ_CST) - generation > DEATHS;
}

bool cs_unload_is_alive(uint32_t generation) {
  if (cs_unload_is_forgotten(generation)) return false;
  uint32_t now = __atomic_load_n(&cs_library.world.code_generation, __ATOMIC_SEQ_CST);
  for (; generation != now; generation++) {
    // A generation that somebody else has ended is not in the table.
    if (cs_load_acquire(&deaths[generation % DEATHS]) != ((uint64_t)generation << 1 | 1))
      return false;
  }
  return true;
}

// The flag is set before the generation is read, and a callback makes the generation before it
// reads the flag: one of the two sees the other.
bool cs_unload_begin_naming(uint32_t generation) {
  __atomic_store_n(&naming, 1u, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&cs_library.world.code_generation, __ATOMIC_SEQ_CST) == generation)
    return true;
  cs_unload_end_naming();
  return false;
}

void cs_unload_end_naming(void) {
  __atomic_store_n(&naming, 0u, __ATOMIC_SEQ_CST);
  (void)syscall(SYS_futex, &naming, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}
