// SPDX-License-Identifier: MIT
// The data that the page's scripts read (flame-unpack.js). One thread.
#ifndef CS_PAGE_PAGE_DATA_H
#define CS_PAGE_PAGE_DATA_H

#include "profile/profile.h"

// Returns false if a write failed (errno says why).
bool cs_write_page_data(const struct cs_profile_set *set, FILE *out);

#endif
