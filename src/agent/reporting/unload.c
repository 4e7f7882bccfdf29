// SPDX-License-Identifier: MIT
// Code that is about to be unloaded. Its frames may still be in the ring without a name, and its
// memory and its FunctionID may be reused at once.
//
// Order in the callback: (1) the agent's thread is woken to read the ring up to where it is now.
// The callback waits for that, but for 20 ms at most, since the agent's thread may itself be
// waiting for a collection; and not while the runtime is being suspended and waits for the
// callback's thread. (2) The library waits for walks to end and begins a new generation. (3) A call
// into the CLR about collectible code that began before (2) is waited for, because its FunctionID
// is about to become a dangling pointer; 1 s at most, in case the call needs a lock that our caller
// holds.
//
// Why a sample of an older generation may still be named if (1) was in time: code is unloaded only
// when it is on no stack, so every sample with a frame of it was committed before the callback, and
// has been read. What is still in the ring has no frame of it. If (1) was not in time, frames in
// collectible code are "[unloaded code]" from then on. Threads: the runtime's, several at a time,
// and the agent's. Signal-safe: no.
#include "reporting/unload.h"

#include <pthread.h>

#include "base/futex.h"
#include "base/log.h"
#include "life/function.h"
#include "life/library.h"
#include "signal/signal.h"
#include "state/state.h"
#include "threads/registry.h"

#define DRAIN_WAIT_NS 20000000ull
#define DRAIN_NAP_NS 500000ull
#define NAMING_WAIT_NS 1000000000ull

enum { KEPT = 1024 };  // generations that are remembered; no sample in the ring is older

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // between callbacks only
// Atomic.
static uint32_t drains;   // how often the agent's thread has read all of the ring; a futex
static uint32_t waiters;  // callbacks that wait for `drains`
static uint32_t naming;   // 1: the agent's thread is in a call about collectible code; a futex
// By the generation that ended: generation << 1 | whether the ring was read in time.
static uint64_t ended[KEPT];

void cs_unload_drained(void) {
  cs_add_seq(&drains, 1);
  if (__atomic_load_n(&waiters, __ATOMIC_SEQ_CST) != 0) cs_futex_wake(&drains);
}

// Returns whether everything up to this position of the ring's head has been read. The head moves
// back when a record turns out to be smaller than reserved, hence the second condition.
static bool is_read(uint64_t head) {
  return cs_load_acquire(&cs_agent.ring.tail) >= head || cs_sample_ring_used(&cs_agent.ring) == 0;
}

// The finalizer thread reports dead dynamic methods in cooperative mode.
static bool holds_up_suspension(void) {
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  const struct cs_thread *self = cs_registry_self_cached();
  uint64_t suspender;
  return world != NULL && self != NULL && world->layout.suspension_thread != 0 &&
         cs_is_cooperative(world, self->clr_thread) &&
         cs_mem_u64(&world->mem, world->layout.suspension_thread, &suspender) && suspender != 0;
}

static bool empty_ring(void) {
  uint64_t head = __atomic_load_n(&cs_agent.ring.head, __ATOMIC_SEQ_CST);
  uint64_t until = cs_clock_now_ns() + DRAIN_WAIT_NS;
  if (is_read(head)) return true;
  cs_add_seq(&waiters, 1);
  for (uint64_t now = cs_clock_now_ns();
       now < until && cs_agent_is_active() && !holds_up_suspension(); now = cs_clock_now_ns()) {
    uint32_t before = __atomic_load_n(&drains, __ATOMIC_SEQ_CST);
    if (is_read(head)) break;
    cs_agent_wake();
    cs_futex_wait_until(&drains, before, now + DRAIN_NAP_NS);
  }
  cs_add_seq(&waiters, (uint32_t)-1);
  return is_read(head);
}

static void wait_for_naming(void) {
  uint64_t until = cs_clock_now_ns() + NAMING_WAIT_NS;
  while (__atomic_load_n(&naming, __ATOMIC_SEQ_CST) != 0) {
    if (cs_clock_now_ns() >= until) {
      cs_log("code is unloaded although a call about such code has not returned for 1 s");
      return;
    }
    cs_futex_wait_until(&naming, 1, until);
  }
}

bool cs_unload(bool module) {
  bool recording = cs_load_acquire(&cs_agent.state) == CS_AGENT_RECORDING && cs_agent_is_active();
  bool in_time = recording && empty_ring();
  (void)pthread_mutex_lock(&lock);
  uint32_t generation = cs_load_acquire(&cs_library.world.code_generation);
  cs_store_release(&ended[generation % KEPT], (uint64_t)generation << 1 | in_time);
  cs_library_code_died(module);
  (void)pthread_mutex_unlock(&lock);
  if (recording) wait_for_naming();
  return recording;
}

bool cs_unload_is_forgotten(uint32_t generation) {
  return __atomic_load_n(&cs_library.world.code_generation, __ATOMIC_SEQ_CST) - generation > KEPT;
}

bool cs_unload_is_alive(uint32_t generation) {
  if (cs_unload_is_forgotten(generation)) return false;
  uint32_t now = __atomic_load_n(&cs_library.world.code_generation, __ATOMIC_SEQ_CST);
  for (; generation != now; generation++) {
    // A generation that the library has ended by itself is not in the table.
    if (cs_load_acquire(&ended[generation % KEPT]) != ((uint64_t)generation << 1 | 1)) return false;
  }
  return true;
}

// The flag is set before the generation is read, and a callback begins the new generation before it
// reads the flag, so at least one of the two sees the other.
bool cs_unload_begin_naming(uint32_t generation) {
  __atomic_store_n(&naming, 1u, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&cs_library.world.code_generation, __ATOMIC_SEQ_CST) == generation)
    return true;
  cs_unload_end_naming();
  return false;
}

bool cs_unload_begin_naming_of(uint32_t generation) {
  uint32_t now = cs_load_acquire(&cs_library.world.code_generation);
  return cs_unload_is_alive(generation) && cs_unload_begin_naming(now);
}

void cs_unload_end_naming(void) {
  __atomic_store_n(&naming, 0u, __ATOMIC_SEQ_CST);
  cs_futex_wake(&naming);
}
