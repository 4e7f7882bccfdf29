// SPDX-License-Identifier: MIT
// Which threads are sampled, from when to when. Managed threads come and go with the runtime's
// callbacks, on the threads themselves; native ones are found by a scan. Not for handlers.
#pragma once

#include "state/threads.h"

// ---- The runtime's callbacks ----
void cs_threads_assigned(ThreadID id, uint32_t tid);
void cs_threads_renamed(ThreadID id, const WCHAR *name, ULONG units);
void cs_threads_destroyed(ThreadID id);

// ---- The agent's thread; cs_threads_adopt and _add_native: any ----
// Adds the registry's threads that are not in the list yet, after an attach.
void cs_threads_adopt(void);
void cs_threads_add_native(uint32_t tid);
// Adds threads of the process for which the runtime has no Thread (its garbage collector's, those
// of foreign libraries) and removes those that have ended. CPU mode only.
void cs_threads_scan_native(void);
void cs_threads_sweep_native(void);  // removes native threads that the last scan has not found
// Wall mode: returns how many threads, apart from our own, are unknown to the runtime. Those that
// earlier calls in this recording have found count even after they have ended.
uint32_t cs_threads_count_unknown(void);
// Removes managed threads that the kernel no longer has.
void cs_threads_sweep_ended(void);
// Starts the engine of all threads for which it could not be started before.
void cs_threads_start_engines(void);
// The same for threads that had to wait until new libraries had been examined; does nothing if
// there are none.
void cs_threads_start_delayed(void);
void cs_threads_stop_engines(void);  // from then on, no thread may be sent a signal
// Sends CS_WIRE_SMALL_STACKS if any stack was too small. Returns false if there is no room.
bool cs_threads_report_small_stacks(void);

// ---- natives.c: how many threads have never run managed code, those that have ended included ----
// Begins a scan of all threads. The agent's thread.
void cs_natives_begin(void);
bool cs_natives_found(uint32_t tid);  // a thread that the runtime does not know; false: no memory
// With the list's lock held. Ends the scan, which has found all threads.
void cs_natives_end(void);
uint32_t cs_natives_count(void);        // living and ended ones
void cs_natives_managed(uint32_t tid);  // the runtime knows the thread now
void cs_natives_reset(void);            // forgets all of them

// ---- A recording ----
void cs_threads_start(void);
void cs_threads_stop(void);      // from then on, no thread is sampled
void cs_threads_free_all(void);  // when the last sample has been read
