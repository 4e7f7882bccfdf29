// SPDX-License-Identifier: MIT
// Mode gc: how long threads were on the way to their safe points, and where those were that held a
// suspension up. Mode holders: where those were that held a lock that others waited for. Any thread.
#ifndef CS_PROFILE_HOLDUPS_H
#define CS_PROFILE_HOLDUPS_H

#include "profile/profile.h"

enum cs_holdup_why { CS_HOLDUP_RUNS, CS_HOLDUP_UNSCHEDULED, CS_HOLDUP_FAULT, CS_HOLDUP_CALL };
enum { CS_HOLDUP_WHYS = CS_HOLDUP_CALL + 1 };

struct cs_holdup {
  uint32_t
      frame;    // the innermost own code, or else the innermost function; of a method's lines, the
                // one of most of `ns`
  uint64_t ns;  // for how long suspensions, or threads, have waited for threads that were there
  uint64_t why[CS_HOLDUP_WHYS];  // of suspensions
};

struct cs_holdups {
  uint64_t way_ns;   // mode gc: of all pauses, the part before the safe point. Includes `held_ns`
  uint64_t held_ns;  // the part of it, or of all waits for locks, of which the threads are known
  struct cs_holdup *at;  // by method, the longest first
  size_t count;
};

void cs_holdups_find(struct cs_holdups *holdups, const struct cs_profile *p);
void cs_holdups_free(struct cs_holdups *holdups);
// "Shop.Matrix.Multiply (Matrix.cs:41)", without the line if that is not known. Of a name that is
// longer than `most` bytes, the end.
void cs_holdup_put_place(const struct cs_profile *p, const struct cs_holdup *holdup, unsigned most,
                         FILE *out);
// "84.20 ms, 12.00 ms of that not scheduled".
void cs_holdup_put_time(const struct cs_holdup *holdup, FILE *out);

// "12.30 s, held by Shop.Audit.Write (Audit.cs:40) 92 %, Shop.Cart.Load (Cart.cs:12) 5 %": all waits
// for locks, and the methods that held those for most of them. Mode holders.
void cs_holders_put(const struct cs_profile *p, unsigned most_name, FILE *out);

#endif
