// SPDX-License-Identifier: MIT
// The user's cache of debug files that servers have sent: CACHE/ID/debuginfo, as debuginfod's own
// clients lay out theirs. One thread.
#pragma once

#include "base/error.h"

// Returns $XDG_CACHE_HOME/clrsnap/symbols, below ~/.cache by default, which need not exist. The
// caller frees it. Returns NULL if the environment names no directory.
char *cs_symbol_cache_path(void);
// Returns the same for debuginfod's: $DEBUGINFOD_CACHE_PATH, or debuginfod_client beside "clrsnap".
char *cs_debuginfod_cache_path(void);
// Copies a file, from its beginning to its end, to `cache`/`id`/debuginfo, which appears there
// complete or not at all. Returns false on failure; *err says why it is not there.
bool cs_symbol_cache_keep(const char *cache, const char *id, int fd, struct cs_error *err);
