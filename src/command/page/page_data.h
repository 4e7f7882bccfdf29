// SPDX-License-Identifier: MIT
// The data that the page's scripts read (flame-unpack.js). One thread.
#pragma once

#include "profile/profile.h"

// Returns false if a write failed (errno says why).
bool cs_write_page_data(const struct cs_profile_set *set, FILE *out);
