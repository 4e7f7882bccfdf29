// SPDX-License-Identifier: MIT
// start: the library's life in a process, and the checks that have to pass before anything is
// walked. Not for handlers, except where a function says so.
#pragma once

#include "base/error.h"
#include "life/library.h"

// clrsnap_start, with the reason for a refusal. Several profilers of a process may share the
// library, each with an `info` of its own: S_FALSE for all but the first.
HRESULT cs_library_start(IUnknown *info, const struct clrsnap_opts *opts, struct cs_error *err);
// The same in two parts: what must be known at once (a fraction of a millisecond), and what takes
// longer (the tables of native images, the clock). The first caller of cs_library_prepare after a
// start does the work; others wait for it. After an attach the caller adopts the existing threads.
HRESULT cs_library_begin(IUnknown *info, const struct clrsnap_opts *opts, struct cs_error *err);
HRESULT cs_library_prepare(struct cs_error *err);
bool cs_library_is_prepared(void);
// The part of a start that needs no CLR: the world is published at once, and walks are native. For
// tests.
HRESULT cs_library_start_native(const struct clrsnap_opts *opts, struct cs_error *err);
// Ends the use of the library by the profiler that started it with `info`. The last stop stops the
// library.
void cs_library_stop(const IUnknown *info);

// clrsnap_ready, with the reason. Publishes the world (cs_signal.world) when the checks have
// passed.
HRESULT cs_library_ready(struct cs_error *err);
// Returns the state of the checks, in a few loads: S_OK, CORPROF_E_STACKSNAPSHOT_UNSAFE (not yet),
// or CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER (never). Async-signal-safe.
HRESULT cs_library_state(void);
// Tries again what has not been checked yet: cs_library_ready, and cs_function_check. Calls the
// CLR. Both return whether no further try is needed.
bool cs_library_retry_checks(void);
bool cs_library_is_settled(void);

// Registers the threads that exist already (EnumThreads). After an attach, called from
// ProfilerAttachComplete.
void cs_library_adopt_threads(void);
// Checks the layout of the runtime's Thread against a thread that is known.
void cs_library_check_thread(uint64_t clr_thread, uint32_t tid);
