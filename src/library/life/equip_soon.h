// SPDX-License-Identifier: MIT
// equip_soon: the library's own stop of the runtime, for profilers that started it by attach: it
// gives the threads that were there before their larger alternate stacks. Any thread; not for
// handlers.
#ifndef CS_LIFE_EQUIP_SOON_H
#define CS_LIFE_EQUIP_SOON_H

#include "base/error.h"
#include "life/library.h"

struct cs_thread;

// Stops the runtime from a thread of the library's own, if any thread needs it; not more often than
// now and then, unless `at_once`: when the library has been started.
void cs_library_equip_soon(bool at_once);
// May the caller ask the thread by signal now? Waits for a stop that is under way, for a bounded
// time. If the caller itself has stopped the runtime, *flags gets CS_REQUEST_EQUIP.
bool cs_library_may_ask(struct cs_thread *thread, uint32_t *flags, struct cs_error *err);
// The thread that has called SuspendRuntime, 0 after ResumeRuntime: as far as the drop-in's guest
// has done it.
void cs_runtime_stopped_by(uint32_t tid);
bool cs_runtime_is_stopped_by_caller(void);

#endif
