// SPDX-License-Identifier: MIT
// Code that is about to be unloaded: dynamic methods and collectible assemblies. Not for handlers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Called in ModuleUnloadStarted (`module`) and DynamicMethodUnloaded: has the agent's thread name
// the code's frames that are still in the ring (20 ms at most), then begins a new generation of the
// library's code. Returns whether a recording is under way.
bool cs_unload(bool module);

// ---- The agent's thread ----
void cs_unload_drained(void);  // notes that all of the ring has been read
// Returns whether a frame in collectible code, of a sample of this generation, may be named by the
// code that is there now.
bool cs_unload_is_alive(uint32_t generation);
// Returns whether it may never be named again, because of the number of unloads since.
bool cs_unload_is_forgotten(uint32_t generation);
// Enclose every call into the CLR about collectible code. Returns false if the code may be gone
// already.
bool cs_unload_begin_naming(uint32_t generation);
// The same about what a sample of this generation has found alive.
bool cs_unload_begin_naming_of(uint32_t generation);
void cs_unload_end_naming(void);
