// SPDX-License-Identifier: MIT
// Where --symbols looks for debug files of native libraries: in directories, and at servers that
// the user names. A server is sent build ids and nothing else of a recording. What it sends is kept
// in the user's cache if it has the build id that was asked for, and is otherwise thrown away. One
// thread.
#pragma once

#include "base/error.h"
#include "metadata/elfsym.h"

#define CS_SYMBOLS_MOST 16  // directories, and servers

// The path of a debug file below a server's URL.
enum cs_symbols_layout {
  CS_SYMBOLS_DEBUGINFOD,  // buildid/ID/debuginfo
  CS_SYMBOLS_SYMSTORE,    // _.debug/elf-buildid-sym-ID/_.debug, as Microsoft's
};

struct cs_symbols_server {
  enum cs_symbols_layout layout;
  char *url;  // as the user gave it
  bool failed;
};

struct cs_fetcher;
struct cs_symbol_sources {
  char *folders[CS_SYMBOLS_MOST];
  struct cs_symbols_server servers[CS_SYMBOLS_MOST];
  size_t folder_count, server_count;
  char *cache;                 // the directory of what servers have sent; NULL: nothing is kept
  struct cs_fetcher *fetcher;  // NULL: no server can be asked
};

// Adds a value of --symbols: DIR, URL (of a symbol server), debuginfod+URL, debuginfod (the servers
// of DEBUGINFOD_URLS) or microsoft. Returns false, with the reason in *err.
bool cs_symbol_sources_add(struct cs_symbol_sources *sources, const char *value,
                           struct cs_error *err);
// To be called before a program is started. Returns false if the servers cannot be asked; *err says
// why.
bool cs_symbol_sources_open(struct cs_symbol_sources *sources, struct cs_error *err);
static inline bool cs_symbol_sources_any(const struct cs_symbol_sources *sources) {
  return sources->folder_count + sources->server_count > 0;
}
// Returns the places for cs_elfsyms_set_places. `fetch`: whether servers may be asked.
struct cs_elf_places cs_symbol_sources_places(struct cs_symbol_sources *sources, bool fetch);
// Says of which libraries no server has symbols, once.
void cs_symbol_sources_report(struct cs_symbol_sources *sources);
void cs_symbol_sources_close(struct cs_symbol_sources *sources);
