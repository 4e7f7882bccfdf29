// SPDX-License-Identifier: MIT
// Code that is about to be unloaded: dynamic methods and collectible assemblies. Not for handlers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// In ModuleUnloadStarted (`module`) and DynamicMethodUnloaded: has the agent's thread name what the
// ring still has of the code (20 ms at most), then starts a new generation of the library's. True:
// a recording is under way.
bool cs_unload(bool module);

// ---- The agent's thread ----
void cs_unload_drained(void);  // it has read all of the ring
// Returns whether a frame in collectible code, of a sample of this generation, may be named by what
// is there now.
bool cs_unload_is_alive(uint32_t generation);
// Returns whether it never may again, because of the number of unloads since.
bool cs_unload_is_forgotten(uint32_t generation);
// Around every call into the CLR that is about collectible code. Returns false if it may be gone
// already.
bool cs_unload_begin_naming(uint32_t generation);
void cs_unload_end_naming(void);
