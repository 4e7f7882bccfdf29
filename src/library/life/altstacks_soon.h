// SPDX-License-Identifier: MIT
// altstacks_soon: gives threads that existed before the library their larger alternate stacks, for
// profilers that started it by attach. Any thread; not for handlers.
#pragma once

#include "base/error.h"
#include "life/library.h"

struct cs_thread;

// Installs the stacks from a thread of the library's own, if any thread needs one. Unless `at_once`
// (when the library has been started), does nothing if the last time was not long ago.
void cs_library_altstacks_soon(bool at_once);
// Returns whether the caller may send the thread a signal now. Waits for the stack to be installed,
// for a bounded time. If the caller itself has stopped the runtime, *flags gets
// CS_REQUEST_ALTSTACK.
bool cs_library_may_ask(struct cs_thread *thread, uint32_t *flags, struct cs_error *err);
// The same without waiting, for a caller that has not stopped the runtime. Returns whether the
// thread may be sent a signal now.
bool cs_library_may_ask_now(const struct cs_thread *thread);
// Notes the thread of the drop-in's guest that has called SuspendRuntime; 0 after ResumeRuntime.
void cs_runtime_stopped_by(uint32_t tid);
bool cs_runtime_is_stopped_by_caller(void);
