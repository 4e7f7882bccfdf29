// SPDX-License-Identifier: MIT
// Private to room dropin: the guest, which is somebody else's unmodified profiler, and what is kept
// of it. Not for handlers, but what info.c says of DoStackSnapshot.
#ifndef CS_DROPIN_GUEST_H
#define CS_DROPIN_GUEST_H

#include <limits.h>

#include "base/error.h"
#include "dropin/wrap.h"
#include "life/start.h"
#include "snapshot/snapshot.h"

// ---- Options (options.c) ----
#define CS_PROFILER_PATH "CLRSNAP_PROFILER_PATH"
struct cs_guest_options {
  char path[PATH_MAX];  // of their library; "": not told
  bool hold;            // CLRSNAP_HOLD=1: targets stand still until the last callback has returned
  bool dynamic;         // CLRSNAP_DYNAMIC=1: methods without metadata are reported, too
  bool elide_suspend;   // CLRSNAP_ELIDE_SUSPEND=1: SuspendRuntime stops nothing
};
void cs_guest_options_from_environment(struct cs_guest_options *options);
// From the client data of an attach: "NAME=VALUE" strings with their NULs, then an empty one. What
// comes after it (*used) is the guest's own. False: it does not start with CLRSNAP_PROFILER_PATH,
// is not terminated, or has a name that nobody knows.
bool cs_guest_options_from_data(struct cs_guest_options *options, const char *data, size_t size,
                                size_t *used, struct cs_error *err);

// ---- The guest ----
struct cs_guest {
  struct cs_guest_options options;
  CLSID clsid;
  void *library;              // dlopen's
  uint32_t version;           // the newest ICorProfilerCallback that it answers to
  const IUnknown *client;     // what the library was started with; NULL: it was not
  ICorProfilerInfo15 *info;   // the runtime's, not wrapped
  bool first;                 // nobody else had started it
  bool walks;                 // DoStackSnapshot is ours
  bool leaves;                // RequestProfilerDetach has been
  bool detached;              // ProfilerDetachSucceeded has been
  int references;             // that the runtime holds of the guest's objects
  DWORD low, high;            // the events that it has asked for
  uint32_t suspended;         // elided: 1 between SuspendRuntime and ResumeRuntime (a futex)
  uint32_t suspender;         // the thread that asked
  uint32_t deaths;            // cs_registry_deaths() when it did
  struct cs_callback *proxy;  // stands in until an attach's client data names the guest
};

// ---- Loading (load.c) ----
// The guest's class object, from a library of its own; logs why not.
HRESULT cs_guest_load(struct cs_guest *guest, REFIID iid, void **out);
// When the last reference is gone after a detach.
void cs_guest_unload(struct cs_guest *guest);

// ---- The library on behalf of a guest (life.c) ----
// Before the guest's Initialize, which is not kept waiting: decides whether the library serves this
// runtime, and begins, on a thread of its own, what takes long. Where it cannot serve, the guest
// runs on with the runtime's own walk; the log says so.
void cs_guest_begin(struct cs_guest *guest, IUnknown *info);
void cs_guest_end(struct cs_guest *guest);
// In callbacks that show something new to hold the runtime's layout against: looks, if there still
// is need. `wait`: until what takes long is done; else another time.
void cs_guest_look(struct cs_guest *guest, bool wait);
// An attach: threads that are there already. Before the runtime tells of any, and again when it
// tells of all.
void cs_guest_attaches(struct cs_guest *guest);
void cs_guest_attached(struct cs_guest *guest);

// ---- Wrapped objects ----
void *cs_wrap_factory(struct cs_guest *guest, IUnknown *factory);    // factory.c
void *cs_wrap_callback(struct cs_guest *guest, IUnknown *callback);  // callback.c
void *cs_wrap_info(struct cs_guest *guest, IUnknown *info);          // info.c

// ---- An attach, whose client data names the guest (attach.c) ----
// A class factory for objects whose guest is not known yet.
HRESULT cs_attach_class_object(REFCLSID clsid, REFIID iid, void **out);
// Loads the guest that the client data names, behind a wrapper that the runtime has already.
// *used: the bytes that were ours.
HRESULT cs_attach_load(struct cs_wrapped *callback, const void *data, size_t size, size_t *used);
// Callbacks that an older guest knows in an older form only.
void cs_attach_take_over(ICorProfilerCallback11Vtbl *vtbl);

// ---- Event masks (mask.c) ----
// Adds what the library needs to what the guest has asked for. After its Initialize.
bool cs_mask_settle(struct cs_guest *guest, struct cs_error *err);
void cs_mask_take_over(ICorProfilerInfo15Vtbl *vtbl);

// ---- Elided suspension (elide.c) ----
void cs_elide_take_over(ICorProfilerInfo15Vtbl *vtbl);
bool cs_elides(const struct cs_guest *guest);
// In callbacks after which an ID of code means nothing any more: not between Suspend and Resume.
void cs_elide_wait(struct cs_guest *guest);
// Calls that name a thread, which may end between the two (ids.c).
void cs_ids_take_over(ICorProfilerInfo15Vtbl *vtbl);
// Has the runtime started? Asked of its own DoStackSnapshot, which checks that first.
bool cs_runtime_has_started(ICorProfilerInfo15 *info);

#endif
