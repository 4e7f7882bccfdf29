// SPDX-License-Identifier: MIT
// library: the state of the one instance of this library in the process, and the entry of public
// calls. Not for handlers.
#pragma once

#include "clrsnap/clrsnap.h"
#include "walk/walk.h"

struct cs_library {
  // Written under the lock of start.c, while `running` is false or before the world is published;
  // so any thread may read them between cs_library_enter and cs_library_leave.
  ICorProfilerInfo15 *info;  // ICorProfilerInfo8 at least. NULL: not started, or native walks only
                             // (tests)
  struct clrsnap_opts opts;  // with the defaults filled in
  bool running;              // written under the same lock, read by any thread
  uint32_t users;            // public calls under way, any thread: clrsnap_stop waits for them
  uint32_t holds;            // not released; the thread may run already
  // What walks read. Each part has its writer: start.c the layout, images.c the tables of images,
  // function.c the generation of the code. Handlers reach it through cs_signal.world only.
  struct cs_world world;
};
extern struct cs_library cs_library;

// Enclose every public call's use of the library. Returns false if the library is not running.
// Async-signal-safe.
bool cs_library_enter(void);
void cs_library_leave(void);
