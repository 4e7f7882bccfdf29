// SPDX-License-Identifier: MIT
// clr: the COM side of living in a CLR process: how the runtime loads us, a callback object that
// answers S_OK to everything until slots are taken over, and small conversions.
// Not for handlers: nothing here is signal-safe.
#ifndef CS_CLR_CLR_H
#define CS_CLR_CLR_H

#include <stdbool.h>

#include "clrsnap/corprof.h"

// {8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}: the class that CORECLR_PROFILER, a notification list or
// an attach command names.
extern const CLSID cs_clsid_clrsnap;
#define CS_CLSID_TEXT "{8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}"

bool cs_guid_equal(const GUID *a, const GUID *b);

// A profiler's callback object. Put it first in a larger structure to add state. The default
// QueryInterface (IUnknown, ICorProfilerCallback to ICorProfilerCallback11), AddRef and Release
// work on this head, so they must not be kept for an object that does not start with it.
struct cs_callback {
  ICorProfilerCallback11 base;
  uint32_t refs;  // start with 1
  // Called when the last reference goes; NULL for an object that is never freed.
  void (*destroy)(struct cs_callback *self);
};

// Fills all 98 slots: the three of IUnknown as above, the others answer S_OK and do nothing.
// Slots with an answer of their own: JITInlining and JITCachedFunctionSearchStarted answer TRUE (as
// if there were no profiler), and LoadAsNotificationOnly answers TRUE:
// the runtime's own lists do not say which kind a profiler is, its answer here does, whichever way
// it was named (main, notification list, attach). A notification profiler may be one of up to 32,
// so that answer is right for all three ways, and leaves the one main place to a profiler that
// needs it. It costs the event flags outside COR_PRF_ALLOWABLE_NOTIFICATION_PROFILER
// (E_INVALIDARG): a profiler with enter/leave hooks must answer FALSE.
void cs_callback_defaults(struct ICorProfilerCallback11Vtbl *vtbl);

// Which of ICorProfilerCallback to ICorProfilerCallback11 an identifier is: 1 to 11; 0: IUnknown;
// -1: none of them. And the identifier of a version.
enum { CS_NEWEST_CALLBACK = 11 };
int cs_callback_version(REFIID iid);
const GUID *cs_callback_iid(int version);

// The class object of somebody else's profiler, which runs under the drop-in. Defined by the room
// dropin.
HRESULT cs_foreign_class_object(REFCLSID clsid, REFIID iid, void **out);

// Makes the profiler that the class above stands for. Defined by the room agent.
HRESULT cs_profiler_create(const GUID *iid, void **out);

#endif
