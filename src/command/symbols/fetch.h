// SPDX-License-Identifier: MIT
// Fetches debug files from servers over HTTP(S). One thread.
#pragma once

#include "symbols/sources.h"

// Loads libcurl and checks the URLs. `servers` and `cache` must live longer. Returns NULL, with the
// reason in *err.
struct cs_fetcher *cs_fetcher_new(struct cs_symbols_server *servers, size_t count,
                                  const char *cache, struct cs_error *err);
// Returns a descriptor, which the caller closes, of a file in memory: the debug file with this
// build id. Returns -1 if no server has it; this is reported now, or by cs_fetcher_report.
// Ends early when SIGINT, SIGTERM, SIGHUP or SIGQUIT is pending; the four are blocked during the
// call.
int cs_fetch(struct cs_fetcher *fetcher, const uint8_t *id, size_t id_size, const char *path);
void cs_fetcher_report(struct cs_fetcher *fetcher);
void cs_fetcher_free(struct cs_fetcher *fetcher);
