// SPDX-License-Identifier: MIT
// A profile's stacks by trace: below each thread a frame for each trace, with the stacks of its
// samples. For formats that know nothing of labels. One thread.
#ifndef CS_PROFILE_TRACES_H
#define CS_PROFILE_TRACES_H

#include "profile/profile.h"

// What has no label stays where it is; so does what the tree has no room for.
void cs_group_by_trace(struct cs_profile *p);

#endif
