// SPDX-License-Identifier: MIT
// The threads of a recording as a profile has them. One thread.
#pragma once

#include "profile/profile.h"
#include "recording/recording.h"

// Adds the threads to the profile, those of one name as one if `group`. Returns the profile's
// thread for each of the recording's; the caller frees the array.
uint32_t *cs_thread_names(const struct cs_recording *rec, bool group, struct cs_profile *profile);
