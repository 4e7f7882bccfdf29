// SPDX-License-Identifier: MIT
// clr: the COM side of a profiler: how the runtime loads the library, a callback object that
// returns S_OK for everything until slots are replaced, and GUIDs. Not for handlers.
#pragma once

#include <stdbool.h>

#include "clrsnap/corprof.h"

// {8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}: the class id that CORECLR_PROFILER, a notification list
// or an attach command contains.
extern const CLSID cs_clsid_clrsnap;
#define CS_CLSID_TEXT "{8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}"

bool cs_guid_equal(const GUID *a, const GUID *b);

// A profiler's callback object. A structure that has it as its first member can add state. The
// default QueryInterface (IUnknown, ICorProfilerCallback to ICorProfilerCallback11), AddRef and
// Release work on this member, so an object without it must replace them.
struct cs_callback {
  ICorProfilerCallback11 base;
  uint32_t refs;  // starts at 1
  // Called when the last reference is released. NULL for an object that is never freed.
  void (*destroy)(struct cs_callback *self);
};

// Fills all 98 slots: the three of IUnknown as above; all others return S_OK and do nothing,
// except:
//
//   JITInlining, JITCachedFunctionSearchStarted
//       pass back TRUE, as if there were no profiler
//   LoadAsNotificationOnly
//       passes back TRUE. It is this value that decides what kind of profiler is loaded, however
//       the profiler was named (as the main one, in the notification list, or by an attach). Up to
//       32 notification profilers can be loaded, so TRUE works in all three cases, and leaves the
//       only main slot to a profiler that needs it. The price is that event flags outside of
//       COR_PRF_ALLOWABLE_NOTIFICATION_PROFILER are refused (E_INVALIDARG); a profiler with
//       enter/leave hooks must pass back FALSE.
void cs_callback_defaults(struct ICorProfilerCallback11Vtbl *vtbl);

// Returns the version of ICorProfilerCallback that an interface id stands for: 1 to 11, 0 for
// IUnknown, -1 for any other. cs_callback_iid is the inverse.
enum { CS_NEWEST_CALLBACK = 11 };
int cs_callback_version(REFIID iid);
const GUID *cs_callback_iid(int version);

// Returns the class object of another profiler, which runs under the drop-in. Defined by the
// component dropin.
HRESULT cs_foreign_class_object(REFCLSID clsid, REFIID iid, void **out);

// Creates the profiler of class cs_clsid_clrsnap. Defined by the component agent.
HRESULT cs_profiler_create(const GUID *iid, void **out);
