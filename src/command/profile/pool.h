// SPDX-License-Identifier: MIT
// What a recording says of the thread pool.
#ifndef CS_PROFILE_POOL_H
#define CS_PROFILE_POOL_H

#include <stdio.h>

#include "profile/profile.h"

// Sentences without a capital, a full stop or a newline. What it was like; not called if there was no
// read.
void cs_pool_put(const struct cs_facts *f, FILE *out);
// "the pool is starved: 7 of 8 workers wait in Task.Wait at Shop.Cart.Load (Cart.cs:12); 32 items queued
// (at 3.0 s)". Only if the cause is known.
void cs_pool_put_cause(const struct cs_facts *f, FILE *out);
static inline bool cs_pool_has_cause(const struct cs_facts *f) {
  return f->pool.starved > 0 && f->pool_cause.waiting > 0;
}

#endif
