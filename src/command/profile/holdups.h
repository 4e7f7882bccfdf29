// SPDX-License-Identifier: MIT
// Mode gc: how long threads were on the way to their safe points, and where the threads were that
// held a suspension up. Mode holders: where the threads were that held a lock that others waited
// for. Any thread.
#ifndef CS_PROFILE_HOLDUPS_H
#define CS_PROFILE_HOLDUPS_H

#include "profile/profile.h"

enum cs_holdup_why { CS_HOLDUP_RUNS, CS_HOLDUP_UNSCHEDULED, CS_HOLDUP_FAULT, CS_HOLDUP_CALL };
enum { CS_HOLDUP_WHYS = CS_HOLDUP_CALL + 1 };

struct cs_holdup {
  // The innermost own code, or else the innermost function. Of several lines of a method, the one
  // with most of `ns`.
  uint32_t frame;
  uint64_t ns;  // for how long suspensions, or threads, have waited for threads that were there
  uint64_t why[CS_HOLDUP_WHYS];  // mode gc: `ns` by reason
};

struct cs_holdups {
  uint64_t way_ns;   // mode gc: of all pauses, the part before the safe point. Includes `held_ns`
  uint64_t held_ns;  // the part of it, or of all waits for locks, whose threads are known
  struct cs_holdup *at;  // by method, the longest first
  size_t count;
};

void cs_holdups_find(struct cs_holdups *holdups, const struct cs_profile *p);
void cs_holdups_free(struct cs_holdups *holdups);
// "Shop.Matrix.Multiply (Matrix.cs:41)", without the line if that is not known. A name that is
// longer than `most` bytes loses its beginning.
void cs_holdup_put_place(const struct cs_profile *p, const struct cs_holdup *holdup, unsigned most,
                         FILE *out);
// "84.20 ms, 12.00 ms of that not scheduled".
void cs_holdup_put_time(const struct cs_holdup *holdup, FILE *out);

// Mode holders: the duration of all waits for locks, and the methods that held the locks for most
// of it: "12.30 s, held by Shop.Audit.Write (Audit.cs:40) 92 %, Shop.Cart.Load (Cart.cs:12) 5 %".
void cs_holders_put(const struct cs_profile *p, unsigned most_name, FILE *out);

#endif
