// SPDX-License-Identifier: MIT
// Threads that ran with their signals blocked: their time has no stacks. One thread.
#pragma once

#include "profile/profile.h"

// Fills p->facts.blocked from the tree.
void cs_blocked_find(struct cs_profile *p);
// Prints "3.05 s without stacks: threads ran with their signals blocked (worker 2.05 s, ...)".
void cs_put_blocked(FILE *out, const struct cs_facts *facts);
