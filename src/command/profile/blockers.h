// SPDX-License-Identifier: MIT
// gc mode: how long threads were on the way to their safe points, and where the threads were that
// held up a suspension. Holders mode: where the threads were that held a lock for which others
// waited. Any thread.
#pragma once

#include "profile/profile.h"

enum cs_blocker_why { CS_BLOCKER_RUNS, CS_BLOCKER_UNSCHEDULED, CS_BLOCKER_FAULT, CS_BLOCKER_CALL };
enum { CS_BLOCKER_WHYS = CS_BLOCKER_CALL + 1 };

struct cs_blocker {
  // The innermost own code, or else the innermost function. Of several lines of a method, the one
  // with most of `ns`.
  uint32_t frame;
  uint64_t ns;  // for how long suspensions, or threads, have waited for threads that were there
  uint64_t why[CS_BLOCKER_WHYS];  // gc mode: `ns` by reason
};

struct cs_blockers {
  uint64_t way_ns;   // gc mode: of all pauses, the part before the safe point. Includes `held_ns`
  uint64_t held_ns;  // the part of it, or of all waits for locks, whose threads are known
  struct cs_blocker *at;  // by method, the longest first
  size_t count;
};

void cs_blockers_find(struct cs_blockers *blockers, const struct cs_profile *p);
void cs_blockers_free(struct cs_blockers *blockers);
// "Shop.Matrix.Multiply (Matrix.cs:41)", without the line if that is not known. A name that is
// longer than `most` bytes loses its beginning.
void cs_blocker_put_place(const struct cs_profile *p, const struct cs_blocker *blocker,
                          unsigned most, FILE *out);
// "84.20 ms, 12.00 ms of that not scheduled".
void cs_blocker_put_time(const struct cs_blocker *blocker, FILE *out);

// Holders mode: the duration of all waits for locks, and the methods that held the locks for most
// of it: "12.30 s, held by Shop.Audit.Write (Audit.cs:40) 92 %, Shop.Cart.Load (Cart.cs:12) 5 %".
void cs_holders_put(const struct cs_profile *p, unsigned most_name, FILE *out);
