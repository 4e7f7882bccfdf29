// SPDX-License-Identifier: MIT
// The user's cache of debug files that servers have sent: CACHE/ID/debuginfo, as debuginfod's own
// clients lay out theirs. One thread.
#ifndef CS_SYMBOLS_CACHE_H
#define CS_SYMBOLS_CACHE_H

#include "base/error.h"

// $XDG_CACHE_HOME/clrsnap/symbols, in ~/.cache by default; to be freed. It need not exist. NULL: the
// environment names no folder.
char *cs_symbol_cache_path(void);
// debuginfod's: $DEBUGINFOD_CACHE_PATH, or debuginfod_client in the same place. To be freed; NULL as
// above.
char *cs_debuginfod_cache_path(void);
// Copies a file, from its beginning to its end, to `cache`/`id`/debuginfo, which appears there
// complete or not at all. False: *err says why it is not there.
bool cs_symbol_cache_keep(const char *cache, const char *id, int fd, struct cs_error *err);

#endif
