// SPDX-License-Identifier: MIT
// What a recording says of the thread pool.
#pragma once

#include <stdio.h>

#include "profile/profile.h"

// Both write sentences without a capital, a full stop or a newline. This one describes the pool; it
// must have been read at least once.
void cs_pool_put(const struct cs_facts *f, FILE *out);
// Says why the pool is starved, if the cause is known: "the pool is starved: 7 of 8 workers wait in
// Task.Wait at Shop.Cart.Load (Cart.cs:12); 32 items queued (at 3.0 s)".
void cs_pool_put_cause(const struct cs_facts *f, FILE *out);
static inline bool cs_pool_has_cause(const struct cs_facts *f) {
  return f->pool.starved > 0 && f->pool_cause.waiting > 0;
}
