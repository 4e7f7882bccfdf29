// SPDX-License-Identifier: MIT
// Holders mode: samples of the threads that hold locks for which others wait. A sample's weight is
// the time that the others have waited since the last scan. The agent's thread only. Not for
// handlers.
#pragma once

#include "events/lock_waits.h"

// The locks that are waited for, each once.
struct cs_waited_lock {
  struct cs_lock_wait wait;
  uint32_t waiters;
};
struct cs_waited_locks {
  struct cs_waited_lock *at;
  size_t count, capacity;
};
// Adds a waiter. Returns false if there is no memory.
bool cs_waited_locks_add(struct cs_waited_locks *locks, const struct cs_lock_wait *wait);
void cs_waited_locks_free(struct cs_waited_locks *locks);

// A recording begins.
void cs_holders_start(uint64_t now_ns);
// Observes the holders if it is time. Returns when it is time again.
uint64_t cs_holders_poll(uint64_t now_ns);
void cs_holders_free(void);

// Waiting time for which no holder has been walked since the last call, by the reason, with an
// event name for it.
enum cs_unwalked {
  CS_UNWALKED_FREE,
  CS_UNWALKED_UNKNOWN,
  CS_UNWALKED_RELEASED,
  CS_UNWALKED_LATE,
  CS_UNWALKED_REASONS,
};
uint64_t cs_holders_take_unwalked(enum cs_unwalked reason, uint32_t *name);
