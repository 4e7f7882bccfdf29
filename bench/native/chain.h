// SPDX-License-Identifier: MIT
// What the generated functions (generate.awk) and the benchmark share: a path through functions,
// each of which calls the next one from the call site that the path names.
#pragma once

#include <alloca.h>
#include <stdint.h>

struct chain;
typedef long chain_function(struct chain *chain, long value);

struct chain_step {
  chain_function *function;
  uint32_t site;  // 0 to CHAIN_SITES - 1
};
enum { CHAIN_SITES = 3 };

struct chain {
  const struct chain_step *step;  // the last one is the leaf
  long seed[8];
};

struct chain_module {
  uint32_t count;
  chain_function *const *functions;
};
