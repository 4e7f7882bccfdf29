// SPDX-License-Identifier: MIT
// What a thread waits for, by the methods at the leaf of its stack, and whether it only waits for
// work. One table for `stack`, for --top and for the page. Any thread.
#pragma once

#include "profile/profile.h"

struct cs_wait {
  const char *method;  // the names of the waiting methods begin with this
  const char *what;    // "a task"
  bool idle;           // the thread waits for work
};

// Starts as {0}. The outermost wait says most: Task.Wait waits on an event, which waits on a pulse.
struct cs_wait_search {
  const struct cs_wait *found;  // NULL: none yet
  bool over;
};

// Takes the managed frames of a stack, from the leaf on.
void cs_wait_search_add(struct cs_wait_search *search, const char *name, size_t len);

// Per node of the tree: whether a stack that ends there is one of a thread that waits for work: the
// pool's, timers, sockets, file watchers, and the runtime's own threads. Only in wall mode; NULL:
// no stack is idle. The caller frees it.
bool *cs_idle_nodes(const struct cs_profile *p);
// The same, or NULL if --idle wants these threads. Output for people leaves them out, and says so;
// output for other programs has all threads.
bool *cs_left_out_nodes(const struct cs_profile *p);
// By how many points a share of what is shown, the nodes that are not idle, may be off, at
// CS_CHANGE_INTERVAL.
double cs_points_off(const struct cs_profile *p, const bool *idle);
// What idle threads spent spinning before they blocked: a part of the time that threads ran.
uint64_t cs_spin_weight(const struct cs_profile *p);
